"""What the demo looks like to whoever watches it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO


class Screen:
    """Where the demo writes, in colour if somebody sees it."""

    def __init__(self, out: IO[str]):
        self._out = out
        self._plain = bool(os.environ.get("NO_COLOR")) or not out.isatty()
        self._began = time.monotonic()

    def say(self, text: str) -> None:
        print(text, file=self._out, flush=True)

    def happen(self, run: str, text: str) -> None:
        """A line of what happens, with the time since the trainings began."""
        self.say(f"  {time.monotonic() - self._began:7.1f}  {run:<9}{text}")

    def begin(self) -> None:
        self._began = time.monotonic()

    @contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        began = time.monotonic()
        print(f"{what} ...", end="", file=self._out, flush=True)
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
        self.say(f" {time.monotonic() - began:.0f} s")

    def bold(self, text: str) -> str:
        return self._painted("1", text)

    def dim(self, text: str) -> str:
        return self._painted("2", text)

    def red(self, text: str) -> str:
        return self._painted("31", text)

    def green(self, text: str) -> str:
        return self._painted("32", text)

    def _painted(self, code: str, text: str) -> str:
        return text if self._plain else f"\033[{code}m{text}\033[0m"
