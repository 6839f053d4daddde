"""Trainings that go on from a checkpoint without the moments of their optimizer, or with the first rate."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.arrays import rounded
from smdebug_default_rules.loss_history import finite_losses
from smdebug_default_rules.rates import newest_rates
from smdebug_default_rules.tensors import Parameters

LEAST_STEPS = 50
"""A training is long enough to be resumed after this many steps."""
MOST_WEIGHTS, MOST_VALUES, MOST_LOSSES = 4, 8, 30
NEARER = 0.5
"""Loaded weights are nearer to the last ones than this share of the way from the first ones."""
BETTER, WORSE = 0.5, 1.5
"""The loss goes on if it is within these shares of the lowest and the highest one of late."""
SAME, OTHER, NEAR = 1e-3, 0.1, 0.1
"""Rates that differ by less than the first share are equal, by more than the second are not.

A rate is back at the first one if that is nearer than this share of the way to the one before.
"""
ENDED = 0.05
"""A schedule has ended at this share of its first rate."""

_STATE = (
    "Save optimizer.state_dict() with the weights, and load it with optimizer.load_state_dict() before the "
    "training goes on."
)
_SCHEDULE = (
    "Save scheduler.state_dict() with the weights, and load it with scheduler.load_state_dict() after the "
    "optimizer's."
)

_PARAMETRIZED = re.compile(r"parametrizations\.(\w+)\.original$")


class Resumed(NamedTuple):
    """What a training has lost where it went on from its weights."""

    step: int
    trained: int
    """For how many steps the weights had been trained."""
    updates: int | None
    """How many updates the moments of the new optimizer had seen; None if they are not lost."""
    before: float | None
    """The rate before, where it began again at the first one."""
    rate: float


def lost(course: Mapping[str, Any], now: Mapping[str, Any], losses: Sequence[float]) -> Resumed | None:
    """Return what is lost if a step is the first of another optimizer that goes on with the same weights.

    `losses` are those of the steps before.
    """
    if course["form"] != now["form"]:
        return None
    if course["number"][1] > 0 or now["number"][1] > 1:
        return None  # rounds, clients or folds: optimizers are made again and again
    trained = now["step"] - course["first"]["step"]
    # Another phase of the same model has its own optimizer on purpose.
    is_loaded = course["model"] != now["model"] or course["number"][0] != now["number"][0]
    if trained < LEAST_STEPS or not is_loaded or not _goes_on(course, now, losses):
        return None
    first, before, rate = course["first"]["rate"], course["last"]["rate"], now["rate"]
    has_ended = before < ENDED * first  # and another schedule may begin
    is_back = abs(rate - first) < NEAR * abs(rate - before) and abs(first - before) > OTHER * before
    is_back = is_back and not has_ended
    has_lost = now["updates"] is not None and now["updates"] <= 1
    if not is_back and not (has_lost and _is_same(rate, before)):
        return None
    updates = now["updates"] if has_lost else None
    return Resumed(now["step"], trained, updates, before if is_back else None, rate)


def followed(course: Mapping[str, Any] | None, now: Mapping[str, Any]) -> dict[str, Any]:
    """Return what to keep of a training: its first weights and rate, and the last ones."""
    own = {"step": now["step"], "rate": now["rate"], "weights": now["weights"]}
    if course is None or course["number"] != now["number"]:
        first = own
    else:
        first = course["first"]
    named = {name: now[name] for name in ("number", "form", "model")}
    return {**named, "first": first, "last": own}


def observed(seen: ObservedStep) -> dict[str, Any] | None:
    """Return what is compared of a step; None if its optimizers have no numbers, or several work."""
    table = Parameters.of(seen)
    if table is None or not seen.facts.get("optimizer_steps"):
        return None
    owners = {int(owner) for owner in np.unique(table.owners) if owner >= 0}
    optimizers = seen.facts.get("optimizers") or []
    if len(owners) != 1 or (place := owners.pop()) >= len(optimizers):
        return None
    optimizer, rate = optimizers[place], newest_rates(seen).get(place)
    losses = finite_losses(seen)[1]
    if "number" not in optimizer or rate is None or not losses.size:
        return None
    chosen = [int(each) for each in np.flatnonzero((table.owners == place) & table.is_weight & table.present)]
    largest = sorted(chosen, key=lambda each: (-int(table.sizes[each]), each))[:MOST_WEIGHTS]
    samples = seen.samples("parameters")
    names = [table.names[each] for each in sorted(largest)]
    return {
        "step": seen.step,
        "number": [seen.facts.get("attempt", 0), optimizer["number"]],
        "form": [optimizer["class"], *(int(table.sizes[each]) for each in chosen)],
        "model": _before_renaming(names[0]) if names else "",
        "updates": optimizer.get("updates_before"),
        "rate": rate,
        "weights": [rounded(samples[name][:MOST_VALUES].tolist(), 4) for name in names if name in samples],
        "loss": float(losses[-1]),
    }


def said(resumed: Resumed) -> dict[str, Any]:
    """Return the finding, as a rule says it."""
    step, trained, updates, before, rate = resumed
    goes_on = f"At step {step} the training goes on with the weights of the {trained} steps before"
    what = [] if updates is None else ["the optimizer keeps none of its moments"]
    what += (
        []
        if before is None
        else [f"its learning rate is {rate:.3g} again, as at the start, after {before:.3g}"]
    )
    if updates is None:
        return {
            "message": f"{goes_on}, but {what[0]}",
            "since": step,
            "statistic": "times the rate before",
            "value": rate / before if before else math.inf,
            "limit": 1.0,
            "title": "The schedule begins again after a resume",
            "why": (f"The learning rate was {before:.3g} before and is {rate:.3g} now, as at the start",),
            "advice": (_SCHEDULE,),
        }
    return {
        "message": f"{goes_on}, but {' and '.join(what)}",
        "since": step,
        "statistic": "updates that the moments have seen",
        "value": updates,
        "limit": trained,
        "title": "The optimizer begins anew after a resume",
        "why": (
            f"Its moments have seen {updates} update{'' if updates == 1 else 's'}, and the weights "
            f"{trained} steps",
        ),
        "advice": (_STATE,) if before is None else (_STATE, _SCHEDULE),
    }


def _before_renaming(name: str) -> str:
    """Return a weight's name without what pruning (`weight_orig`) and parametrizations make of it."""
    return _PARAMETRIZED.sub(r"\1", name).removesuffix("_orig")


def _goes_on(course: Mapping[str, Any], now: Mapping[str, Any], losses: Sequence[float]) -> bool:
    """Whether the weights are those that were trained last, and the loss is as it was."""
    recent = losses[-MOST_LOSSES:]
    if not recent or not BETTER * min(recent) <= now["loss"] <= WORSE * max(recent):
        return False
    last, moved = course["last"]["weights"], _apart(course["first"]["weights"], course["last"]["weights"])
    return _apart(now["weights"], last) < NEARER * moved


def _apart(some: Sequence[Sequence[float]], others: Sequence[Sequence[float]]) -> float:
    """Return how far weights lie apart; NaN if they cannot be compared."""
    if not some or [len(each) for each in some] != [len(each) for each in others]:
        return math.nan
    return math.dist([value for each in some for value in each], [value for each in others for value in each])


def _is_same(rate: float, other: float) -> bool:
    return abs(rate - other) <= SAME * other
