"""The codes that a loss is computed from directly: latent distributions, and embeddings that are compared.

Both are read off the graph of the loss, along the arithmetic between it and them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from smdebug.numbers.codes import divergence_facts, embedding_facts
from smdebug.pytorch.observing.saved_values import operations, saved_value

MAX_NODES = 60
MOST_VALUES = 1 << 16
_ARITHMETIC = frozenset(
    f"{name}Backward{version}"
    for name in ("Add", "Sub", "Rsub", "Mul", "Div", "Neg", "Sum", "Mean", "Squeeze", "Expand", "View", "T")
    for version in (0, 1)
)
_EXP, _LOG, _POWER = "ExpBackward0", "LogBackward0", "PowBackward0"
_DIVISION = "DivBackward0"

Facts = dict[str, Any]


def code_facts(loss: torch.Tensor, has_criterion: bool) -> Callable[[], Facts] | None:
    """Copy the codes that the loss is computed from; what is returned describes them, later.

    Embeddings are described where no criterion compares them with targets.
    """
    if loss.grad_fn is None:
        return None
    found: dict[str, list[torch.Tensor]] = {}
    for node in operations(loss.grad_fn, MAX_NODES, _ARITHMETIC.__contains__):
        name = node.name()
        if name == _EXP:
            _keep(found, _EXP, saved_value(node, "_saved_result"))
        elif name == _LOG:
            _keep(found, _LOG, saved_value(node, "_saved_self"))
        elif name == _POWER and _exponent(node) == 2:
            _keep(found, _POWER, saved_value(node, "_saved_self"))
        elif name == _DIVISION and not has_criterion and len(found.get(_DIVISION, ())) < 2:
            _keep(found, _DIVISION, _normalised(node))
    variances, squared = [*found.get(_EXP, ()), *found.get(_LOG, ())], found.get(_POWER, [])
    embeddings = found.get(_DIVISION, [])
    if not embeddings and not (variances and squared):
        return None
    copies = [[tensor.double().numpy() for tensor in group] for group in (variances, squared, embeddings)]
    return lambda: {**divergence_facts(copies[0], copies[1]), **embedding_facts(copies[2])}


def _normalised(node: Any) -> torch.Tensor | None:
    """What a division divides by its own length, row by row."""
    rows, sizes = saved_value(node, "_saved_self"), saved_value(node, "_saved_other")
    if rows is None or sizes is None or rows.dim() != 2 or sizes.dim() != 2 or len(sizes) != len(rows):
        return None
    return rows if torch.allclose(rows.norm(dim=1), sizes[:, 0], rtol=1e-3) else None


def _keep(found: dict[str, list[torch.Tensor]], kind: str, tensor: torch.Tensor | None) -> None:
    if tensor is None or not tensor.is_cpu or tensor.layout is not torch.strided:
        return
    if tensor.is_floating_point() and tensor.dim() >= 2 and tensor.numel() <= MOST_VALUES:
        found.setdefault(kind, []).append(tensor)


def _exponent(node: Any) -> float:
    try:
        return float(node._saved_exponent)
    except (AttributeError, RuntimeError, TypeError, ValueError):
        return 0.0
