"""Moves saved steps to those that update parameters, where gradients are accumulated.

A step is a forward pass. If the optimizer steps after every fourth, every tenth may never be one
of them: no update would be seen, and gradients only as far as they were summed.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from smdebug.saving.planning.save_plan import NO_MEMBERS, Members

_PATIENCE = 2
"""How many groups of batches a saved step waits for the update that was expected."""


class _Waiting(NamedTuple):
    due: Members
    since: int


class Accumulation:
    """The steps of training after which an optimizer updates parameters, if they are regular."""

    def __init__(self) -> None:
        self._updates: tuple[int, ...] = ()
        self._next = 0
        """The step of the next update, while each of the last ones had one; 0 while they had not."""
        self._waiting: _Waiting | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether a step is due, and postponed to the next update."""
        return self._waiting is not None

    @property
    def batches(self) -> int:
        """How many steps there are from update to update."""
        return max((after - before for before, after in pairwise(self._updates)), default=1)

    def updated(self, mode_step: int) -> None:
        """Note that parameters were updated at this step."""
        if mode_step == self._next:
            self._next += 1
            return
        if self._next:
            self._updates = (self._next - 3, self._next - 2, self._next - 1)
        if not self._updates or mode_step > self._updates[-1]:
            self._updates = (*self._updates[-2:], mode_step)
        first, last = self._updates[0], self._updates[-1]
        self._next = last + 1 if len(self._updates) == 3 and last - first == 2 else 0

    def forget(self) -> None:
        """Expect no regular interval: there are several optimizers, or one computes gradients itself."""
        self._updates, self._next, self._waiting = (), 0, None

    def placed(self, due: Members, mode_step: int, *, is_next_due: bool) -> Members:
        """Return what to save at this step: what is due, unless the update has not happened yet."""
        if self._waiting is not None:
            due |= self._waiting.due
        elif not due or is_next_due:
            return due
        batches = self.batches
        if not self._updates or batches == 1:
            self._waiting = None
            return due
        since = mode_step if self._waiting is None else self._waiting.since
        is_update = (mode_step - self._updates[-1]) % batches == 0
        if is_update or mode_step - since >= _PATIENCE * batches:
            self._waiting = None
            return due
        self._waiting = _Waiting(due, since)
        return NO_MEMBERS
