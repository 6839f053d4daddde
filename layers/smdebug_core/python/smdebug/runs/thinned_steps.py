"""A few steps of many, spread evenly."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


def thinned(steps: list[T], most: int) -> list[T]:
    """Return at most `most` of the steps, evenly spread, including the first and the last."""
    if len(steps) <= most:
        return steps
    if most < 2:
        return steps[:most]
    last = len(steps) - 1
    return [steps[round(at * last / (most - 1))] for at in range(most)]
