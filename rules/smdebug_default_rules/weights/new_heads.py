"""Heads that are new, and frozen beside adapters that learn: they stay as they were drawn."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.arrays import where
from smdebug_default_rules.tensors import Parameters
from smdebug_default_rules.weights.fresh_weights import ON_PURPOSE, is_drawn

LEAST_STEPS, LEAST_APART = 10, 50
USUAL_SPREAD = 0.02
"""The standard deviation that new layers of language models are drawn with."""
LEAST_VALUES, LEAST_ALONE = 64, 1000
"""Of fewer values the spread says little; without a bias, it has to tell a new layer from one that learnt."""
SURE, FARTHEST = 3.0, 5.5
"""In standard errors, and in standard deviations: numbers that are drawn are not farther apart."""
TITLE = "The new head is frozen"
ADVICE = (
    'Train the head with the adapters: name it in modules_to_save of the LoraConfig, such as ["classifier"] '
    'or ["score"], or set its task_type, such as "SEQ_CLS".',
    "Without PEFT, set requires_grad = True for the head before the optimizer is made. If the head was "
    "trained before, look whether its weights were loaded: the warning of missing keys names it.",
)


class NewHead(NamedTuple):
    """A head that is frozen as it was drawn."""

    name: str
    spread: float
    trained: int
    """How many of the other frozen weights look trained, and how many there are:"""
    others: int
    steps: int
    since: int

    @property
    def message(self) -> str:
        """What is wrong."""
        return (
            f"{self.name}, the last layer, is frozen and as it is drawn, while adapters learn before it: no "
            "step trains it"
        )

    @property
    def why(self) -> tuple[str, ...]:
        """The numbers that convince."""
        return (
            f"{self.name} is spread as new weights are, by {self.spread:.3g}, and was frozen at "
            f"{self.steps} saved steps in a row",
            f"{self.trained} of the {self.others} other frozen weights look trained",
        )


def empty() -> dict[str, Any]:
    """What is kept of a head, as plain data."""
    return {"name": "", "steps": 0, "first": 0}


def found(
    known: dict[str, Any], seen: ObservedStep, table: Parameters, adapted: Collection[int]
) -> NewHead | None:
    """Keep since when the same head is frozen as it was drawn; return it if that is long enough."""
    head = _last(table, adapted)
    name = "" if head is None else table.names[head]
    if name != known["name"]:
        known.update(name=name, steps=0, first=seen.step)
    known["steps"] += 1
    if head is None or known["steps"] < LEAST_STEPS or seen.step - known["first"] < LEAST_APART:
        return None
    others = [each for each in _frozen(table) if each != head]
    trained = [each for each in others if not _is_new(table, each)]
    if 2 * len(trained) <= len(others):  # a model that nobody has trained, as a test of a script has
        return None
    return NewHead(
        name, float(table.column("std")[head]), len(trained), len(others), known["steps"], known["first"]
    )


def _frozen(table: Parameters) -> list[int]:
    return where(table.is_weight & table.present & table.is_frozen)


def _last(table: Parameters, adapted: Collection[int]) -> int | None:
    """The weight of the last layer, if it is frozen, as it was drawn, and all adapters come before it."""
    weights = where(table.is_weight & table.present)
    last = weights[-1] if len(weights) else None
    if last is None or not table.is_frozen[last] or last in adapted or ON_PURPOSE.search(table.names[last]):
        return None
    biases = [
        place
        for place in where(table.present & ~table.is_weight & (table.sizes >= 1))
        if table.layers[place] == table.layers[last]
    ]
    are_new = all(_is_new_bias(table, place, last) for place in biases)
    least = LEAST_VALUES if biases else LEAST_ALONE
    is_new = table.axes[last] == 2 and _is_new(table, last, least)
    return last if are_new and is_new else None


def _is_new(table: Parameters, place: int, least: int = LEAST_VALUES) -> bool:
    """Whether a weight is as a framework draws it: evenly by its inputs, or normally with a usual spread."""
    count = int(table.sizes[place])
    spread, mean = float(table.column("std")[place]), float(table.column("mean")[place])
    is_usual = abs(spread / USUAL_SPREAD - 1) < SURE / (2 * count) ** 0.5
    is_centred = abs(mean) < SURE * spread / count**0.5
    is_near = float(table.largest[place]) < FARTHEST * spread
    is_normal = count >= least and is_usual and is_centred and is_near
    return is_normal or is_drawn(table, place)


def _is_new_bias(table: Parameters, place: int, weight: int) -> bool:
    """Whether a bias is zero, or within what those of a weight with so many inputs are drawn from."""
    bound = float((table.units[weight] / table.sizes[weight]) ** 0.5)
    is_zero = float(table.largest[place]) == 0
    return is_zero or (is_drawn(table, weight) and float(table.largest[place]) <= 1.001 * bound)
