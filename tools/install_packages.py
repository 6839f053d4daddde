"""Install pinned packages into an environment: one line of progress, the full log in a file, errors in full.

    python tools/install_packages.py .venv --uv .venv/bin/uv -- -r requirements/dev.txt

It runs before anything is installed, so it uses the standard library alone. uv needs seconds where pip needs
minutes; pip is the second choice, since a mirror may be configured for pip alone.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TextIO

QUIET_LINES = re.compile(
    r"^(Requirement already|Ignoring|Looking in|Using Python|Collecting)"
    r"|^ *(Downloading|Downloaded|Using cached)"
)
UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


@dataclass(frozen=True)
class Progress:
    """How far an installer is, as read from the lines that it prints."""

    phase: str = "reading the package index"
    packages: int = 0
    last: str = ""
    expected: float = 0.0  # bytes of the large packages; uv does not announce small ones
    arrived: float = 0.0
    sizes: tuple[tuple[str, float], ...] = ()

    def after(self, line: str) -> Progress:
        """The progress once the installer has printed `line`."""
        if match := re.match(r" *Downloading (\S+) \(([\d.]+)([KMG]iB)\)", line):  # uv
            name, size = match[1], float(match[2]) * UNITS[match[3]]
            return replace(
                self,
                phase="downloading",
                expected=self.expected + size,
                sizes=(*self.sizes, (name, size)),
                last=self.last or name,
            )
        if match := re.match(r" *Downloaded (\S+)", line):
            return replace(self, arrived=self.arrived + dict(self.sizes).get(match[1], 0.0), last=match[1])
        if match := re.match(r"Collecting ([\w.-]+)", line):  # pip
            return replace(self, phase="downloading", packages=self.packages + 1, last=match[1])
        if re.match(r"Prepared \d+ package|Installing collected packages", line):
            return replace(self, phase="unpacking")
        return self

    def text(self, total: int, seconds: float) -> str:
        """The progress in one line."""
        amount = ""
        if self.phase == "downloading" and self.expected:
            amount = f" {self.arrived / 1e6:.0f} of {self.expected / 1e6:.0f} MB"
        elif self.phase == "downloading":
            amount = f" {min(self.packages, total)} of {total}"
        package = f" ({self.last})" if self.phase == "downloading" and self.last else ""
        return f"  {self.phase}{amount}{package}, {seconds:.0f} s"


class ProgressLine:
    """Rewrite one line of a terminal; write the phases alone where there is no terminal."""

    def __init__(self, total: int, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._total, self._stream, self._clock = total, stream, clock
        self._began = clock()
        self._progress = Progress()
        self._shown = ""
        self._lock = threading.Lock()

    def show(self, progress: Progress | None = None) -> None:
        """Show `progress`, or the last one with the time that has passed since."""
        with self._lock:
            self._progress = progress or self._progress
            if self._stream.isatty():
                width = shutil.get_terminal_size().columns - 1
                text = "\r\x1b[K" + self._progress.text(self._total, self.seconds)[:width]
            else:
                text = f"  {self._progress.phase} ...\n"
            if text != self._shown:
                self._stream.write(text)
                self._stream.flush()
            self._shown = text

    def clear(self) -> None:
        """Remove the line."""
        if self._stream.isatty():
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    @property
    def seconds(self) -> float:
        """Seconds since the line was made."""
        return self._clock() - self._began


@contextmanager
def ticking(line: ProgressLine) -> Iterator[None]:
    """Keep the seconds of `line` up to date."""
    ended = threading.Event()

    def tick() -> None:
        while not ended.wait(1.0):
            line.show()

    thread = threading.Thread(target=tick, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def run(command: Sequence[str], log: TextIO, line: ProgressLine) -> list[str] | None:
    """Run an installer; return None if it succeeded, otherwise what it printed beside its progress."""
    log.write(f"$ {' '.join(command)}\n")
    progress, remarks = Progress(), []
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:
        assert process.stdout is not None
        for printed in process.stdout:
            log.write(printed)
            progress = progress.after(printed)
            line.show(progress)
            if not QUIET_LINES.match(printed):
                remarks.append(printed)
    log.flush()
    return remarks if process.returncode else None


def names_of(words: Sequence[str]) -> set[str]:
    """The packages that the words of `pip install` name, in them and in their requirement files."""
    names = set()
    for before, word in zip(("", *words), words, strict=False):
        if before == "-r":
            names |= set(re.findall(r"^([\w.-]+)==", Path(word).read_text(), re.MULTILINE))
        elif match := re.match(r"([\w.-]+)==", word):
            names.add(match[1])
    return names


def commands(environment: Path, words: Sequence[str], uv: str | None) -> Iterator[tuple[str, list[str]]]:
    """The installers to try, in this order."""
    python = str(environment / "bin" / "python")
    hashes = ["--require-hashes"] if "-r" in words else []
    if uv:
        # The certificates of the system include those of a company's proxy.
        yield (
            "uv",
            [
                uv,
                "pip",
                "install",
                "--system-certs",
                "--color",
                "never",
                "--python",
                python,
                *hashes,
                *words,
            ],
        )
    yield (
        "pip",
        [
            python,
            "-m",
            "pip",
            "install",
            "--disable-pip-version-check",
            "--progress-bar",
            "off",
            "--no-color",
            *hashes,
            *words,
        ],
    )


def install(environment: Path, words: Sequence[str], uv: str | None, stream: TextIO) -> int:
    """Install what `words` name; return the exit code."""
    names = sorted(names_of(words))
    log_path = environment / "setup.log"
    what = f"{len(names)} packages" if len(names) > 1 else (names or words[-1:])[0]
    print(f"Installing {what} into {environment} (log: {log_path})", file=stream, flush=True)
    line = ProgressLine(len(names), stream)
    failures = []
    with log_path.open("a") as log:
        for tool, command in commands(environment, words, uv):
            with ticking(line):
                line.show()
                remarks = run(command, log, line)
            line.clear()
            if remarks is None:
                print(f"  done after {line.seconds:.0f} s", file=stream)
                return 0
            failures.append((tool, remarks))
            if tool == "uv":
                print(
                    "  uv could not install them (the reason is in the log); trying pip, which takes longer",
                    file=stream,
                    flush=True,
                )
    for tool, remarks in failures:
        print(f"\n{tool} failed:\n{''.join(remarks).rstrip()}", file=stream)
    print(
        f"\nThe whole log is {log_path}. Run the same command again to continue.",
        file=stream,
    )
    return 1


def main(arguments: Sequence[str]) -> int:
    """Install from the command line."""
    parser = argparse.ArgumentParser(description="Install pinned packages into an environment.")
    parser.add_argument("environment", type=Path)
    parser.add_argument("--uv", help="path of uv; without it, pip installs")
    parser.add_argument("words", nargs="+", help="what `pip install` gets, after --")
    options = parser.parse_args(arguments)
    uv = options.uv if options.uv and os.access(options.uv, os.X_OK) else None
    try:
        return install(options.environment, options.words, uv, sys.stderr)
    except KeyboardInterrupt:
        print("\nInterrupted. Run the same command again to continue.", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
