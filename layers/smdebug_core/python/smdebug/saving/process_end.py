"""Did this process end well? Asked when the interpreter ends, of a training whose hook nobody closed.

An exception that nobody caught is left in `sys.last_value`. `sys.exit(1)` leaves no trace, so while somebody
watches, `sys.exit` raises a `SystemExit` that notices when the interpreter itself asks for its code: that is
the end, whereas an exit that was caught is asked by those who caught it, or by nobody. What remains unseen
is `raise SystemExit(1)` by hand, `exit(1)`, and a `sys.exit` that was imported by name beforehand.
"""

from __future__ import annotations

import sys
from typing import Any, NoReturn

from smdebug.exceptions import TrainingStopped


class ProcessEnd:
    """What is known of the end of this process; what was there before is not counted."""

    _watchers = 0

    def __init__(self) -> None:
        self._error_before = _unhandled_error()
        self._watches = True
        ProcessEnd._watchers += 1
        if ProcessEnd._watchers == 1:
            _watch()

    def is_good(self) -> bool:
        """Has it come to its end without an error, as far as can be known?"""
        error = _unhandled_error()
        stopped = isinstance(error, TrainingStopped)  # an end on purpose, also if nobody caught it
        return stopped or (error is self._error_before and is_success(_Exit.code_at_the_end))

    def leave(self) -> None:
        """Watch no longer. Doing so twice changes nothing."""
        if self._watches:
            self._watches = False
            ProcessEnd._watchers -= 1
            if ProcessEnd._watchers == 0 and sys.exit is _exit:
                sys.exit = _exit_before


def is_success(code: object) -> bool:
    """Does a process that exits with that code say that all went well?"""
    return code is None or code == 0


def _unhandled_error() -> object:
    """The exception that nobody caught, if the interpreter has come across one."""
    return getattr(sys, "last_value", None)


class _Exit(SystemExit):
    """A `SystemExit` that notices when it ends the process."""

    code_at_the_end: object = None

    @property
    def code(self) -> Any:
        code = _code.__get__(self)
        try:
            sys._getframe(1)
        except ValueError:  # no code in Python asks: it is the interpreter, which ends
            _Exit.code_at_the_end = code
        return code

    @code.setter
    def code(self, code: Any) -> None:
        _code.__set__(self, code)


_code: Any = vars(SystemExit)["code"]
_exit_before = sys.exit


def _exit(status: Any = None, /) -> NoReturn:
    """`sys.exit`, while the end of the process is watched."""
    try:
        _exit_before(status)
    except SystemExit as leaving:
        if type(leaving) is not SystemExit:  # somebody else's
            raise
        arguments = leaving.args
    raise _Exit(*arguments)


def _watch() -> None:
    global _exit_before
    if sys.exit is not _exit:
        _exit_before = sys.exit
        sys.exit = _exit
