"""A weight decay that cancels the gradients of the loss, so that the loss stays where it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.arrays import where
from smdebug_default_rules.tensors import Parameters

LEAST_DECAY = 0.1
"""Every decay is balanced in the end: a usual one only where the loss has nothing left to fall."""
LEAST_RATIO, MOST_RATIO = 0.67, 1.5
LEAST_STEPS, LEAST_APART = 10, 50
LEAST_LOSS = 0.05
"""A loss below this share of the first one has fallen far enough, whatever the decay."""
_ADDED = ("SGD", "Adam")
"""Optimizers that add the decay to the gradient, where they do not say otherwise."""
TITLE = "The weight decay cancels the gradients"


class Balance(NamedTuple):
    """The weight that is nearest to a balance of its gradient and its decay."""

    name: str
    gradient: float
    """The root mean square of its gradient."""
    decay: float
    """The same of what the optimizer adds to it."""
    factor: float
    """The weight decay."""
    weights: int
    """How many weights there are, all of which are balanced."""


def balance(seen: ObservedStep, table: Parameters) -> Balance | None:
    """Return the balance of a step; None if a weight has none, or the decay is a usual one."""
    places = where(table.is_weight & table.present & ~table.is_frozen)
    factors = dict(_factors(seen))
    given = np.array([factors.get(table.names[place], 0.0) for place in places])
    if len(places) < 2 or not (given >= LEAST_DECAY).all():
        return None
    decays = given * table.column("rms")[places]
    gradients = table.gradient("rms")[places]
    ratios = gradients / decays
    if not ((ratios > LEAST_RATIO) & (ratios < MOST_RATIO)).all():
        return None
    at = int(np.argmin(np.abs(np.log(ratios))))
    return Balance(
        table.names[places[at]], float(gradients[at]), float(decays[at]), float(given[at]), len(places)
    )


def _factors(seen: ObservedStep) -> Iterator[tuple[str, float]]:
    """The weight decay of each parameter to whose gradient it is added."""
    for optimizer in seen.facts.get("optimizers") or ():
        for group in optimizer.get("groups") or ():
            if optimizer.get("class") in _ADDED and not group.get("decoupled"):
                decay = float(group.get("weight_decay") or 0)
                yield from ((name, decay) for name in group["parameters"])
