"""The gradients of a step, as the optimizer sees them.

That is just before it changes the parameters: what several batches or ranks added up, clipped, and divided
by the loss scale. If no optimizer runs within the step, because batches are being accumulated, it is what
they have added up so far. As long as no optimizer of `torch.optim` was seen at all, somebody may be updating
the parameters by hand, and clear the gradients: then what each backward leaves is kept, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple
from weakref import ref

import torch
from torch import nn
from torch.nn.parameter import is_lazy

Record = Callable[[str, Any], None]
Named = tuple[str, nn.Parameter]


class Gradients:
    """Waits for the gradients that are wanted at a step, and records each of them once."""

    def __init__(
        self,
        record: Record,
        keep: Callable[[torch.Tensor], Any],
        after_accumulation: Callable[[torch.Tensor], None],
    ):
        self.has_optimizer = False  # one was seen that updates our parameters
        self._record = record
        self._keep = keep
        self._after_accumulation = after_accumulation
        self._ours: set[int] = set()
        self._due: dict[int, Named] = {}
        self._before: dict[int, _State | None] = {}
        self._kept: dict[int, Any] = {}
        self._handles: list[Any] = []

    def __bool__(self) -> bool:
        """Are some still expected?"""
        return bool(self._due)

    @property
    def are_awaited(self) -> bool:
        """Is what an optimizer does worth a look?"""
        return bool(self._due) or not self.has_optimizer

    def of(self, parameters: Iterable[nn.Parameter]) -> None:
        """Know these parameters as ours."""
        self._ours.update(map(id, parameters))

    def expect(self, wanted: Iterable[Named]) -> None:
        """Record the gradients of these parameters within the step that has begun, each under its name."""
        self.forget()
        self._due = {id(parameter): (name, parameter) for name, parameter in wanted}
        for key, (_, parameter) in self._due.items():
            if self.has_optimizer:
                self._before[key] = _State.of(parameter.grad)
            elif parameter.is_leaf and not is_lazy(parameter):
                handle = parameter.register_post_accumulate_grad_hook(self._after_accumulation)
                self._handles.append(handle)

    def accumulated(self, parameter: torch.Tensor) -> None:
        """A backward has changed the gradient of the parameter."""
        if id(parameter) in self._due and parameter.grad is not None and not self.has_optimizer:
            self._kept[id(parameter)] = self._keep(parameter.grad)

    def used_by(self, optimizer: torch.optim.Optimizer) -> None:
        """The optimizer is about to use the gradients of its parameters."""
        scale = getattr(optimizer, "grad_scale", None)  # fused optimizers divide by themselves
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                self.has_optimizer = self.has_optimizer or id(parameter) in self._ours
                name, _ = self._due.pop(id(parameter), (None, None))
                if name is not None and parameter.grad is not None:
                    gradient = parameter.grad
                    self._record(name, gradient if scale is None else gradient / scale)
        if not self._due:
            self.forget()

    def finish(self) -> None:
        """The step is over: record what no optimizer has used."""
        for key, (name, parameter) in self._due.items():
            if key in self._kept:
                self._record(name, self._kept[key])
            elif key in self._before and parameter.grad is not None:
                before = self._before[key]
                if before is None or before.is_past(parameter.grad):
                    self._record(name, parameter.grad)
        self.forget()

    def forget(self) -> None:
        """Expect nothing any more."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self._due.clear()
        self._before.clear()
        self._kept.clear()


class _State(NamedTuple):
    """What a gradient was when the step began."""

    gradient: ref[torch.Tensor]  # an address would not do: a new gradient often gets the old one's
    version: int

    @classmethod
    def of(cls, gradient: torch.Tensor | None) -> _State | None:
        return None if gradient is None else cls(ref(gradient), gradient._version)

    def is_past(self, gradient: torch.Tensor) -> bool:
        """Has a backward made another gradient, or added to it?"""
        return gradient._version != self.version or self.gradient() is not gradient
