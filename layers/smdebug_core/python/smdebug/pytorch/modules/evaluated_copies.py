"""A copy of the untrained model that is evaluated in its place, such as a mean of the weights.

It is called between two steps of the training alone, several times in a row. A criterion that is called
without gradients there shows where to look: modules are looked at until the training goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakSet, ref

from torch import nn
from torch.nn.modules.module import register_module_forward_pre_hook

from smdebug.pytorch.listening.callbacks import AGAIN, has_compiled, is_compiling, is_tracing
from smdebug.pytorch.modules.copies import Copies, Named, OnCall, Unchanged
from smdebug.pytorch.modules.names import class_name

LEAST_CALLS = 3
"""An evaluation calls a copy so many times without a backward pass in between, at least."""
_MOST_SEARCHES = 4


class EvaluatedCopies:
    """Finds one such copy, and counts how often it was evaluated without having changed."""

    def __init__(self, copies: Copies, passes: Callable[[], int], leave_out: Callable[[Exception], object]):
        """`passes` tells how many backward passes there have been."""
        self._copies = copies
        self._passes = passes
        self._leave_out = leave_out
        self._searches = 0
        self._others: WeakSet[nn.Module] = WeakSet()
        """Modules that are no copies."""
        self._handle: Any = None
        self._copy: ref[nn.Module] | None = None
        self._unchanged: Unchanged | None = None
        self._at = -1
        """How many backward passes there had been when it was called last, and how often it was since:"""
        self._calls = 0
        self.criteria = 0
        """How many criteria were called without gradients, and how many of them before these calls:"""
        self._criteria_before = 0
        self._was_evaluated = False
        self._evaluations = 0

    @property
    def are_sought(self) -> bool:
        """Whether modules are looked at, or a copy was found."""
        return self._handle is not None or self._copy is not None

    @property
    def is_searched(self) -> bool:
        """Whether a criterion that is called without gradients shows where to look."""
        return self._searches < _MOST_SEARCHES and self._handle is None and self._copy is None

    def begin_step(self, trained: Named, *, is_evaluated: bool) -> dict[str, Any] | None:
        """Begin a saved step; return what is known of a copy that was evaluated since the one before.

        Where the trained model `is_evaluated`, a copy may be there to compare with, and nothing is known.
        """
        try:
            self.close()
            if is_evaluated or has_compiled():
                self._give_up()
            return self._begin_step(trained)
        except Exception as error:  # noqa: BLE001 - whatever it is, the training continues
            self._fail(error)
            return None

    def _begin_step(self, trained: Named) -> dict[str, Any] | None:
        copy, unchanged = None if self._copy is None else self._copy(), self._unchanged
        if copy is None or unchanged is None:
            return None
        facts = None
        if self._was_evaluated:
            self._was_evaluated = False
            if not unchanged.holds(copy) or not unchanged.has_moved(trained):
                self._give_up()
                return None
            self._evaluations += 1
            facts = {"model": class_name(copy), "of": unchanged.of, "evaluations": self._evaluations}
        self._handle = copy.register_forward_pre_hook(OnCall(self._called))
        return facts

    def search(self) -> None:
        """Look at the modules that are called until the trained model is."""
        if has_compiled() or AGAIN.runs:
            return
        self._searches += 1
        self._handle = register_module_forward_pre_hook(self._before_any_forward)

    def close(self) -> None:
        """Watch no calls."""
        if self._handle is not None:
            self._handle.remove()
            self._handle = None

    def leave(self) -> None:
        """Search no more: a graph is about to be compiled, which would be compiled again."""
        self.close()
        self._give_up()

    def _give_up(self) -> None:
        self._searches, self._copy, self._unchanged = _MOST_SEARCHES, None, None

    def _fail(self, error: Exception) -> None:
        self.leave()
        self._leave_out(error)

    def _before_any_forward(self, module: nn.Module, args: Any) -> None:
        try:
            if AGAIN.runs or is_compiling() or is_tracing() or module in self._others:
                return
            if self._copies.is_trained(module):
                self.close()
                return
            unchanged = self._copies.unchanged(module)
            if unchanged is None:  # its parts are not looked at either: a mean may not move in some
                for part in module.modules():
                    self._others.add(part)
                return
            self.close()
            self._copy, self._unchanged = ref(module), unchanged
            self._handle = module.register_forward_pre_hook(OnCall(self._called))
            self._called()
        except Exception as error:  # noqa: BLE001 - whatever it is, the training continues
            self._fail(error)

    def _called(self) -> None:
        if AGAIN.runs:
            return
        passes = self._passes()
        if passes != self._at:
            if self._evaluations and 0 < self._calls < LEAST_CALLS:  # the training calls it, too
                self.leave()
                return
            self._at, self._calls, self._criteria_before = passes, 0, self.criteria
        self._calls += 1
        if self._calls >= LEAST_CALLS:
            self._was_evaluated = True
            self.close()
            if self.criteria - self._criteria_before < LEAST_CALLS - 1:  # it gives both sides of a distance
                self._give_up()
