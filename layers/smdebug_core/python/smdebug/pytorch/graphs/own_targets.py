"""Errors whose target is computed by the weights that the error trains, as of values without a detach.

Such a target is a reward and what follows it: a value of the next state, times a discount below 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import torch
from torch import nn

from smdebug.pytorch.graphs.saved_values import operations, saved_value

MAX_NODES, NEAR, FAR = 60, 16, 256
MOST_VALUES = 1 << 16
_ERRORS = ("MseLossBackward0", "SmoothL1LossBackward0", "HuberLossBackward0")
_OF_DIFFERENCES = ("PowBackward0", "AbsBackward0", "MulBackward0")
_AROUND = frozenset(
    f"{name}Backward0" for name in ("Mean", "Sum", "Add", "Mul", "Div", "Neg", "Stack", "Pow", "Abs", "View")
)
_SHAPING = ("View", "Squeeze", "Unsqueeze", "ReshapeAlias", "ToCopy", "Clone")
_LEAST_DISCOUNT = 0.5
_DEEPEST = 64


class OwnTarget(NamedTuple):
    """A target that is learnt."""

    discount: float
    parameter: str
    """A parameter that both the prediction and the target are computed with."""


def own_target(loss: torch.Tensor, names: Mapping[int, str]) -> OwnTarget | None:
    """Return the first error that has a target of its own; None if there is none.

    `names` has the parameters that are trained, by their id.
    """
    if loss.grad_fn is None:
        return None
    for node in operations(loss.grad_fn, MAX_NODES, _AROUND.__contains__):
        for prediction, target in _compared(node):
            discount, value = _following(target)
            if not discount or value is None:
                continue
            shared = _leaves(prediction, NEAR) & _leaves(value, NEAR)
            known = sorted(names[number] for number in map(id, shared) if number in names)
            if known and all(isinstance(leaf, nn.Parameter) for leaf in _leaves(value, FAR)):
                return OwnTarget(discount, known[0])
    return None


def _compared(node: Any) -> Iterator[tuple[Any, Any]]:
    """Yield what an error compares, both ways round, if both have a gradient."""
    name = node.name()
    if name in _OF_DIFFERENCES and node.next_functions and node.next_functions[0][0] is not None:
        node = node.next_functions[0][0]
        if node.name() != "SubBackward0":
            return
    elif name not in _ERRORS:
        return
    sides = [function for function, _ in node.next_functions]
    if len(sides) == 2 and None not in sides:
        yield sides[0], sides[1]
        yield sides[1], sides[0]


def _following(node: Any) -> tuple[float, Any]:
    """Return the discount of what a reward is added to, and the operation that gave that; 0 of others."""
    has_reward, discount = False, 0.0
    for _ in range(_DEEPEST):
        name = node.name()
        others = [function for function, _ in node.next_functions if function is not None]
        if len(others) != 1:
            break
        if name == "AddBackward0":
            has_reward = True
        elif name == "MulBackward0":
            factor = _largest_factor(node)
            if factor is None:
                return 0.0, None
            if factor < 1:
                discount = factor
        elif not name.startswith(_SHAPING):
            break
        node = others[0]
    return (discount, node) if has_reward and discount >= _LEAST_DISCOUNT else (0.0, None)


def _largest_factor(node: Any) -> float | None:
    """The largest of the constants that something is multiplied with; None if they are no discounts."""
    for name in ("_saved_self", "_saved_other"):
        values = saved_value(node, name)
        if values is None or not values.is_cpu or not 0 < values.numel() <= MOST_VALUES:
            continue
        lowest, highest = map(float, values.aminmax())
        return highest if lowest >= 0 and 0 < highest <= 1 else None
    return None


def _leaves(root: Any, most: int) -> set[torch.Tensor]:
    """What is learnt near the operation: inputs as well, where an equation has their derivatives."""
    return {
        node.variable
        for node in operations(root, most, lambda _: True)
        if node.name() == "torch::autograd::AccumulateGrad"
    }
