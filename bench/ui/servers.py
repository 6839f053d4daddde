"""Servers in processes of their own, so that their memory is theirs alone. Linux only: it reads `/proc`."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
MB = 1024  # kilobytes


class Process:
    """A server and the processes that it has started."""

    def __init__(self, command: Sequence[str], **environment: str):
        paths = [str(ROOT / "layers/smdebug_core/python"), str(ROOT / "rules"), str(ROOT)]
        self._process = subprocess.Popen(
            list(command),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), **environment},
        )

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def line(self) -> str:
        """Return the next line that the server prints."""
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    @property
    def peak(self) -> float:
        """The largest memory of the server itself so far, in megabytes."""
        return peak_of(self._process.pid)

    @property
    def peak_of_others(self) -> float:
        """The same of the processes that it has started, together."""
        return sum(map(peak_of, _children(self._process.pid)))


class Smdebug(Process):
    """`smdebug ui` on some places."""

    def __init__(self, places: Sequence[Path], cache: Path, *options: str):
        command = [sys.executable, "-m", "smdebug", "ui", *map(str, places)]
        super().__init__([*command, "--no-browser", "--json", *options], SMDEBUG_UI_CACHE=str(cache))
        self.address: str = json.loads(self.line())["address"]
        self.origin, _, self._token = self.address.partition("/?token=")

    def ask(self, path: str) -> Any:
        """Return an answer of the API."""
        request = urllib.request.Request(
            f"{self.origin}/api/{path}", headers={"x-smdebug-token": self._token}
        )
        with urllib.request.urlopen(request, timeout=300) as answer:
            return json.load(answer)

    def run(self, name: str) -> str:
        """Return the id of a run, as soon as it was found."""
        while True:
            for row in self.ask("runs")["runs"]:
                if row["path"].rstrip("/").endswith(name):
                    return str(row["id"])
            time.sleep(0.02)


class TensorBoard(Process):
    """TensorBoard on a folder of event files; ready once it answers, before it has read them."""

    def __init__(self, program: Path, folder: Path):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.origin = f"http://127.0.0.1:{port}"
        super().__init__([str(program), "--logdir", str(folder), "--host", "127.0.0.1", "--port", str(port)])
        while self._answer("") is None:
            time.sleep(0.02)

    def count_of_tags(self) -> int:
        """Return how many scalars it knows so far."""
        tags = json.loads(self._answer("data/plugin/scalars/tags") or b"{}")
        return max(map(len, tags.values()), default=0)

    def last_step(self, tag: str) -> int:
        """Return the last step of a scalar that it has read."""
        try:
            answer = self._answer(f"data/plugin/scalars/scalars?run=.&tag={tag}")
        except urllib.error.HTTPError:
            return -1
        return int(json.loads(answer or b"[[0, -1]]")[-1][1])

    def _answer(self, path: str) -> bytes | None:
        try:
            with urllib.request.urlopen(f"{self.origin}/{path}", timeout=60) as answer:
                return bytes(answer.read())
        except urllib.error.HTTPError:
            raise
        except OSError:  # it does not listen yet
            if self._process.poll() is not None:
                raise SystemExit("TensorBoard has ended") from None
            return None


def peak_of(process: int) -> float:
    """Return the largest memory that a process had, in megabytes."""
    try:
        text = Path(f"/proc/{process}/status").read_text()
    except OSError:  # it has ended
        return 0.0
    found = re.search(r"VmHWM:\s+(\d+)", text)
    return int(found[1]) / MB if found else 0.0


def _children(process: int) -> list[int]:
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = status.read_text().rpartition(")")[2].split()[1]
        except OSError:
            continue
        if int(parent) == process:
            child = int(status.parent.name)
            found += [child, *_children(child)]
    return found
