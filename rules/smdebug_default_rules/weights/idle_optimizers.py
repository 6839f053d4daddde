"""Optimizers that own weights of the model, have their gradients reset, and never make a step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.arrays import where
from smdebug_default_rules.tensors import Modules, Parameters

LEAST_STEPS, LEAST_APART = 10, 150
"""At the end of a run, it was idle at so many saved steps in a row, the last so far from the first."""
LIVE_APART = 10_000
"""As long as the run goes on, it may be for a later phase, such as the one after a warm-up."""
MOST_COMPARED = 3
TITLE = "An optimizer never makes a step"
ADVICE = (
    "Call step() of this optimizer, too, after the backward pass and before its gradients are reset.",
    "If it is for a later phase, set requires_grad = False of its parameters until then.",
)


class Idle(NamedTuple):
    """An optimizer that was never used."""

    kind: str
    weight: str
    layer: str
    """The layer of this weight, as a message names it."""
    owned: int
    """How many weights it has."""
    weights: int
    """How many there are."""
    steps: int
    """At how many saved steps in a row it was idle."""
    apart: int
    """How far the last of these steps is from the first."""

    @property
    def message(self) -> str:
        """What is wrong."""
        others = f", nor do {self.owned - 1} other weights" if self.owned > 2 else ""
        return (
            f"An optimizer ({self.kind}) has made no step in {self.apart} steps, although its gradients are "
            f"reset: {self.weight} of {self.layer} never changes{others}"
        )

    @property
    def why(self) -> str:
        """The numbers that convince."""
        return (
            f"{self.owned} of {self.weights} weights belong to it, and had gradients at {self.steps} saved "
            "steps in a row"
        )


def names_of(seen: ObservedStep) -> set[str]:
    """Return the parameters with gradients of all optimizers that have made no step yet."""
    return {name for idle in seen.facts.get("idle_optimizers") or () for name in idle["parameters"]}


def empty() -> dict[str, Any]:
    """Return what a rule keeps of idle optimizers, as plain data."""
    return {"steps": 0, "first": 0, "last": 0, "idle": [], "values": {}}


def extend(known: dict[str, Any], seen: ObservedStep, table: Parameters) -> None:
    """Keep which optimizers are idle at this step, of those whose weights are as they were at first."""
    idle = [each for each in seen.facts.get("idle_optimizers") or () if each["are_reset"]]
    if not idle:
        known.update(empty())
        return
    if not known["steps"]:
        known["first"] = seen.step
    known["steps"] += 1
    known["last"] = seen.step
    trained = ~table.is_frozen & table.is_weight & table.present & (table.owners < 0)
    places = {table.names[place]: place for place in where(trained)}
    modules, total = Modules.of(seen), int((table.is_weight & table.present).sum())
    known["idle"] = []
    for each in idle:
        names = [name for name in each["parameters"] if name in places]
        # Some are enough: what updates weights by hand updates all of them.
        rows = {name: table.values[places[name]] for name in names[:MOST_COMPARED]}
        values = {name: row[np.isfinite(row)].tolist() for name, row in rows.items()}
        if names and all(known["values"].setdefault(name, now) == now for name, now in values.items()):
            layer = modules.described(modules.layer_of(names[0]))
            known["idle"].append(
                {
                    "kind": str(each["class"]),
                    "weight": names[0],
                    "layer": layer,
                    "owned": len(names),
                    "weights": total,
                }
            )


def found(known: dict[str, Any], *, at_end: bool) -> Iterator[Idle]:
    """Yield the optimizers that have been idle for long enough."""
    apart = known["last"] - known["first"]
    if known["steps"] < LEAST_STEPS or apart < (LEAST_APART if at_end else LIVE_APART):
        return
    for each in known["idle"]:
        yield Idle(**each, steps=known["steps"], apart=apart)
