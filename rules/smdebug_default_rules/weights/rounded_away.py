"""Weights of 16 bits whose updates are so small that rounding takes them back, step after step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.arrays import rounded, where
from smdebug_default_rules.rates import newest_rates
from smdebug_default_rules.tensors import RESOLUTIONS, Mask, Parameters

COARSE = 1e-6
"""The spacing of 16 bits is above this."""
LEAST_APART = 50
LEAST_KEPT = 0.8
"""The share of sampled values that have to be what they were when the training began."""
MOST_ZEROS = 0.5
"""Of weights whose gradient has more zeros, such as those of rare words, most need not change."""
MOST_KEPT = 0.99
"""More momentum than this counts as this much."""
MOST, MOST_VALUES = 8, 64
"""So many of the largest weights are followed, and so many values of each."""
USUAL_EPSILON = 1e-8
"""Optimizers that divide by the size of gradients add this, so that smaller gradients give smaller steps."""
_ADAPTIVE = frozenset(("Adam", "AdamW", "NAdam", "RAdam", "Adamax", "RMSprop"))
"""Optimizers that move a weight by about the rate. Those of other names, or of other packages than PyTorch's
own, may keep what was rounded away, or copies of 32 bits."""
TITLE = "Most updates are rounded away"
ADVICE = (
    "Keep the weights in float32 and compute in 16 bits: load the model with torch_dtype=torch.float32, "
    "leave out .bfloat16() or .half(), and train within torch.autocast.",
    "To keep 16 bits, use an optimizer that rounds at random or has float32 copies of the weights, or raise "
    "the learning rate.",
)


class Rounded(NamedTuple):
    """Weights most of which are what they were when the training began."""

    name: str
    kind: str
    weights: int
    of: int
    kept: float
    """The share of the sampled values that have not changed,"""
    since: int
    steps: int
    """since which step, and for how many:"""
    change: float
    """about how much a step should change a value, and how far apart numbers of its size are."""
    spacing: float

    @property
    def message(self) -> str:
        """What is wrong."""
        return (
            f"Most values of {self.weights} of {self.of} weights in {self.kind}, from {self.name} on, are "
            f"what they were at step {self.since}: a step changes a value by about {self.change:.2g}, and "
            f"{self.kind} rounds that away"
        )

    @property
    def why(self) -> tuple[str, ...]:
        """The numbers that convince."""
        return (
            f"{self.kept:.0%} of the sampled values have not changed in {self.steps} steps",
            f"A step changes a value by about {self.change:.2g}; at the size of {self.name} the numbers of "
            f"{self.kind} are {self.spacing:.2g} apart",
        )


def empty() -> dict[str, Any]:
    """What is kept of weights before any was seen, as plain data."""
    return {"since": None, "last": None, "values": {}, "travelled": {}, "expected": {}}


def extend(known: dict[str, Any], seen: ObservedStep, table: Parameters, trained: Mask) -> None:
    """Add up by how much the optimizer should have changed each weight of 16 bits since the first step."""
    if not (table.resolutions > COARSE).any():
        return
    expected = _expected(seen, table)
    chosen = trained & table.is_weight & (table.resolutions > COARSE) & np.isfinite(expected)
    if not chosen.any():
        return
    if known["since"] is None:
        samples = seen.samples("parameters")
        known["since"] = seen.step
        places = sorted(where(chosen), key=lambda place: -int(table.sizes[place]))[:MOST]
        known["values"] = {table.names[place]: _values(samples, table.names[place]) for place in places}
    before = known["last"]
    known["last"] = seen.step
    apart = 0 if before is None else seen.step - before
    travelled, last = known["travelled"], known["expected"]
    known["expected"] = {}
    for place in where(chosen):
        name, now = table.names[place], float(expected[place])
        if name in known["values"] and _is_dense(table, place):
            # Between two saved steps the rate was the lower one of both, at least in a warm-up.
            moved = min(now, last.get(name, 0.0)) * apart
            travelled[name] = rounded((travelled.get(name, 0.0) + moved,))[0]
            known["expected"][name] = rounded((now,))[0]


def found(known: Mapping[str, Any], seen: ObservedStep, table: Parameters) -> Rounded | None:
    """Return the weights of which most values have not changed although the updates would add up by now."""
    since = known["since"]
    if since is None or seen.step - since < LEAST_APART or not known["values"]:
        return None
    samples, shares = seen.samples("parameters"), {}
    for place, name in enumerate(table.names):
        values = known["values"].get(name)
        spacing = float(table.resolutions[place] * table.column("rms")[place])
        if values and known["travelled"].get(name, 0.0) >= spacing and _is_dense(table, place):
            now = _values(samples, name)
            if len(now) == len(values):
                shares[place] = float(np.mean(np.equal(now, values)))
    lost = {place: share for place, share in shares.items() if share >= LEAST_KEPT}
    # Of a weight far larger than the others, such as a table of words, it may not be known yet.
    if (
        not lost
        or 2 * sum(table.sizes[[*lost]]) < sum(table.sizes[[*shares]])
        or len(shares) == 1 < len(known["values"])
    ):
        return None
    place = max(lost, key=lambda each: int(table.sizes[each]))
    resolution = float(table.resolutions[place])
    kind = next(kind for kind, spacing in RESOLUTIONS.items() if spacing == resolution)
    return Rounded(
        table.names[place],
        kind,
        len(lost),
        len(shares),
        float(np.mean([*lost.values()])),
        since,
        seen.step - since,
        float(_expected(seen, table)[place]),
        resolution * float(table.column("rms")[place]),
    )


def _expected(seen: ObservedStep, table: Parameters) -> Any:
    """By about how much a step changes a value of each parameter; NaN where that is not known."""
    rates, passes = newest_rates(seen), max(1, seen.facts.get("backward_passes") or 1)
    optimizers = seen.facts.get("optimizers") or ()
    gradient = table.gradient("abs_mean")
    expected = np.full(len(table.names), np.nan)
    for number, optimizer in enumerate(optimizers):
        name = "" if optimizer.get("package") else str(optimizer.get("class"))
        adds_up = gradient * _times_of_momentum(optimizer)
        size = np.minimum(gradient / USUAL_EPSILON, 1) if name in _ADAPTIVE else adds_up
        if name in _ADAPTIVE or name == "SGD":
            expected = np.where(table.owners == number, rates.get(number, np.nan) * size / passes, expected)
    return expected


def _times_of_momentum(optimizer: Mapping[str, Any]) -> float:
    """By how much momentum makes a step larger: it adds up gradients, of which each step keeps a share."""
    kept = min((group.get("momentum", 0.0) for group in optimizer.get("groups") or ()), default=0.0)
    return 1 / (1 - min(float(kept), MOST_KEPT))


def _is_dense(table: Parameters, place: int) -> bool:
    """Whether most values of a weight have a gradient."""
    return bool(table.gradient("zeros")[place] <= MOST_ZEROS * table.sizes[place])


def _values(samples: Mapping[str, Any], name: str) -> list[float]:
    sample = samples.get(name)
    return [] if sample is None or not np.isfinite(sample).all() else rounded(sample[:MOST_VALUES].tolist())
