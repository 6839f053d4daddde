"""The terminal of the demo."""

from __future__ import annotations

import os
import re
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO


class Screen:
    """Prints lines, in colour on a terminal."""

    def __init__(self, out: IO[str], seconds_per_dot: float = 2.0):
        self._out = out
        self._seconds_per_dot = seconds_per_dot
        self._plain = bool(os.environ.get("NO_COLOR")) or not out.isatty()
        self._began = time.monotonic()

    def line(self, text: str) -> None:
        """Print lines; break those that are wider than the terminal between words."""
        width = shutil.get_terminal_size().columns
        lines = (part for line in text.split("\n") for part in wrapped(line, width))
        print("\n".join(lines), file=self._out, flush=True)

    def event(self, run: str, text: str) -> None:
        """Print an event of a run, with the seconds since `start_clock`."""
        self.line(f"  {time.monotonic() - self._began:7.1f}  {run:<9}{text}")

    def start_clock(self) -> None:
        self._began = time.monotonic()

    @contextmanager
    def progress(self, task: str) -> Iterator[None]:
        """Print the task, dots while it runs as far as the line has room, and its duration."""
        began = time.monotonic()
        print(f"{task} ...", end="", file=self._out, flush=True)
        room = shutil.get_terminal_size().columns - len(f"{task} ... 9999 s")
        done = threading.Event()

        def dots() -> None:
            for _ in range(room):
                if done.wait(self._seconds_per_dot):
                    return
                print(".", end="", file=self._out, flush=True)

        thread = threading.Thread(target=dots, daemon=True)
        thread.start()
        try:
            yield
        except BaseException:
            print("", file=self._out, flush=True)
            raise
        finally:
            done.set()
            thread.join()
        self.line(f" {time.monotonic() - began:.0f} s")

    def bold(self, text: str) -> str:
        return self._styled("1", text)

    def dim(self, text: str) -> str:
        return self._styled("2", text)

    def red(self, text: str) -> str:
        return self._styled("31", text)

    def green(self, text: str) -> str:
        return self._styled("32", text)

    def _styled(self, code: str, text: str) -> str:
        return text if self._plain else f"\033[{code}m{text}\033[0m"


def wrapped(line: str, width: int) -> list[str]:
    """Break a line that is too wide between words; what follows begins below its last column."""
    plain = _STYLE.sub("", line)
    if len(plain) <= width:
        return [line]
    columns = _COLUMNS.match(plain)
    indent = " " * len(columns[0]) if columns and len(columns[0]) <= width // 2 else ""
    lines, current = [], ""
    for word in re.findall(r" +|[^ ]+", line):
        is_text = bool(word.strip())
        if is_text and current.strip() and len(_STYLE.sub("", current + word)) > width:
            lines.append(current.rstrip())
            current = indent
        current += word
    return [*lines, current.rstrip()]


_STYLE = re.compile(r"\033\[\d+m")
# Indentation, and words that end in two spaces: the time and run of an event, the label of a line.
_COLUMNS = re.compile(r" *(?:\S+(?: \S+)*  +)*")
