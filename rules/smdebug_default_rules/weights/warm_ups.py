"""Warm-ups that count epochs where they should count steps, and so never end."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, NamedTuple

LEAST_RATES, MOST_RATES = 4, 16
LEAST_STEPS = 60
LEAST_HELD = 10
"""A rate that is held for fewer steps than this is not counted by the epoch."""
PASSES_HELD = 3
"""Nor is one that changes with each update of so many passes, as gradients are accumulated."""
MOST_EPOCHS = 40
"""Nobody warms up for more epochs than this on purpose."""
TIMES_LONGER = 4
"""A warm-up that lasts this many times as long as the training so far is not waited for."""
EVEN = 0.1

_PER_STEP = (
    "Call scheduler.step() after each optimizer.step() and not once per epoch, or give the warm-up its "
    "length in epochs."
)


class Endless(NamedTuple):
    """A warm-up that will not end."""

    asked: float
    """The rate that the optimizer was given."""
    held: float
    """For how many steps each rate is held."""
    epochs: float
    """How many times the rate has to rise."""


def follow(began: list[list[float]], step: float, rate: float) -> list[list[float]]:
    """Return the rates of a warm-up with the step at which each began; a fall begins anew."""
    if began and rate <= began[-1][1]:
        return [[step, rate]]
    return [*began[:1], *began[1:][1 - MOST_RATES :], [step, rate]]


def endless(began: list[list[float]], asked: float | None, step: float, passes: int) -> Endless | None:
    """Return the warm-up whose rate rises evenly, once in many steps, if it lasts far too long."""
    if asked is None or len(began) < LEAST_RATES or step - began[0][0] < LEAST_STEPS:
        return None
    recent = list(pairwise(began[1:]))
    held = [after[0] - before[0] for before, after in recent]
    rises = [after[1] - before[1] for before, after in recent]
    rise, length = sum(rises) / len(rises), sum(held) / len(held)
    is_even = max(rises) - min(rises) <= EVEN * rise
    if not is_even or min(held) < max(LEAST_HELD, PASSES_HELD * passes):
        return None
    epochs = asked / rise
    is_long = epochs > MOST_EPOCHS and epochs * length > TIMES_LONGER * (step - began[0][0])
    return Endless(asked, length, epochs) if is_long else None


def said(found: Endless, first: float, rate: float, step: float, group: str) -> dict[str, Any]:
    """Return the finding, as a rule says it."""
    return {
        "message": f"The learning rate {group} is {rate:.3g} after {step - first:.0f} steps, where "
        f"{found.asked:.3g} was asked for: it rises once in {found.held:.0f} steps, and the warm-up would "
        f"take {found.epochs * found.held:,.0f}",
        "since": int(first),
        "statistic": "share of the rate that was asked for",
        "value": rate / found.asked,
        "limit": 1.0,
        "title": "The warm-up does not end",
        "why": (
            f"The rate is {rate / found.asked:.1%} of {found.asked:.3g}, and rises once in "
            f"{found.held:.0f} steps",
        ),
        "advice": (_PER_STEP,),
    }


def asked_rate(facts: Mapping[str, Any], name: str) -> float | None:
    """The rate that the optimizer of a series such as `0/1` was given, before a schedule scales it."""
    number, _, group = name.partition("/")
    try:
        found = facts["optimizers"][int(number)]["groups"][int(group)].get("asked_rate")
    except (KeyError, IndexError, ValueError, TypeError, AttributeError):
        return None
    return float(found) if isinstance(found, int | float) and found > 0 else None
