"""The codes that a loss is computed from: latent distributions, embeddings, and probabilities of actions.

They are read off the graph of the loss, along the arithmetic between it and them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from smdebug.numbers.codes import divergence_facts, embedding_facts, policy_facts, soft_target_facts
from smdebug.pytorch.graphs.saved_values import operations, saved_value

MAX_NODES = 60
MOST_VALUES = 1 << 16
MOST_OF_A_POLICY, _MOST_PRODUCTS = 120, 16
_ARITHMETIC = frozenset(
    f"{name}Backward{version}"
    for name in ("Add", "Sub", "Rsub", "Mul", "Div", "Neg", "Sum", "Mean", "Squeeze", "Expand", "View", "T")
    for version in (0, 1)
)
_EXP, _LOG, _POWER = "ExpBackward0", "LogBackward0", "PowBackward0"
_DIVISION = "DivBackward0"
_PRODUCT = "MulBackward0"
_BY_A_NUMBER = ("DivBackward1", "MulBackward1")
_KEEPING_SIGNS = frozenset(
    f"{name}Backward{version}"
    for name in ("Add", "Mean", "Sum", "Squeeze", "Unsqueeze", "View", "Stack", "Cat", "Select", "Slice")
    for version in (0, 1, 2)
) | {"MinimumBackward0", "MaximumBackward0", "ExpandBackward0", "CloneBackward0", "ToCopyBackward0"}
_OF_RATIOS = ("ExpBackward0", "ClampBackward1", "ClampBackward0", "SubBackward0")
_CHOOSING = ("GatherBackward0", "IndexBackward0")
"""What takes the logarithm of the probability of the action that was chosen."""

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
    products, scales, weights, shares_of_classes = _policy(loss.grad_fn)
    is_policy = (products or scales) and weights
    if not embeddings and not (variances and squared) and not is_policy and not shares_of_classes:
        return None
    groups = (variances, squared, embeddings, weights, shares_of_classes)
    copies = [_copied(group) for group in groups]
    pairs = []
    for sign, code, other in products if weights else ():
        shares, logarithms = _copied((code, other))
        pairs.append((sign, shares, logarithms))
    spreads = [(sign, _copied((scale,))[0]) for sign, scale in (scales if weights else ())]
    return lambda: {
        **divergence_facts(copies[0], copies[1]),
        **embedding_facts(copies[2]),
        **policy_facts(pairs, copies[3], spreads),
        **soft_target_facts(copies[4]),
    }


def _copied(group: Iterable[torch.Tensor]) -> list[NDArray[np.float64]]:
    return [tensor.double().clone().numpy() for tensor in group]


class _Policy(NamedTuple):
    products: list[tuple[float, Any, Any]]
    """Products of two codes, each with its sign in the loss."""
    scales: list[tuple[float, torch.Tensor]]
    """What the loss has the logarithm of, each with its sign."""
    weights: list[torch.Tensor]
    """What chosen codes are weighted by."""
    of_classes: list[torch.Tensor]
    """What the logarithms of all probabilities are weighted by, if there is nothing else in the loss."""


def _policy(root: Any) -> _Policy:
    """Return what may belong to a policy.

    Entropies are products of probabilities and their logarithms, or logarithms of the scale of a normal
    distribution, and advantages are weights of chosen codes.
    """
    products: list[tuple[float, Any, Any]] = []
    scales: list[tuple[float, torch.Tensor]] = []
    weights: list[torch.Tensor] = []
    of_scales: list[torch.Tensor] = []
    of_classes: list[torch.Tensor] = []
    others = 0
    waiting: list[tuple[Any, float, torch.Tensor | None]] = [(root, 1.0, None)]
    seen = 0
    while waiting and seen < MOST_OF_A_POLICY:
        node, sign, weight = waiting.pop()
        seen += 1
        name, before = node.name(), [following for following, _ in node.next_functions]
        if weight is not None and name in _CHOOSING:
            weights.append(weight)
            others += 1
        elif name == _LOG:
            if weight is not None:
                of_scales.append(weight)
            elif (scale := saved_value(node, "_saved_self")) is not None and _may_be_scales(scale):
                scales.append((sign, scale))
            others += 1
        elif weight is not None and name == "LogSoftmaxBackward0":
            of_classes.append(weight)
        elif name == "SubBackward0" and weight is None:
            waiting += [
                (each, sign * turn, None)
                for each, turn in zip(before, (1, -1), strict=False)
                if each is not None
            ]
        elif name in _BY_A_NUMBER and node._saved_other > 0:
            waiting += [(each, sign, weight) for each in before if each is not None]
        elif name in (_PRODUCT, _DIVISION):
            code, other = saved_value(node, "_saved_self"), saved_value(node, "_saved_other")
            if None not in before:
                if name == _PRODUCT and weight is None and _are_codes(code, other):
                    products.append((sign, code, other))
                others += 1
                continue
            other = other if before[0] is not None else code
            if other is None or not other.is_cpu:
                others += 1
                continue
            if other.numel() == 1:
                factor = float(other)
                if not factor:  # it has no effect, whatever its sign
                    continue
                sign = sign if factor > 0 else -sign
            elif name == _PRODUCT and other.numel() <= MOST_VALUES:
                weight = other
            waiting += [(each, sign, weight) for each in before if each is not None]
        elif name in _KEEPING_SIGNS or name == "NegBackward0" or (weight is not None and name in _OF_RATIOS):
            sign = -sign if name == "NegBackward0" else sign
            waiting += [(each, sign, weight) for each in before if each is not None]
        else:
            others += 1
    of_classes = [] if others or waiting else of_classes
    return _Policy(
        products[:_MOST_PRODUCTS],
        scales[:_MOST_PRODUCTS] if of_scales else [],
        (weights or of_scales if scales else weights)[:_MOST_PRODUCTS],
        of_classes[:_MOST_PRODUCTS],
    )


def _may_be_scales(values: torch.Tensor) -> bool:
    return (
        values.is_cpu
        and values.layout is torch.strided
        and values.is_floating_point()
        and 0 < values.numel() <= MOST_VALUES
    )


def _are_codes(code: torch.Tensor | None, other: torch.Tensor | None) -> bool:
    """Whether both may be probabilities of actions and their logarithms."""
    if code is None or other is None or code.shape != other.shape or code.dim() < 2:
        return False
    return bool(
        code.is_cpu and code.is_floating_point() and code.shape[-1] > 1 and code.numel() <= MOST_VALUES
    )


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
