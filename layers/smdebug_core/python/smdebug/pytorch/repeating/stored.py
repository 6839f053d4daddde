"""Compares what a training stores with what it stored, and does its update again, at some steps.

Weights and optimizer state may not change from one update to the next, and gradients not between the backward
pass and the update, but by what PyTorch knows of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from weakref import ref

import torch

from smdebug.pytorch.listening.optimizers import named_in
from smdebug.pytorch.repeating.compared_digests import Digests, compared
from smdebug.pytorch.repeating.stored_copies import StoredCopies
from smdebug.pytorch.repeating.updated_copies import (
    can_repeat,
    digests_after_step,
    digests_now,
    state_tensors,
)

WEIGHTS, STATE, GRADIENTS = "stored_weights", "stored_state", "stored_gradients"
"""The names under which it is noted what has become of them."""
UPDATE = "update"


class Stored:
    """What one training stores, and what has become of it."""

    def __init__(self) -> None:
        self._weights, self._state, self._gradients = StoredCopies(), StoredCopies(), StoredCopies()
        self._expected: tuple[ref[Any], list[Digests]] | None = None
        """The optimizer whose step runs, and what it gave on copies."""

    def keep(self, optimizer: Any, names: Mapping[int, str]) -> None:
        """Copy the weights and the state of the optimizer: the step after its update is compared."""
        self._weights.keep(named_in(optimizer, names))
        self._state.keep(_states(optimizer, names))

    def keep_gradients(self, parameters: Sequence[tuple[str, torch.Tensor]]) -> None:
        """Copy the gradients of these parameters: the backward pass has ended."""
        self._gradients.keep((name, each.grad) for name, each in parameters if each.grad is not None)

    def before_update(self, optimizer: Any, names: Mapping[int, str]) -> dict[str, Any]:
        """Compare what the optimizer is about to use, and do its step on copies."""
        weights = named_in(optimizer, names)
        gradients = [(name, each.grad) for name, each in weights if each.grad is not None]
        found = {
            WEIGHTS: self._weights.compared(weights),
            STATE: self._state.compared(_states(optimizer, names)),
            GRADIENTS: self._gradients.compared(gradients),
        }
        self._expected = None
        if gradients and can_repeat(optimizer):
            self._expected = ref(optimizer), digests_after_step(optimizer, names)
        return {kind: change for kind, change in found.items() if change is not None}

    def after_update(self, optimizer: Any, names: Mapping[int, str]) -> dict[str, Any]:
        """Compare what the step of the optimizer has given with what it gave on copies."""
        expected, self._expected = self._expected, None
        if expected is None or expected[0]() is not optimizer:
            return {}
        return {UPDATE: compared(digests_now(optimizer, names), expected[1])}

    def forget(self) -> None:
        """Drop all copies."""
        self._weights.forget()
        self._state.forget()
        self._gradients.forget()
        self._expected = None


def together(before: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    """What was found of several optimizers at one step: the first change of each kind counts."""
    result = {**before}
    for kind, new in found.items():
        known = result.get(kind)
        if known is None or ("equal" in known and "equal" not in new):
            result[kind] = new
        elif "equal" in known and "equal" in new:
            result[kind] = {"equal": known["equal"] + new["equal"]}
    return result


def _states(optimizer: Any, names: Mapping[int, str]) -> list[tuple[str, torch.Tensor]]:
    return [
        found
        for name, each in named_in(optimizer, names)
        for found in state_tensors(name, optimizer.state.get(each, {}))
    ]
