"""SIGTERM while a run is open: the run is closed as an interrupted one, then the process ends as usual.

Schedulers and spot instances send it some seconds before SIGKILL. Its default ends a process at once, and
with it the scalars that wait for the next saved step. A handler that the script or its framework has set
stays, and is the one that is called.

Python calls a handler between two steps of its own code, never while a library computes or waits, as in a
collective whose other ranks are gone. `_Watchman` is a thread that closes the runs in that case. It also ends
the process if closing takes too long.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

End = Callable[[], object]

RESPONSE_SECONDS = 5.0
"""How long the training may compute until the runs are closed beside it."""
CLOSING_SECONDS = 20.0
"""How long closing may take, so that the process ends within the 30 seconds that Kubernetes gives it."""

_ends: list[End] = []
_has_begun = threading.Event()
_closing = threading.Lock()
_watchman: _Watchman | None = None


def before_termination(end: End) -> None:
    """Call `end` before a SIGTERM ends this process, if nothing else handles that signal."""
    global _watchman
    if not _ends and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        with contextlib.suppress(ValueError):  # handlers can be set in the main thread alone
            signal.signal(signal.SIGTERM, _terminate)
            _watchman = _Watchman()
    _ends.append(end)


def leave_termination(end: End) -> None:
    """Stop calling `end`. Doing so twice changes nothing."""
    if end in _ends:
        _ends.remove(end)
    if not _ends:
        _restore()


def _restore() -> None:
    global _watchman
    with contextlib.suppress(ValueError):
        if signal.getsignal(signal.SIGTERM) is _terminate:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if _watchman is not None:
            _watchman.leave()
            _watchman = None


def _terminate(number: int, frame: Any) -> None:
    _has_begun.set()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a second one ends the process at once
    _close_runs()
    os.kill(os.getpid(), signal.SIGTERM)


def _close_runs() -> None:
    with _closing:  # a training that goes on while its runs are closed beside it waits for that
        for end in [*_ends]:
            with contextlib.suppress(Exception):
                end()


class _Watchman:
    """Notices a SIGTERM while the main thread does not, by the byte that Python writes for each signal."""

    def __init__(self) -> None:
        self._reads, self._writes = os.pipe()
        os.set_blocking(self._writes, False)
        self._before = signal.set_wakeup_fd(self._writes, warn_on_full_buffer=False)
        if self._before == -1:
            threading.Thread(target=self._watch, name="smdebug-sigterm", daemon=True).start()
        else:  # an event loop has to hear of signals
            self.leave()

    def leave(self) -> None:
        """Watch no more."""
        current = signal.set_wakeup_fd(-1)
        if current != self._writes:  # somebody else's since, or there was one before
            signal.set_wakeup_fd(current)
        elif self._before != -1:
            signal.set_wakeup_fd(self._before)
        os.close(self._writes)  # the thread reads the end, and returns
        if self._before != -1:
            os.close(self._reads)

    def _watch(self) -> None:
        while signals := os.read(self._reads, 64):
            if signal.SIGTERM in signals and self._is_ours():
                if _has_begun.wait(RESPONSE_SECONDS):
                    time.sleep(CLOSING_SECONDS)  # the end of which only a process sees that hangs
                    _take_default()
                else:
                    _take_default()
                    closing = threading.Thread(target=_close_runs, daemon=True)
                    closing.start()
                    closing.join(CLOSING_SECONDS)
                os.kill(os.getpid(), signal.SIGTERM)
        os.close(self._reads)

    def _is_ours(self) -> bool:
        return _has_begun.is_set() or signal.getsignal(signal.SIGTERM) is _terminate


def _take_default() -> None:
    """Let SIGTERM end the process at once. Python itself sets handlers in the main thread alone."""
    import ctypes

    ctypes.pythonapi.PyOS_setsig(int(signal.SIGTERM), None)


def _forget_in_a_child() -> None:
    """A forked child has no runs to end: its parent has, and the pipe that signals are written to."""
    _ends.clear()
    _restore()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_a_child)
