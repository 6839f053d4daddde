"""A plugin of pytest that notes which lines of a room each test executes, and how long the test takes."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from types import FrameType
from typing import Any

import pytest

ROOM = os.environ.get("MUTATE_ROOM", "")
RESULT = os.environ.get("MUTATE_LINES", "")

_tests: dict[str, float] = {}
_failed: set[str] = set()
_lines: dict[tuple[str, int], set[str]] = defaultdict(set)
_now: set[tuple[str, int]] = set()


def _line(frame: FrameType, event: str, _: Any) -> Any:
    _now.add((frame.f_code.co_filename, frame.f_lineno))
    return _line


def _call(frame: FrameType, event: str, _: Any) -> Any:
    if not frame.f_code.co_filename.startswith(ROOM):
        return None
    _now.add((frame.f_code.co_filename, frame.f_lineno))
    return _line


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Note the lines between the beginning and the end of a test."""
    _now.clear()
    begun = time.monotonic()
    threading.settrace(_call)
    sys.settrace(_call)
    try:
        return (yield)
    finally:
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]
        _tests[item.nodeid] = time.monotonic() - begun
        for place in list(_now):
            _lines[place].add(item.nodeid)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note a test that fails."""
    if report.failed:
        _failed.add(report.nodeid)


def pytest_sessionfinish() -> None:
    """Write what was noted."""
    places = [[file, line, sorted(tests)] for (file, line), tests in _lines.items()]
    # By its process: what starts the workers runs no tests, and may itself be started by a worker.
    with open(f"{RESULT}.{os.getpid()}", "w", encoding="utf-8") as file:  # noqa: PTH123
        json.dump({"tests": _tests, "lines": places, "failed": sorted(_failed)}, file)
