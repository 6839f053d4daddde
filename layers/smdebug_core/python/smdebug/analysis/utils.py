"""Switch the refreshing of trials on and off, and parse arguments given as text."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ContextDecorator
from typing import Any, Generic, TypeVar

from smdebug.exceptions import SMDebugTypeError, SMDebugValueError

Trials = TypeVar("Trials")  # a trial, or a list of trials


def no_refresh(trials: Trials) -> _Refreshing[Trials]:
    """Do not refresh a trial, or any trial of a list, inside the block, which gets the argument."""
    return _Refreshing(trials, False)


def refresh(trials: Trials) -> _Refreshing[Trials]:
    """Refresh a trial, or each trial of a list, at every query inside the block, which gets the argument."""
    return _Refreshing(trials, True)


class _Refreshing(ContextDecorator, Generic[Trials]):
    """A block for several trials. A class, not a generator, because every rule enters one at every step."""

    def __init__(self, trials: Trials, wanted: bool):
        self._trials = trials
        self._wanted = wanted
        self._entered: list[list[Any]] = []

    def __enter__(self) -> Trials:
        trials: Any = self._trials
        several = trials if isinstance(trials, (list, tuple, set, frozenset)) else [trials]
        blocks = [trial.refreshing(self._wanted) for trial in several]
        for block in blocks:
            block.__enter__()
        self._entered.append(blocks)
        return self._trials

    def __exit__(self, *error: object) -> None:
        for block in reversed(self._entered.pop()):
            block.__exit__(None, None, None)


def parse_list_from_str(arg: str | Iterable[str] | None, delimiter: str = ",") -> list[str]:
    """Return the parts of "a,b" unchanged; a list is returned as it is, None and "" as the empty list."""
    if arg is None or arg == "":
        return []
    if isinstance(arg, str):
        return arg.split(delimiter)
    if isinstance(arg, list | tuple | set | frozenset):
        return list(arg)
    raise SMDebugTypeError(f"A list, or text with {delimiter!r} in it, was expected, not {arg!r}")


def parse_bool(arg: bool | str | None, default: bool) -> bool:
    """True or False, also as text, in any case; `default` for None."""
    if arg is None:
        return default
    if isinstance(arg, bool | int) and arg in (0, 1):
        return bool(arg)
    if isinstance(arg, str) and arg.strip().lower() in ("true", "false"):
        return arg.strip().lower() == "true"
    raise SMDebugValueError(f"true or false was expected, not {arg!r}")
