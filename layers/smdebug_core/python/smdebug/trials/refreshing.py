"""Switch the refreshing of trials on and off."""

from __future__ import annotations

from contextlib import ContextDecorator
from typing import Any, Generic, TypeVar

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
