"""What is known of an optimizer from step to step, and what can be read from it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from weakref import ref

import torch
from torch import nn


class OptimizerState:
    """What is known of one optimizer since its last step."""

    __slots__ = ("number", "rates", "stepped_at", "stepped_clear", "updates_before", "was_clear", "witness")

    def __init__(self, number: int = 0) -> None:
        self.stepped_at = 0
        """How many backward passes there had been at its last step."""
        self.number = number
        """How many optimizers this process had seen before."""
        self.stepped_clear = True
        """Whether its gradients had been reset before its last step."""
        self.was_clear = True
        """Whether its gradients were seen empty since its last step."""
        self.witness: ref[torch.Tensor] | None = None
        """A small parameter that had a gradient at the last step."""
        self.rates: list[Any] | None = None
        self.updates_before: int | None = None
        """How many updates its moments had seen when it was met; None if it keeps none, or does not say."""


def rates_of(optimizer: Any) -> list[Any]:
    """The learning rates of the optimizer's groups."""
    return [group.get("lr") for group in optimizer.param_groups]


def updates_seen(optimizer: Any) -> int | None:
    """Return how many updates its moments have seen; None if it keeps none or does not say."""
    if not any(group.get("betas") or group.get("momentum") for group in optimizer.param_groups):
        return None
    if not optimizer.state:
        return 0
    first = next(iter(optimizer.state.values()))
    count = first.get("step") if isinstance(first, dict) else None
    if isinstance(count, torch.Tensor):
        return int(count) if count.is_cpu and count.numel() == 1 else None
    return count if isinstance(count, int) else None


def closure_of(args: Any, kwargs: Any) -> Any:
    """What an optimizer's step was given to compute gradients with; libraries often pass None."""
    return args[1] if len(args) > 1 else kwargs.get("closure")


def witness_of(optimizer: Any) -> ref[torch.Tensor] | None:
    """The smallest parameter that has a gradient that is not all zero."""
    candidates = [
        parameter
        for group in optimizer.param_groups
        for parameter in group["params"]
        if parameter.grad is not None and parameter.grad.layout is torch.strided
    ]
    for parameter in sorted(candidates, key=lambda candidate: candidate.numel())[:8]:
        if not parameter.is_cpu or bool(parameter.grad.any()):
            return ref(parameter)
    return None


def is_clear(parameter: torch.Tensor) -> bool:
    """Return whether the gradient of a witness has nothing but zeros."""
    # Reading a GPU would wait for it: zeros count as a reset if they were written in place.
    gradient = parameter.grad
    return gradient is None or not parameter.is_cpu or not bool(gradient.any())


def owners_among(known: Iterable[Any], models: Iterable[tuple[nn.Module, str]]) -> int:
    """Return how many of the optimizers have parameters of the models that no other one has."""
    free = {id(parameter) for model, _ in models for parameter in model.parameters()}
    count = 0
    for optimizer in known:
        own = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]} & free
        count += bool(own)
        free -= own
    return count
