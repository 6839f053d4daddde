"""What absolute errors are computed of, which their graphs do not keep."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from smdebug.numbers.loss_terms import ABSOLUTE
from smdebug.pytorch.listening.process import PROCESS
from smdebug.saving.recording.recorder import Recorder

MOST = 8
_ARGUMENTS = ("input", "target", "size_average", "reduce", "reduction", "weight")


class Compared(NamedTuple):
    """What one error was computed of."""

    node: Any
    """The operation whose result the error is."""
    rows: int
    columns: int
    targets: torch.Tensor | None
    """The targets, if they are numbers that nothing is learnt from."""
    reduction: str
    is_weighted: bool
    criterion: str = ABSOLUTE


class AbsoluteErrors:
    """The absolute errors of a step, until the loss that is made of them was described."""

    def __init__(self, recorder: Recorder, fail: Callable[[Exception], None]):
        self._recorder = recorder
        self.fail = fail
        self._compared: list[Compared] = []
        PROCESS.add(self)

    def after_absolute_error(self, value: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Keep what an absolute error was computed of."""
        if self._recorder.due and isinstance(value, torch.Tensor) and value.grad_fn is not None:
            error = _compared(value.grad_fn, {**dict(zip(_ARGUMENTS, args, strict=False)), **kwargs})
            if error is not None:
                self._compared = [*self._compared, error][-MOST:]

    def taken(self) -> list[Compared]:
        """Return what is kept, and keep it no longer."""
        taken, self._compared = self._compared, []
        return taken


def _compared(node: Any, given: Mapping[str, Any]) -> Compared | None:
    scores, targets = given.get("input"), given.get("target")
    if not isinstance(scores, torch.Tensor) or not isinstance(targets, torch.Tensor):
        return None
    is_old = given.get("size_average") is not None or given.get("reduce") is not None
    return Compared(
        node,
        int(scores.shape[0]) if scores.dim() else 0,
        int(scores.shape[1]) if scores.dim() > 1 else 1,
        targets.detach() if targets.is_floating_point() and not targets.requires_grad else None,
        "" if is_old else str(given.get("reduction", "mean")),
        given.get("weight") is not None,
    )
