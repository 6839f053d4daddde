"""Whether trials look for news, and arguments that arrive as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, TypeVar

from smdebug.exceptions import SMDebugTypeError, SMDebugValueError

Trials = TypeVar("Trials")  # a trial, or a list of trials


@contextmanager
def no_refresh(trials: Trials) -> Iterator[Trials]:
    """Keep a trial, or each trial of a list, as it is inside the block; give back what was given."""
    with _refreshing(trials, False):
        yield trials


@contextmanager
def refresh(trials: Trials) -> Iterator[Trials]:
    """Refresh a trial, or each trial of a list, at every query inside the block; give back what was given."""
    with _refreshing(trials, True):
        yield trials


@contextmanager
def _refreshing(trials: Any, wanted: bool) -> Iterator[None]:
    several = trials if isinstance(trials, (list, tuple, set, frozenset)) else [trials]
    with ExitStack() as until_the_end:
        for trial in several:
            until_the_end.enter_context(trial.refreshing(wanted))
        yield


def parse_list_from_str(arg: str | Iterable[str] | None, delimiter: str = ",") -> list[str]:
    """The parts of "a,b", as they stand; a list stays one, and None or "" are the empty list."""
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
