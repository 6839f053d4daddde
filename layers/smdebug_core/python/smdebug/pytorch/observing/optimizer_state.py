"""What is known of an optimizer from step to step, and what can be read from it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Any
from weakref import ref

import torch
from torch import nn

from smdebug.pytorch.listening.optimizers import optimizers, owned_by
from smdebug.pytorch.listening.process import PROCESS

_MOST_WAITING = 64
_MOST_KEPT = 1 << 14
"""A gradient of more values is not kept to be compared."""


class OptimizerState:
    """What is known of one optimizer since its last step."""

    __slots__ = (
        "added_since",
        "found_gradient",
        "left_gradient",
        "number",
        "rates",
        "stepped_at",
        "stepped_clear",
        "updates_before",
        "used_gradient",
        "was_clear",
        "witness",
    )

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
        self.left_gradient: ref[torch.Tensor] | None = None
        """Its gradient as the last backward pass left it, if it was not empty before."""
        self.found_gradient: tuple[ref[torch.Tensor], int] | None = None
        """The gradient that the last backward pass has found, and how often it had been written by then."""
        self.added_since = -1
        """What `stepped_at` was when a backward pass last added to that gradient."""
        self.rates: list[Any] | None = None
        self.used_gradient: tuple[ref[torch.Tensor], torch.Tensor] | None = None
        """The gradient that its last saved step has used, and its values."""
        self.updates_before: int | None = None
        """How many updates its moments had seen when it was met; None if it keeps none, or does not say."""

    @property
    def gradient(self) -> torch.Tensor | None:
        """The gradient of the witness."""
        parameter = None if self.witness is None else self.witness()
        return None if parameter is None else parameter.grad

    def use(self) -> None:
        """Keep the gradient that a step is about to use."""
        gradient = self.gradient
        self.used_gradient = None
        if gradient is not None and gradient.numel() <= _MOST_KEPT:
            self.used_gradient = ref(gradient), gradient.detach().clone()

    def has_used(self) -> Any:
        """Whether the gradient is that of the step before; of a device, a tensor that says so."""
        gradient = self.gradient
        if gradient is None or self.used_gradient is None:
            return False
        used, values = self.used_gradient
        if id(used()) != id(gradient):
            return False
        flag = (values == gradient.detach()).all()
        return bool(flag) if gradient.is_cpu else flag

    def is_replaced(self) -> bool:
        """Return whether the training has set the gradient to another tensor, or has alone written it.

        Nothing was added to that one: it was computed otherwise, as from weights that were trained elsewhere.
        """
        gradient = self.gradient
        if gradient is None:
            return False
        if self.added_since != self.stepped_at:
            return self.found_gradient is not None
        return self.left_gradient is not None and self.left_gradient() is not gradient


class LeftGradients:
    """Notes which gradients backward passes leave, of optimizers whose gradients were not seen empty."""

    def __init__(self, states: Iterable[OptimizerState], fail: Callable[[Exception], None]):
        self._states = states
        self.fail = fail
        PROCESS.add(self)

    def before_backward(self, tensors: Any, is_retained: bool) -> None:
        for state in self._states:
            if state.was_clear or (gradient := state.gradient) is None:
                state.found_gradient = None
            else:
                state.found_gradient = ref(gradient), gradient._version

    def after_backward(self) -> None:
        for state in self._states:
            if not state.was_clear and (gradient := state.gradient) is not None:
                version = gradient._version
                known, before = state.found_gradient or (None, version)
                if known is None or known() is not gradient or before != version:
                    state.added_since = state.stepped_at
                state.left_gradient = ref(gradient)

    def close(self) -> None:
        """Stop noting."""
        PROCESS.discard(self)


class IdleOptimizers:
    """The optimizers of parameters that get gradients, as long as these optimizers have made no step."""

    def __init__(self) -> None:
        self._waiting: list[tuple[str, ref[torch.Tensor]]] = []
        """Trainable parameters that no optimizer has which has made a step."""
        self._clear: set[str] = set()
        """Those whose gradients were seen empty since the step began."""
        self._steps = 0
        self._found: list[ref[Any]] = []

    def begin_step(self, parameters: Iterable[tuple[str, torch.Tensor]], stepped: Collection[Any]) -> None:
        """Begin a step that is saved: `stepped` are the optimizers that have made steps."""
        self._clear = set()
        self._waiting = []
        if stepped:
            owned = {id(each) for optimizer in stepped for each in owned_by(optimizer)}
            waiting = [each for each in parameters if each[1].requires_grad and id(each[1]) not in owned]
            self._waiting = [(name, ref(parameter)) for name, parameter in waiting[:_MOST_WAITING]]

    def before_backward(self) -> None:
        """Note which gradients are empty."""
        for name, known in self._waiting:
            parameter = known()
            if name not in self._clear and parameter is not None and _is_empty(parameter.grad):
                self._clear.add(name)

    def facts(self, stepped: Collection[Any]) -> Callable[[], list[dict[str, Any]]] | None:
        """Return what names the class of each, its parameters with gradients, and whether these were reset.

        It is called in the background, as it may wait for a device. None if there is no such optimizer.
        """
        learning = {
            id(parameter): (name, parameter.grad)
            for name, known in self._waiting
            if (parameter := known()) is not None and parameter.grad is not None
        }
        if not learning:
            return None
        self._steps += 1
        # To find optimizers takes long, and they rarely come later.
        if self._steps > 1 and not self._steps & (self._steps - 1):
            self._found = [ref(each) for each in optimizers() if each not in stepped]
        found = []
        for known_optimizer in self._found:
            optimizer = known_optimizer()
            if optimizer is None or optimizer in stepped:
                continue
            own = [learning[id(each)] for each in owned_by(optimizer) if id(each) in learning]
            flags = [(name, _has_values(gradient)) for name, gradient in own]
            are_reset = self._clear.issuperset(name for name, _ in own)
            found.append((type(optimizer).__name__, flags, are_reset))
        return partial(_idle_facts, found) if any(flags for _, flags, _ in found) else None


def _idle_facts(found: list[tuple[str, list[tuple[str, Any]], bool]]) -> list[dict[str, Any]]:
    noted = []
    for kind, flags, are_reset in found:
        names = [name for name, flag in flags if bool(flag)]
        if names:
            noted.append({"class": kind, "parameters": names, "are_reset": are_reset})
    return noted


def _has_values(gradient: torch.Tensor) -> Any:
    """Whether a gradient is not all zero: of a device that must not be waited for, a tensor that says so."""
    if gradient.layout is not torch.strided:
        return False
    flag = gradient.detach().any()
    return bool(flag) if gradient.is_cpu else flag


def _is_empty(gradient: torch.Tensor | None) -> bool:
    return gradient is None or (gradient.is_cpu and not bool(gradient.any()))


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
        for parameter in owned_by(optimizer)
        if parameter.grad is not None and parameter.grad.layout is torch.strided
    ]
    for parameter in sorted(candidates, key=lambda candidate: candidate.numel())[:8]:
        if not parameter.is_cpu or bool(parameter.grad.any()):
            return ref(parameter)
    return None


def is_clear(gradient: torch.Tensor | None) -> bool:
    """Return whether the gradient of a witness has nothing but zeros."""
    # Reading a GPU would wait for it: zeros count as a reset if they were written in place.
    return gradient is None or not gradient.is_cpu or not bool(gradient.any())


def owners_among(known: Iterable[Any], models: Iterable[tuple[nn.Module, str]]) -> int:
    """Return how many of the optimizers have parameters of the models that no other one has."""
    free = {id(parameter) for model, _ in models for parameter in model.parameters()}
    count = 0
    for optimizer in known:
        own = set(map(id, owned_by(optimizer))) & free
        count += bool(own)
        free -= own
    return count
