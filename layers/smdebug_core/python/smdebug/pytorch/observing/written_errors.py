"""Errors that a script computes itself, such as `((output - target) ** 2).mean()`.

Their graph keeps the differences and the operation that gave the output, and no targets: these are what the
output of the model and the differences leave.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from smdebug.numbers.loss_terms import ABSOLUTE, SQUARED
from smdebug.pytorch.graphs.saved_values import saved_value
from smdebug.pytorch.observing.absolute_errors import Compared

_REDUCTIONS = {"MeanBackward0": "mean", "SumBackward0": "sum"}
_SQUARE, _ABSOLUTE, _DIFFERENCE = "PowBackward0", "AbsBackward0", "SubBackward0"
_KEEPING_ORDER = (
    "ViewBackward0",
    "ReshapeAliasBackward0",
    "UnsafeViewBackward0",
    "SqueezeBackward0",
    "SqueezeBackward1",
    "UnsqueezeBackward0",
    "AliasBackward0",
)
_BITS = 18
"""Targets are rounded to this share of the largest number: equal ones are equal again."""
_MOST_VALUES = 1 << 18
"""More values would take longer than a millisecond."""
_FLOATS = (torch.float32, torch.float64)


def written_error(start: Any, outputs: Sequence[torch.Tensor]) -> Compared | None:
    """Describe the mean or sum of squares or absolute values of differences to an output; None of others."""
    reduction, kind = _REDUCTIONS.get(start.name()), _only(start)
    if reduction is None or kind is None or kind.name() not in (_SQUARE, _ABSOLUTE):
        return None
    if kind.name() == _SQUARE and getattr(kind, "_saved_exponent", None) != 2:
        return None
    difference = _only(kind)
    if difference is None or difference.name() != _DIFFERENCE or len(difference.next_functions) != 2:
        return None
    (first, _), (second, _) = difference.next_functions
    if (first is None) is (second is None) or getattr(difference, "_saved_alpha", None) != 1:
        return None  # both are learnt, so that neither is a target
    output = _given(second if first is None else first, outputs)
    apart = saved_value(kind, "_saved_self")
    if output is None or apart is None or not _can_be_read(output, apart):
        return None
    targets = output + apart.reshape(output.shape) if first is None else output - apart.reshape(output.shape)
    rows = int(apart.shape[0]) if apart.dim() else 0
    return Compared(
        start,
        rows,
        int(apart.shape[1]) if apart.dim() > 1 else 1,
        _rounded(targets, output).reshape(apart.shape),
        reduction,
        is_weighted=False,
        criterion=SQUARED if kind.name() == _SQUARE else ABSOLUTE,
    )


def _only(node: Any) -> Any:
    following = [function for function, _ in node.next_functions if function is not None]
    return following[0] if len(following) == 1 else None


def _given(node: Any, outputs: Sequence[torch.Tensor]) -> torch.Tensor | None:
    """The output that the operation gave, past those that keep the order of values."""
    while node is not None:
        for output in outputs:
            if output.grad_fn is node:
                return output.detach()
        if node.name() not in _KEEPING_ORDER:
            return None
        node = _only(node)
    return None


def _can_be_read(output: torch.Tensor, apart: torch.Tensor) -> bool:
    return (
        output.is_cpu
        and apart.is_cpu
        and output.layout is apart.layout is torch.strided
        and output.dtype in _FLOATS
        and apart.dtype in _FLOATS
        and 0 < output.numel() == apart.numel() <= _MOST_VALUES
    )


def _rounded(targets: torch.Tensor, output: torch.Tensor) -> torch.Tensor:
    largest = max(float(targets.abs().max()), float(output.abs().max()))
    if not largest or not math.isfinite(largest):
        return targets
    unit = 2.0 ** (math.frexp(largest)[1] - _BITS)
    return (targets / unit).round() * unit
