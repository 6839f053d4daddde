"""Kullback-Leibler divergences in the graph of a loss: `F.kl_div` leaves a difference of products there."""

from __future__ import annotations

from typing import Any

import torch

from smdebug.pytorch.tensors.rows import signed

MADE_OF = ("LogSoftmaxBackward0", "SoftmaxBackward0")
_REDUCING = {"SumBackward0": "sum", "MeanBackward0": "mean"}
_TOLERANCE = 1e-3


def compared(node: Any) -> Any:
    """Return what made the predictions, if that node is the difference of a divergence; None otherwise.

    The difference is that of a constant and of the targets times the predictions.
    """
    if node is None or node.name() != "SubBackward0" or node.next_functions[0][0] is not None:
        return None
    product = node.next_functions[1][0]
    if product is None or product.name() != "MulBackward0":
        return None
    given = [following for following, _ in product.next_functions if following is not None]
    if len(given) != 1 or given[0].name() not in MADE_OF:
        return None
    return given[0] if _is_of_shares(product, given[0]) else None


def _is_of_shares(product: Any, given: Any) -> bool:
    """Whether the targets are shares, which sum to 1. On a GPU, reading them would wait for it."""
    try:
        targets, axis = product._saved_self, given._saved_dim
    except (AttributeError, RuntimeError):
        return False
    if not isinstance(targets, torch.Tensor) or not targets.dim():
        return False
    if not targets.is_cpu or targets.numel() > 1 << 20:
        return True
    sums = targets.detach().float().sum(signed(axis))
    return bool(((sums - 1).abs() < _TOLERANCE).all()) and bool((targets >= 0).all())


def reduction_of(start: Any, difference: Any) -> str:
    """Return how a loss is reduced that is this difference and nothing else; "" if it is more than that."""
    return _REDUCING.get(start.name(), "") if start.next_functions[0][0] is difference else ""
