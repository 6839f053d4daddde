"""First layers that are frozen although nobody has trained them: weights that were not loaded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.arrays import where
from smdebug_default_rules.tensors import Parameters
from smdebug_default_rules.weights.fresh_weights import ON_PURPOSE, are_fresh

LEAST_WEIGHTS = 2
"""A single layer may be a projection that is random on purpose."""
LEAST_STEPS, LEAST_APART = 10, 50
MOST_COMPARED = 3
TITLE = "Frozen layers look untrained"
ADVICE = (
    "Load the trained weights before the layers are frozen, as with weights=... or from_pretrained(): look "
    "at the missing keys that load_state_dict(..., strict=False) returns.",
    "If there are none, train these layers: leave requires_grad = True, and give the optimizer their "
    "parameters. Layers that are random on purpose can say so in their name, such as random_features.",
)


class Untrained(NamedTuple):
    """Layers that are frozen as they were made."""

    name: str
    """Their first weight, and how many they have:"""
    frozen: int
    weights: int
    """How many weights the model has."""
    steps: int

    @property
    def message(self) -> str:
        """What is wrong."""
        return (
            f"All {self.frozen} weights before the trained ones, from {self.name} on, are frozen and look "
            "untrained: these layers are as a framework makes them"
        )

    @property
    def why(self) -> str:
        """The numbers that convince."""
        kept = f"the same at {self.steps} saved steps in a row"
        return f"{self.frozen} of {self.weights} weights are frozen, and {kept}"


def empty() -> dict[str, Any]:
    """Return what a rule keeps of frozen layers, as plain data."""
    return {"names": [], "fresh": False, "steps": 0, "first": 0, "last": 0, "values": []}


def extend(known: dict[str, Any], seen: ObservedStep, table: Parameters) -> None:
    """Keep since when the same layers are frozen, and whether they were fresh then."""
    places = _first_layers(table)
    names = [table.names[place] for place in places]
    values = [
        row[np.isfinite(row)].tolist() for row in (table.values[place] for place in places[:MOST_COMPARED])
    ]
    if names != known["names"] or values != known["values"]:
        chosen = table.is_frozen & (np.arange(len(table.names)) <= _last_of(table, places))
        known.update(
            empty(),
            names=names,
            values=values,
            fresh=bool(names) and are_fresh(table, chosen),
            first=seen.step,
        )
    known["steps"] += 1
    known["last"] = seen.step


def found(known: Mapping[str, Any], table: Parameters) -> Untrained | None:
    """Return the layers if they have been frozen for long enough."""
    is_long = known["steps"] >= LEAST_STEPS and known["last"] - known["first"] >= LEAST_APART
    if not known["fresh"] or not is_long:
        return None
    total = int((table.is_weight & table.present).sum())
    return Untrained(known["names"][0], len(known["names"]), total, known["steps"])


def _first_layers(table: Parameters) -> list[int]:
    """The weights that are frozen, if all of them come before the trained ones, which get what they give."""
    weights = table.is_weight & table.present
    frozen = [int(place) for place in where(weights & table.is_frozen & (table.owners < 0))]
    trained = where(weights & ~table.is_frozen & (table.owners >= 0))
    if len(frozen) < LEAST_WEIGHTS or not len(trained) or frozen[-1] > trained[0]:
        return []
    if any(ON_PURPOSE.search(table.names[place]) for place in frozen):
        return []
    given, inputs = table.units[frozen[-1]], table.sizes[trained[0]] // table.units[trained[0]]
    if inputs % given and given % inputs:  # recurrent layers have some units for each that they give
        return []
    return [] if _are_mirrored(table, frozen, trained) else frozen


def _are_mirrored(table: Parameters, frozen: list[int], trained: list[int]) -> bool:
    """Whether trained weights have the same shapes: what the frozen ones give may be what these learn."""
    ours = [(int(table.units[place]), int(table.sizes[place])) for place in frozen]
    theirs = [(int(table.units[place]), int(table.sizes[place])) for place in trained]
    return any(theirs[at : at + len(ours)] == ours for at in range(len(theirs)))


def _last_of(table: Parameters, places: list[int]) -> int:
    """The last parameter of the layers before the first trained weight."""
    trained = where(table.is_weight & table.present & ~table.is_frozen)
    return int(trained[0]) if places and len(trained) else -1
