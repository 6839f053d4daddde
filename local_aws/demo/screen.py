"""The terminal of the demo."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO


class Screen:
    """Prints lines, in colour on a terminal."""

    def __init__(self, out: IO[str]):
        self._out = out
        self._plain = bool(os.environ.get("NO_COLOR")) or not out.isatty()
        self._began = time.monotonic()

    def line(self, text: str) -> None:
        print(text, file=self._out, flush=True)

    def event(self, run: str, text: str) -> None:
        """Print an event of a run, with the seconds since `start_clock`."""
        self.line(f"  {time.monotonic() - self._began:7.1f}  {run:<9}{text}")

    def start_clock(self) -> None:
        self._began = time.monotonic()

    @contextmanager
    def progress(self, task: str) -> Iterator[None]:
        """Print the task, dots while it runs, and its duration."""
        began = time.monotonic()
        print(f"{task} ...", end="", file=self._out, flush=True)
        done = threading.Event()

        def dots() -> None:
            while not done.wait(2.0):
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
