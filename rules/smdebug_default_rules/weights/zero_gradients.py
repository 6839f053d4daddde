"""Gradients that have been exactly zero since the training began: there is nothing to follow."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.arrays import where
from smdebug_default_rules.tensors import Modules, Parameters

LEAST_STEPS, LEAST_APART = 10, 50
"""Rewards may come late: the gradients are zero at so many saved steps, the last so far from the first."""
TITLE = "All gradients are zero"
_ZERO_WEIGHTS = (
    "Start one factor of each product at random: where two weights are multiplied and both are zero, as "
    "lora_A and lora_B may be, neither gets a gradient."
)
_ZERO_FACTOR = (
    "Print what the loss is multiplied by: advantages, rewards, masks or weights that are all zero, as the "
    "advantages are in groups whose rewards are all equal."
)
_SCALED = (
    "Print what the product with the zero weights is scaled by, such as lora_alpha / r: it is 0 with an "
    "integer division, or where a share was set to 0."
)
_FLAT = (
    "Look for steps with a slope of 0 before the loss: clamp() beyond its range, round(), sign() or argmax()."
)


class ZeroGradients(NamedTuple):
    """What is known of a step at which no parameter has a gradient other than zero."""

    name: str
    """The first trained weight, of the zero ones if there are some."""
    gradients: int
    """How many trained parameters have a gradient that is zero."""
    zero_weights: int
    """How many of the weights among these are zero themselves."""
    other_weights: int
    """And how many are not."""

    @property
    def advice(self) -> tuple[str, ...]:
        """What to try, the likeliest first."""
        if not self.zero_weights:
            return _ZERO_FACTOR, _FLAT
        return (_SCALED if self.other_weights else _ZERO_WEIGHTS), _ZERO_FACTOR


def is_constant(seen: ObservedStep) -> bool:
    """Whether the model gives the same for all rows, which is why it has no gradient: that has a rule."""
    outputs, name = seen.statistics("outputs"), Modules.of(seen).output
    return outputs is not None and name in outputs and outputs.row(name)["std"] == 0


def all_zero(table: Parameters) -> ZeroGradients | None:
    """Return what is zero at a step; None if a gradient is not, or if most of them were not measured."""
    trained = ~table.is_frozen & table.present
    given = trained & (table.gradient("count") > 0)
    if table.has_gradient.any() or not 2 * np.count_nonzero(given) > np.count_nonzero(trained):
        return None
    weights = given & table.is_weight
    zero = weights & (table.column("rms") == 0)
    places = where(zero) or where(weights) or where(given)
    counts = (int(some.sum()) for some in (given, zero, weights & ~zero))
    return ZeroGradients(table.names[places[0]], *counts)
