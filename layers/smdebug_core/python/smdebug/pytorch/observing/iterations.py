"""Which forward of a model begins the next iteration of its training, as a person counts them.

An iteration ends with an update of the parameters. Until then the model may be called for both images of a
pair, for the chosen and the rejected answer, for each of the batches whose gradients are accumulated, or
again at perturbed weights. Where optimizers take turns, as those of a GAN, each has its turn in an iteration.

If updates fail to appear, because `optimizer.step()` is missing, each backward pass ends an iteration.
"""

from __future__ import annotations

from collections.abc import Callable

_MOST_PASSES = 64
"""Backward passes without an update after which each counts as an iteration; and for a first update, half."""
_MOST_RESETS = 2
"""The same before the first update where gradients are reset after each pass, so that none accumulate."""
_OBSERVED_CALLS = 4


class Iterations:
    """The iterations of one training. Optimizers are known by their numbers."""

    def __init__(self, optimizers: Callable[[], int]) -> None:
        """`optimizers` tells how many of them take turns. It is asked until all have had one."""
        self._optimizers = optimizers
        self.calls = 0
        """How often the model was called in this iteration."""
        self._passes = 0  # backward passes since the last update, or since the iteration began
        self._all_passes = 0  # of this iteration
        self._most_passes = 0  # before an update so far
        self._updated: set[int] = set()  # the optimizers that had their turn
        self._last = -1  # the optimizer that had the last turn
        self._next: dict[int, int] = {}  # which optimizer came after it
        self.is_repeated = False
        """Whether gradients were reset before they were used, and the loss is computed once more."""
        self._is_stalled = False

    @property
    def is_open(self) -> bool:
        """Whether the model was called to be trained, and no optimizer has updated it yet."""
        return self.calls > 0 and not self._updated

    @property
    def is_unused(self) -> bool:
        """Whether the model was called after its last update, with gradients that nothing has asked for."""
        return self._last >= 0 and self.is_open and not self._all_passes

    @property
    def is_observed(self) -> bool:
        """Whether the last call of the model is one of those that show what the iteration computes."""
        return not self._all_passes and self.calls <= _OBSERVED_CALLS

    def begins(self, is_updating: Callable[[], bool], *, after_evaluation: bool = False) -> bool:
        """Return whether a forward that is about to train begins an iteration, and count it.

        `is_updating` tells whether an optimizer calls the model. It is asked where that matters.
        """
        self.calls += 1
        if self.calls > 1 and not after_evaluation and not self._is_over(is_updating):
            return False
        self._passes = self._all_passes = 0
        self._updated.clear()
        self.is_repeated = False
        self.calls = 1
        return True

    def passed(self, are_clear: Callable[[], bool]) -> None:
        """Note that a backward pass begins. `are_clear` tells whether gradients were reset before it.

        It is asked only from the second pass on, while no optimizer has updated the model.
        """
        if self._passes and not self.is_repeated and self.is_open:
            self.is_repeated = are_clear()
        self._passes += 1
        self._all_passes += 1

    def updated(self, optimizer: int) -> None:
        """Note that an optimizer had its turn."""
        if self._last >= 0:
            self._next[self._last] = optimizer
        self._last = optimizer
        self._updated.add(optimizer)
        self._most_passes = max(self._most_passes, self._passes)
        self._passes = 0
        self._is_stalled = False

    def _is_over(self, is_updating: Callable[[], bool]) -> bool:
        if self._updated:
            following = self._next.get(self._last)
            if following is None:
                return len(self._updated) >= self._optimizers()
            return following in self._updated
        if not self._passes:
            return False
        if self._last >= 0:
            most = max(_MOST_PASSES, 4 * self._most_passes)
        else:
            most = _MOST_RESETS if self.is_repeated else _MOST_PASSES // 2
        if not self._is_stalled and self._passes >= most:
            self._is_stalled = not is_updating()
        return self._is_stalled
