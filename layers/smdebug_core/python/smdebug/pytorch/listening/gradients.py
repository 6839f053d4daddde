"""The gradients of a step, as the optimizer sees them.

That is just before it changes the parameters: summed over batches and ranks, clipped, and divided by the loss
scale. If no optimizer runs within the step, because batches are being accumulated, it is their sum so far.
Unless there is an optimizer of `torch.optim`, the training may update the parameters and clear the gradients
itself: then the result of each backward is kept, too. That takes a callback of each parameter, and PyTorch
spends time on them in all backward passes, even once they are removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple
from weakref import ref

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from smdebug.pytorch.listening.optimizers import optimizers, owned_by

Record = Callable[[list[tuple[str, Any]]], None]
Named = tuple[str, nn.Parameter]


class Gradients:
    """Waits for the gradients that are wanted at a step, and records each of them once."""

    def __init__(
        self,
        record: Record,
        keep: Callable[[torch.Tensor], Any],
        after_accumulation: Callable[[torch.Tensor], None],
    ):
        self.has_optimizer = False  # one is known that updates our parameters
        self._was_sought = False
        self._record = record
        self._keep = keep
        self._after_accumulation = after_accumulation
        self._ours: set[int] = set()
        self._due: dict[int, Named] = {}
        self._before: dict[int, _State | None] = {}
        self._kept: dict[int, Any] = {}
        self._handles: list[Any] = []
        self._unused: frozenset[int] = frozenset()
        """The parameters that an optimizer of ours has left, when their owners were sought."""
        self._unowned: frozenset[int] = frozenset()
        """Those of them that no optimizer has."""

    def __bool__(self) -> bool:
        """Whether any gradient is still expected."""
        return bool(self._due)

    @property
    def are_awaited(self) -> bool:
        """Whether the next step of an optimizer matters."""
        return bool(self._due) or not self.has_optimizer

    def of(self, parameters: Iterable[nn.Parameter]) -> None:
        """Add these parameters to those that are watched."""
        self._ours.update(map(id, parameters))

    def expect(self, wanted: Iterable[Named]) -> None:
        """Record the gradients of these parameters within the step that has begun, each under its name."""
        self.forget()
        if not (self.has_optimizer or self._was_sought):
            self._was_sought = True
            self.has_optimizer = any(map(self._is_ours, optimizers()))
        self._due = {id(parameter): (name, parameter) for name, parameter in wanted}
        for key, (_, parameter) in self._due.items():
            if self.has_optimizer:
                gradient = parameter.grad
                self._before[key] = None if gradient is None else _State.of(gradient)
            elif parameter.is_leaf and not is_lazy(parameter):
                handle = parameter.register_post_accumulate_grad_hook(self._after_accumulation)
                self._handles.append(handle)

    def _is_ours(self, optimizer: torch.optim.Optimizer) -> bool:
        """Whether the optimizer updates a parameter that is watched."""
        groups = getattr(optimizer, "param_groups", ())
        return any(id(parameter) in self._ours for group in groups for parameter in group["params"])

    def accumulated(self, parameter: torch.Tensor) -> None:
        """Keep the gradient of the parameter, which a backward pass has changed."""
        if id(parameter) in self._due and parameter.grad is not None and not self.has_optimizer:
            self._kept[id(parameter)] = self._keep(parameter.grad)

    def used_by(self, optimizer: torch.optim.Optimizer) -> None:
        """Record the gradients that the optimizer is about to use."""
        scale = getattr(optimizer, "grad_scale", None)  # fused optimizers divide themselves
        used = []
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                self.has_optimizer = self.has_optimizer or id(parameter) in self._ours
                name, _ = self._due.pop(id(parameter), (None, None))
                if name is not None and parameter.grad is not None:
                    gradient = parameter.grad
                    used.append((name, gradient if scale is None else gradient / scale))
        if used or (self._due and self._is_ours(optimizer)):
            used += self._of_no_optimizer()
        self._record(used)
        if not self._due:
            self.forget()

    def _of_no_optimizer(self) -> list[tuple[str, Any]]:
        """Take gradients that nothing will use: a trainer resets those of the whole model after the step."""
        left = frozenset(self._due)
        if left != self._unused:
            self._unused = left
            known = optimizers() if left else ()
            self._unowned = left - {id(each) for optimizer in known for each in owned_by(optimizer)}
        found = []
        for key in [key for key in self._due if key in self._unowned]:
            name, parameter = self._due[key]
            if parameter.grad is not None and self._is_new(key, parameter.grad):
                found.append((name, parameter.grad))
                del self._due[key]
        return found

    def _is_new(self, key: int, gradient: torch.Tensor) -> bool:
        """Whether a backward pass of this step has made the gradient, or added to it."""
        if key not in self._before:
            return False
        before = self._before[key]
        return before is None or before.is_past(gradient)

    def finish(self) -> None:
        """Record the gradients that no optimizer has used: the step is over."""
        found: list[tuple[str, Any]] = []
        for key, (name, parameter) in self._due.items():
            if key in self._kept:
                found.append((name, self._kept[key]))
            elif parameter.grad is not None and self._is_new(key, parameter.grad):
                found.append((name, parameter.grad))
        self._record(found)
        self.forget()

    def forget(self) -> None:
        """Stop expecting gradients."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self._due.clear()
        self._before.clear()
        self._kept.clear()


class _State(NamedTuple):
    """The state of a gradient when the step began."""

    gradient: ref[torch.Tensor]  # an address would not do: a new gradient often gets the old one's
    version: int

    @classmethod
    def of(cls, gradient: torch.Tensor) -> _State:
        return cls(ref(gradient), gradient._version)

    def is_past(self, gradient: torch.Tensor) -> bool:
        """Return whether a backward pass has created another gradient, or added to this one."""
        return gradient._version != self.version or self.gradient() is not gradient
