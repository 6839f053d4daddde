"""Pairs of a contrastive loss: whether a row is compared with itself in the place of its other view."""

from __future__ import annotations

from collections.abc import Callable

import torch

from smdebug.pytorch.graphs.saved_values import operations, saved_value
from smdebug.pytorch.tensors.on_device import fetched

MAX_NODES = 40
LOOKED = 8
"""So many rows are compared: healthy views differ in nearly all."""
_CLOSE = 1e-4
"""What rounding may leave between two codes of one input, as a share of the largest value."""
_PASSED = frozenset(
    f"{name}Backward{version}"
    for name in ("NllLoss", "LogSoftmax", "Add", "Sub", "Mul", "Div", "MaskedFill", "Squeeze", "Sum")
    for version in (0, 1)
) | {
    "NegBackward0",
    "ViewBackward0",
    "UnsafeViewBackward0",
    "ReshapeAliasBackward0",
    "PermuteBackward0",
    "TransposeBackward0",
    "TBackward0",
    "ToCopyBackward0",
    "CloneBackward0",
    "IndexPutBackward0",  # of the diagonal, where a row would be compared with itself
    "torch::autograd::CopySlices",
}
_PRODUCTS = {"MmBackward0": "_saved_mat2", "BmmBackward0": "_saved_mat2", "MulBackward0": "_saved_other"}


def equal_positives(
    loss: torch.Tensor, targets: torch.Tensor, rows: int
) -> Callable[[], dict[str, int]] | None:
    """Compare some rows with those that they should be most similar to; what is returned counts equal ones.

    None if the loss is not computed from the products of all rows with all others.
    """
    if loss.grad_fn is None or targets.dim() != 1 or len(targets) != rows:
        return None
    for node in operations(loss.grad_fn, MAX_NODES, _PASSED.__contains__):
        other = _PRODUCTS.get(node.name())
        if other is None:
            continue
        pair = _codes(saved_value(node, "_saved_self"), saved_value(node, other), rows)
        if pair is not None:
            return _compared(*pair, targets)
    return None


def _codes(
    left: torch.Tensor | None, right: torch.Tensor | None, rows: int
) -> tuple[torch.Tensor, torch.Tensor] | None:
    """Both factors as tables of [rows, rows, values], where each row of one meets each row of the other."""
    if left is None or right is None or left.dim() != right.dim() or left.layout is not torch.strided:
        return None
    if left.dim() == 3 and len(left) == len(right) == 1:
        left, right = left[0], right[0]
    if left.dim() == 2:  # a product of matrices
        left, right = left[:, None], right.T[None]
    is_known = left.dim() == 3 and left.shape[-1] == right.shape[-1] > 1
    if not is_known or {*left.shape[:2], *right.shape[:2]} - {1, rows}:
        return None
    shape = (rows, rows, left.shape[-1])
    return left.expand(shape), right.expand(shape)


def _compared(left: torch.Tensor, right: torch.Tensor, targets: torch.Tensor) -> Callable[[], dict[str, int]]:
    places = torch.arange(0, len(targets), max(1, len(targets) // LOOKED), device=left.device)[:LOOKED]
    with torch.no_grad():
        chosen = targets[places].clamp(0, len(targets) - 1)
        here, there = left[places, chosen], right[places, chosen]
        apart = (here - there).abs().amax(1)
        count = fetched((apart <= _CLOSE * here.abs().amax(1)).sum().reshape(1))
    return lambda: {"looked": len(places), "equal": int(count()[0])}
