"""Weights as a framework makes them, which nobody has trained."""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet

from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.arrays import where
from smdebug_default_rules.tensors import NORMALISATIONS, Mask, Parameters

ON_PURPOSE = re.compile(r"rand|reservoir|fourier|rff|project|hash|target|echo", re.IGNORECASE)
"""Names of weights that stay as they were drawn."""
EVEN = 0.1
"""How far the spread of freshly drawn weights is from that of their distribution, at most."""


def are_fresh(table: Parameters, chosen: Mask) -> bool:
    """Whether the chosen parameters look as if nobody had trained them: biases and scales are equal or even.

    Frameworks begin biases with 0 and scales with 1, or draw a bias evenly, as the weights beside it.
    """
    places = where(chosen & table.present & (table.sizes > 1))
    flat = [place for place in places if not table.is_weight[place]]
    weights = [place for place in places if table.is_weight[place]]
    if not flat or not weights:
        return bool(weights) and all(is_drawn(table, place) for place in weights)
    low, high = table.column("min"), table.column("max")
    bounds: dict[str, float] = {}
    for place in weights:
        if is_drawn(table, place):
            layer = table.layers[place]
            bounds[layer] = max(_bound(table, place), bounds.get(layer, 0.0))
    return all(
        low[place] == high[place]
        or max(-low[place], high[place]) <= 1.001 * bounds.get(table.layers[place], 0.0)
        for place in flat
    )


def is_drawn(table: Parameters, place: int) -> bool:
    """Whether a weight is as the framework draws it: even between -b and b, with b = 1 / sqrt(inputs)."""
    bound = _bound(table, place)
    ends = -table.column("min")[place] / bound, table.column("max")[place] / bound
    is_even = abs(table.column("std")[place] * 3**0.5 / bound - 1) < EVEN
    return bool(is_even and all(1 - 2 * EVEN < end < 1.001 for end in ends))


def only_scales(seen: ObservedStep, table: Parameters, learnt: AbstractSet[str]) -> list[str]:
    """Return the frozen weights if nothing but normalisations and biases is trained, and not on purpose.

    `learnt` are the weights of which that may be so, as they were trained before.
    """
    trained = ~table.is_frozen & table.present & (table.sizes > 0)
    weights = table.is_weight & table.present
    if not trained.any() or (trained & weights).any() or (weights & table.is_frozen).sum() < 2:
        return []
    frozen = where(weights & table.is_frozen)
    names = [table.names[place] for place in frozen]
    if learnt >= set(names):
        return []
    # Of a trained model, it may be enough to tune the biases; without labels, the normalisations.
    has_labels = "loss" not in seen.facts or (seen.facts["loss"] or {}).get("terms") != []
    normalises = any(table.classes[place] in NORMALISATIONS for place in where(trained))
    is_found = (normalises and has_labels) or all(is_drawn(table, place) for place in frozen)
    return names if is_found else []


def _bound(table: Parameters, place: int) -> float:
    return float((table.units[place] / table.sizes[place]) ** 0.5)
