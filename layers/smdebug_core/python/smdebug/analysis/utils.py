"""Whether trials look for news, and arguments that arrive as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from smdebug.exceptions import SMDebugTypeError, SMDebugValueError

if TYPE_CHECKING:
    from smdebug.trials.trial import Trial


@contextmanager
def no_refresh(trials: Trial | Iterable[Trial]) -> Iterator[None]:
    """Inside the block, the trial or trials stay as they are: nothing new is looked for."""
    with _refreshing(trials, False):
        yield


@contextmanager
def refresh(trials: Trial | Iterable[Trial]) -> Iterator[None]:
    """Inside the block, queries to the trial or trials look for news, whatever was in force before."""
    with _refreshing(trials, True):
        yield


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
