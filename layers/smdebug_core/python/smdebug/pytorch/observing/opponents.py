"""What two models are told that are trained against each other, as a generator and a discriminator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import nn

from smdebug.pytorch.graphs.saved_values import constant_factor, saved_value
from smdebug.pytorch.listening.callbacks import (
    AGAIN,
    Callback,
    has_compiled,
    in_backward,
    is_compiling,
    is_tracing,
)

MOST_MODELS, MOST_CALLS, MOST_NODES, MOST_VALUES = 8, 8, 24, 1 << 16
_COMPARING = (
    "BinaryCrossEntropyWithLogitsBackward0",
    "BinaryCrossEntropyBackward0",
    "MseLossBackward0",
)
_ADDING = ("Add", "Mean", "Sum", "View", "Squeeze")
_SCALING = ("Mul", "Div")
_KEEPING = frozenset(
    f"{name}Backward0" for name in ("View", "ReshapeAlias", "UnsafeView", "Unsqueeze", "Sigmoid", "Flatten")
) | frozenset(f"SqueezeBackward{version}" for version in (0, 1, 2))


class _Call(NamedTuple):
    """What a model returned, and the model whose result it was given, or ""."""

    model: str
    output: torch.Tensor
    operation: Any
    judges: str


class Opponents:
    """The targets of a step's passes that judge what another model has made, by the optimizer that follows.

    Targets count that are the same for all rows of a pass, such as real or fake.
    """

    def __init__(self, leave_out: Callable[[Exception], object]) -> None:
        self._leave_out = leave_out
        self._calls: list[_Call] = []
        self._waiting: list[tuple[str, str, float]] = []
        self._labels: list[list[Any]] = []
        self._handles: list[Any] = []

    def begin_step(self, models: Sequence[tuple[str, nn.Module]]) -> None:
        """Watch the calls of some models, of which each has its name, until the step ends."""
        self.end_step()
        if 1 < len(models) <= MOST_MODELS and not has_compiled():  # or each callback would compile it again
            self._handles = [
                model.register_forward_hook(_AfterCall(self, name), with_kwargs=True)
                for name, model in models
            ]

    def end_step(self) -> None:
        """Watch no calls, and forget what models have returned."""
        for handle in self._handles:
            handle.remove()
        self._handles, self._calls, self._waiting, self._labels = [], [], [], []

    def called(self, model: str, inputs: Iterable[Any], output: Any) -> None:
        """Note what a whole model has returned, and whose result it was given."""
        if len(self._calls) >= MOST_CALLS or not isinstance(output, torch.Tensor):
            return
        given = [each for each in inputs if isinstance(each, torch.Tensor)]
        judged = next((call.model for call in self._calls if _is_among(call.output, given)), "")
        self._calls.append(_Call(model, output.detach(), output.grad_fn, "" if judged == model else judged))

    def fail(self, error: Exception) -> None:
        """Watch no calls any more; the training continues."""
        self.end_step()
        self._leave_out(error)

    def before_backward(self, loss: torch.Tensor) -> None:
        """Note what the judgements are compared with that the loss is made of, before its graph is freed."""
        if loss.grad_fn is None or not self._calls:
            return
        for node in _added(loss.grad_fn):
            if node.name() in _COMPARING:
                call, target = self._call_before(node), _only_value(saved_value(node, "_saved_target"))
                if call is not None and target is not None:
                    self._waiting.append((call.model, call.judges, target))

    def stepped(self, optimizer: int) -> list[list[Any]]:
        """Return the labels so far, if a model judges another: the last ones are this optimizer's."""
        self._labels += [[optimizer, *given] for given in self._waiting]
        self._waiting = []
        return self._labels if any(judged for _, _, judged, _ in self._labels) else []

    def _call_before(self, node: Any) -> _Call | None:
        """The call of a model whose result the operation was given, past those that keep its places."""
        node = node.next_functions[0][0]
        while node is not None:
            for call in self._calls:
                if call.operation is node:
                    return call
            if node.name() not in _KEEPING:
                return None
            node = node.next_functions[0][0]
        return None


class _AfterCall(Callback):
    """Called after the forward of one of the models."""

    def __init__(self, opponents: Opponents, name: str):
        self._opponents, self._name = opponents, name

    def __call__(self, module: nn.Module, args: Any, named: Any, output: Any) -> None:
        if is_compiling() or is_tracing() or in_backward() or AGAIN.runs:
            return
        try:
            self._opponents.called(self._name, [*args, *named.values()], output)
        except Exception as error:  # noqa: BLE001 - whatever it is, the training continues
            self._opponents.fail(error)


def _added(root: Any) -> Iterator[Any]:
    """Yield what a loss is the sum of, as far as it grows with it: a minus turns real into fake."""
    waiting, seen = [root], 0
    while waiting and seen < MOST_NODES:
        node = waiting.pop()
        seen += 1
        yield node
        name = node.name()
        is_scaled = name.startswith(_SCALING) and (constant_factor(node) or 0.0) > 0
        if is_scaled or name.startswith(_ADDING):
            waiting += [before for before, _ in node.next_functions if before is not None]


def _is_among(output: torch.Tensor, inputs: Sequence[torch.Tensor]) -> bool:
    """Whether an input is the output itself, as it is with or without its graph."""
    return any(
        given.layout is torch.strided
        and given.numel() == output.numel()
        and given.device == output.device
        and given.data_ptr() == output.data_ptr() != 0
        for given in inputs
    )


def _only_value(targets: torch.Tensor | None) -> float | None:
    """The value that all targets have; None if they differ, or reading them would wait for a device."""
    if targets is None or not targets.is_cpu or not 0 < targets.numel() <= MOST_VALUES:
        return None
    lowest, highest = targets.aminmax()
    return float(lowest) if lowest == highest else None
