"""SIGTERM while a run is open: the run is closed as an interrupted one, then the process ends as always.

Schedulers and spot instances send it some seconds before they kill. Its default ends a process at once, and
with it the scalars that wait for the next saved step. A handler that the script or its framework has set
stays, and is the one that is called.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable
from typing import Any

End = Callable[[], object]

_ends: list[End] = []


def before_termination(end: End) -> None:
    """Call `end` before a SIGTERM ends this process, if nothing else handles that signal."""
    if not _ends and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        with contextlib.suppress(ValueError):  # handlers can be set in the main thread alone
            signal.signal(signal.SIGTERM, _terminate)
    _ends.append(end)


def leave_termination(end: End) -> None:
    """Do not call `end` any more. Doing so twice changes nothing."""
    if end in _ends:
        _ends.remove(end)
    if not _ends:
        _restore()


def _restore() -> None:
    if signal.getsignal(signal.SIGTERM) is _terminate:
        with contextlib.suppress(ValueError):
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _terminate(number: int, frame: Any) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a second one ends the process at once
    for end in [*_ends]:
        with contextlib.suppress(Exception):
            end()
    os.kill(os.getpid(), signal.SIGTERM)


def _forget_in_a_child() -> None:
    """A forked child has no runs to end: its parent has."""
    _ends.clear()
    _restore()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_a_child)
