"""Cosine schedules that are shorter than the training: the rate rises again as it fell, over and over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

LEAST_WAVES = 3
"""One wave may be wanted; a schedule that ends so long before the training is not."""
LOW, HIGH = 0.01, 0.9
"""A wave falls below this share of its peak, and rises above that one."""
LEAST_RATES, MOST_RATES = 4, 64
FIRST_RISE = 0.3
"""A schedule that restarts jumps above this share of its peak at once."""
QUARTER = 0.2
"""After a quarter of its rise, a cosine is at 0.15 of its peak, and a straight line at 0.25."""
UNEVEN = 0.25
"""By how much a rise is longer or shorter than the fall before, at most."""

_TOO_SHORT = (
    "Give the schedule the length of the training in the unit in which it is stepped: T_max (or "
    "num_training_steps) is the number of scheduler.step() calls. If it counts epochs, call scheduler.step() "
    "once per epoch."
)


class Waves(NamedTuple):
    """A rate that has come back to its peak several times."""

    times: int
    first: int
    """The step at which it was lowest first."""
    half: int
    """How many steps its last fall took."""
    peak: float


def follow(kept: Mapping[str, Any] | None, step: int, rate: float) -> dict[str, Any]:
    """Return what to keep of a rate that is another from this step on."""
    if kept is None:
        return {"peak": [step, rate], "low": None, "rise": [], "count": 0, "first": None, "half": 0}
    now = {**kept}
    if kept["low"] is None:  # it falls, or has not begun to
        peak, last = kept["peak"], kept.get("last", kept["peak"][1])
        if rate > last and last < LOW * peak[1] and rate < FIRST_RISE * peak[1]:
            now |= {"low": [kept["since"], last], "rise": [[step, rate]]}
        elif rate >= last:
            now |= {"peak": [step, rate], "count": 0, "first": None}
    elif rate < kept["rise"][-1][1]:  # the rise has ended
        now |= {"peak": kept["rise"][-1], "low": None, "rise": []}
        if _is_wave(kept):
            half = int(kept["low"][0] - kept["peak"][0])
            first = kept["low"][0] if kept["first"] is None else kept["first"]
            now |= {"count": kept["count"] + 1, "first": int(first), "half": half}
        else:
            now |= {"count": 0, "first": None}
    else:
        rise = [*kept["rise"], [step, rate]]
        now["rise"] = rise if len(rise) <= MOST_RATES else [*rise[:-1:2], rise[-1]]
    return {**now, "last": rate, "since": step}


def _is_wave(kept: Mapping[str, Any]) -> bool:
    """Whether a rate has fallen as a cosine does, and come back the same way."""
    (began, peak), (low, _), rise = kept["peak"], kept["low"], kept["rise"]
    length = rise[-1][0] - low
    quarter = [rate for step, rate in rise if step <= low + length / 4]
    return bool(
        len(rise) >= LEAST_RATES
        and rise[-1][1] >= HIGH * peak
        and abs(length - (low - began)) <= UNEVEN * (low - began)
        and quarter
        and quarter[-1] <= QUARTER * peak
    )


def found(kept: Mapping[str, Any] | None) -> Waves | None:
    """Return the waves of a rate, once there are too many to be wanted."""
    if kept is None or kept["count"] < LEAST_WAVES:
        return None
    return Waves(kept["count"], kept["first"], kept["half"], float(kept["peak"][1]))


def said(waves: Waves, group: str) -> dict[str, Any]:
    """Return the finding, as a rule says it."""
    return {
        "message": f"The rate {group} falls to nearly nothing in {waves.half} steps and rises again: "
        f"it has done so {waves.times} times, as the schedule is shorter than the training",
        "since": waves.first,
        "statistic": "times the rate came back",
        "value": waves.times,
        "limit": LEAST_WAVES - 1,
        "title": "The learning rate swings up and down",
        "why": (f"It came back to {waves.peak:.3g} {waves.times} times, every {2 * waves.half} steps",),
        "advice": (_TOO_SHORT,),
    }
