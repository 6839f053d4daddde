"""The loss at every step so far, as a rule keeps it: the newest values, and the level at the start."""

from __future__ import annotations

import math
from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smdebug.mode_keys import ModeKeys
from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.arrays import rounded

Floats = NDArray[np.float64]
FIRST, LAST = 20, 64
NEARLY_ZERO = 1e-3


def new_losses(seen: ObservedStep, *, is_another: bool = False) -> tuple[Floats, Floats]:
    """The steps and values of the training's loss since the saved step before, to five digits.

    If another training has begun since then, the last one alone: others may be of the one before.
    """
    key = "losses of the training"
    if key not in seen.shared:
        rows = seen.series("loss")
        chosen = rows[rows[:, 1] != ModeKeys.EVAL.value]
        seen.shared[key] = (chosen[:, 0], np.array(rounded(chosen[:, 3].tolist()), np.float64))
    found: tuple[Floats, Floats] = seen.shared[key]
    return _last_of(found) if is_another else found


def finite_losses(seen: ObservedStep, *, is_another: bool = False) -> tuple[Floats, Floats]:
    """The same without values that are not finite."""
    found: tuple[Floats, Floats] | None = seen.shared.get("finite losses")
    if found is None:
        steps, values = new_losses(seen)
        finite = np.isfinite(values)
        found = (steps, values) if finite.all() else (steps[finite], values[finite])
        seen.shared["finite losses"] = found
    return _last_of(found) if is_another else found


def _last_of(losses: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    steps, values = losses
    return steps[-1:], values[-1:]


def level(values: Sequence[float]) -> float:
    """The median of a short list of finite numbers; NaN if it is empty."""
    ordered, middle = sorted(values), len(values) // 2
    if not ordered:
        return math.nan
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def error_of_fall(kept: Mapping[str, Any]) -> float:
    """The standard error of how far the losses have fallen: without power there is no verdict."""
    first, last = kept["first"], kept["last"]
    return float((np.var(first) / len(first) + np.var(last) / len(last)) ** 0.5)


def is_rounding(values: Sequence[float]) -> bool:
    """Whether losses are what rounding leaves of zero, such as a policy's gain over its own mean.

    They have both signs, and multiples of them say nothing.
    """
    return bool(values) and min(values) < 0 < max(values) and max(map(abs, values)) < NEARLY_ZERO


def empty() -> dict[str, Any]:
    """What is kept of a loss of which nothing was seen yet."""
    return {"count": 0, "first": [], "last": [], "step": None, "since": None}


def extend(kept: MutableMapping[str, Any], steps: Floats, values: Floats) -> None:
    """Add losses to what is kept."""
    if "steps" in kept:  # a state of an earlier version has all of them
        kept["step"] = next(iter(kept.pop("steps")[-1:]), None)
    if not len(values):
        return
    if kept["since"] is None:
        kept["since"] = int(steps[0])
    kept["count"] += len(values)
    missing = FIRST - len(kept["first"])
    if missing > 0:
        kept["first"] += values[:missing].tolist()
    kept["last"] = [*kept["last"], *values.tolist()][-LAST:]
    kept["step"] = int(steps[-1])


def guessing(loss: Mapping[str, Any], classes: int) -> float:
    """The cross entropy of guessing among so many classes, as this loss has it; infinite if that is unknown.

    A criterion that sums, as of transformers, is divided by the number of labels: then the labels of this
    batch count that often.
    """
    term = (loss.get("terms") or [{}])[0]
    each: float = math.log(classes) * abs(loss.get("factor") or 1.0)
    return each * float(term.get("targets") or math.inf) if term.get("reduction") == "sum" else each


def robust_spread(values: Sequence[float]) -> float:
    """The standard deviation of most of the values: single large ones do not count."""
    low, high = np.percentile(values, [25, 75])
    return float(high - low) / 1.35


def slope_score(levels: Sequence[float]) -> float:
    """The slope of the last four fifths of a series, in standard errors; 0 with too few values."""
    values = np.array(levels[len(levels) // 5 :])
    if len(values) < 8:
        return 0.0
    place = np.arange(len(values)) - (len(values) - 1) / 2
    slope = float(place @ values) / float(place @ place)
    residual = values - values.mean() - slope * place
    error = math.sqrt(float(residual @ residual) / (len(values) - 2) / float(place @ place))
    return slope / error if error > 0 else math.copysign(math.inf, slope) if slope else 0.0
