"""The line of a user's code that is being executed."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType


def place_in(frame: FrameType | None) -> str:
    """Return the innermost line of code that is neither ours nor Python's; else the innermost of all."""
    ours = (str(Path(__file__).parents[2]), sys.base_prefix, sys.prefix, "<")
    innermost = frame
    while frame is not None:
        if not frame.f_code.co_filename.startswith(ours):
            return _line(frame)
        frame = frame.f_back
    return _line(innermost) if innermost is not None else "an unknown line"


def _line(frame: FrameType) -> str:
    return f"{frame.f_code.co_filename}, line {frame.f_lineno}"
