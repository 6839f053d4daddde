"""Which lines of a room are executed: while its tests are imported, and by each test."""

from __future__ import annotations

import sys
import threading
from types import CodeType, FrameType
from typing import Any

Place = tuple[str, int]
"""A file and a line."""


class Lines:
    """Notes the lines of the files below a folder that are executed from `begin` to `end`.

    A function all of whose lines are noted is no longer followed, so that a loop does not cost its length.
    """

    def __init__(self, folder: str):
        self._folder = folder
        self._now: set[Place] = set()
        self._left: dict[CodeType, set[int]] = {}

    def begin(self) -> None:
        """Forget what was noted, and note from here on, in all threads that begin later, too."""
        self._now = set()
        self._left = {}
        threading.settrace(self._call)
        sys.settrace(self._call)

    def end(self) -> set[Place]:
        """Stop, and return what was noted."""
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]
        return self._now

    def _call(self, frame: FrameType, event: str, _: Any) -> Any:
        code = frame.f_code
        if not code.co_filename.startswith(self._folder):
            return None
        left = self._left.get(code)
        if left is None:
            left = self._left[code] = {line for *_, line in code.co_lines() if line}
        if not left:
            return None
        self._note(code, left, frame.f_lineno)

        def line(frame: FrameType, event: str, _: Any) -> Any:
            self._note(code, left, frame.f_lineno)
            return line if left else None

        return line

    def _note(self, code: CodeType, left: set[int], line: int) -> None:
        if line in left:
            left.discard(line)
            self._now.add((code.co_filename, line))
