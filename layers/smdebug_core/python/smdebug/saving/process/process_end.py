"""Whether this process ends without an error, for a hook that is not closed when the interpreter ends.

An uncaught exception is left in `sys.last_value`. `sys.exit(1)` leaves no trace, so while an end is watched,
`sys.exit` raises a `SystemExit` that notices when the interpreter itself reads its code, which happens at the
end; the code of an exit that was caught is read by Python code or not at all. What is not noticed:
`raise SystemExit(1)`, `exit(1)`, and a `sys.exit` that was imported by name beforehand.
"""

from __future__ import annotations

import sys
import threading
from types import TracebackType
from typing import Any, NoReturn

from smdebug.exceptions import RunEnded, TrainingStopped
from smdebug.plain_text import escaped


class ProcessEnd:
    """Watches the end of this process. Earlier errors do not count."""

    _watchers = 0

    def __init__(self) -> None:
        self._error_before = _unhandled_error()
        self._watches = True
        ProcessEnd._watchers += 1
        if ProcessEnd._watchers == 1:
            _watch()

    def is_good(self) -> bool:
        """Return whether the process ends without an error, as far as can be known."""
        error = _unhandled_error()
        stopped = isinstance(error, TrainingStopped)  # stopped on purpose, even if uncaught
        return stopped or (error is self._error_before and is_success(_Exit.code_at_the_end))

    def leave(self) -> None:
        """Stop watching. Doing so twice changes nothing."""
        if self._watches:
            self._watches = False
            ProcessEnd._watchers -= 1
            if ProcessEnd._watchers == 0 and sys.exit is _exit:
                sys.exit = _exit_before


def is_success(code: object) -> bool:
    """Return whether that exit code means success."""
    return code is None or code == 0


def _unhandled_error() -> object:
    """Return the uncaught exception, if the interpreter has seen one."""
    return getattr(sys, "last_value", None)


class _Exit(SystemExit):
    """A `SystemExit` that notices when it ends the process."""

    code_at_the_end: object = None

    @property
    def code(self) -> Any:
        code = _code.__get__(self)
        try:
            sys._getframe(1)
        except ValueError:  # no Python code reads it: the interpreter is ending
            _Exit.code_at_the_end = code
        return code

    @code.setter
    def code(self, code: Any) -> None:
        _code.__set__(self, code)


# the name of what `sys.exit` raises, in tracebacks and messages
_Exit.__name__ = _Exit.__qualname__ = SystemExit.__name__


class RunEndedExit(RunEnded, _Exit):
    """A `RunEnded` that ends a script with its message and exit code 1 unless it is caught."""

    def __init__(self, path: str, free_place: str | None = None):
        super().__init__(path, free_place)
        self.code = f"smdebug: {self}"


def run_ended(path: str, free_place: str | None = None) -> RunEnded:
    """Return the error to raise for a place with a finished run.

    A `SystemExit` would end an interactive session, and end a thread silently.
    """
    is_prompt = hasattr(sys, "ps1")
    is_script = not is_prompt and threading.current_thread() is threading.main_thread()
    return RunEndedExit(path, free_place) if is_script else RunEnded(path, free_place)


def end_without_traceback() -> None:
    """Let an uncaught `TrainingStopped` end the script with a line; its traceback would be our own code.

    A hook that somebody has set stays: it may report how scripts end.
    """
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _print_uncaught


def _print_uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    is_alone = error.__context__ is None and error.__cause__ is None  # no error of the user's own
    if isinstance(error, TrainingStopped) and is_alone and not hasattr(sys, "ps1"):
        print(
            f"smdebug: {escaped(str(error))}. The script does not "
            "catch TrainingStopped, and ends with exit code 1.",
            file=sys.stderr,
        )
    else:
        sys.__excepthook__(kind, error, trace)


_code: Any = vars(SystemExit)["code"]
_exit_before = sys.exit


def _exit(status: Any = None, /) -> NoReturn:
    """`sys.exit`, while the end of the process is watched."""
    try:
        _exit_before(status)
    except SystemExit as leaving:
        if type(leaving) is not SystemExit:  # another library's
            raise
        arguments = leaving.args
    raise _Exit(*arguments)


def _watch() -> None:
    global _exit_before
    if sys.exit is not _exit:
        _exit_before = sys.exit
        sys.exit = _exit
