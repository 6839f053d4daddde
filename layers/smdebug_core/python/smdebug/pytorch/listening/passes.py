"""Notes when the process begins to iterate over a `DataLoader`: a pass over data, such as an epoch.

Nothing is called for a batch. `DataLoader.__iter__` is replaced once, and does what it did before.
"""

from __future__ import annotations

import contextlib
import functools
from collections import deque
from dataclasses import dataclass
from typing import Any
from weakref import ref

from torch.utils.data import DataLoader

_MOST_KEPT = 16


@dataclass(frozen=True)
class Pass:
    """A pass over the data of a loader."""

    number: int
    loader: ref[Any]
    iterator: ref[Any]
    dataset: int
    """The `id` of the dataset, which no other one has while the iterator exists."""


class _Passes:
    """The passes that have begun in this process."""

    def __init__(self) -> None:
        self.count = 0
        """How many have begun."""
        self.considered = 0
        """How many of them belong to a training, or to none."""
        self._newest: deque[Pass] = deque(maxlen=_MOST_KEPT)
        self._is_installed = False

    def install(self) -> None:
        """Note passes from now on."""
        if self._is_installed:
            return
        self._is_installed = True
        passes, begin = self, DataLoader.__iter__

        @functools.wraps(begin)
        def noted_iter(loader: Any) -> Any:
            iterator = begin(loader)
            with contextlib.suppress(
                TypeError, AttributeError
            ):  # a subclass may return what has no references
                passes._newest.append(Pass(passes.count + 1, ref(loader), ref(iterator), id(loader.dataset)))
                passes.count += 1
            return iterator

        DataLoader.__iter__ = noted_iter

    def since(self, count: int) -> list[Pass]:
        """Return the passes after the first `count` that still go on, and note that they are considered."""
        self.considered = self.count
        return self.going_on(count)

    def going_on(self, count: int) -> list[Pass]:
        """Return the passes after the first `count` that still go on, such as that of a loop."""
        return [each for each in self._newest if each.number > count and each.iterator() is not None]


PASSES = _Passes()
