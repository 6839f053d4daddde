"""Robust helpers for rules: levels, spreads and trends that a single outlier does not change.

All of them are plain functions over numbers. Their memory from step to step is plain data, so that a rule may
keep it in an attribute.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
#: The median of |x - median| of a normal distribution, times this, is its standard deviation.
_TO_STD = 1.4826


def median(values: ArrayLike) -> float:
    """The median of the finite values; NaN if there are none."""
    finite = _finite(values)
    return float(np.median(finite)) if finite.size else math.nan


def mad(values: ArrayLike) -> float:
    """The median distance from the median, scaled so that normal values have their standard deviation."""
    finite = _finite(values)
    if not finite.size:
        return math.nan
    return float(np.median(np.abs(finite - np.median(finite)))) * _TO_STD


def outlier_score(value: float, past: ArrayLike) -> float:
    """How many robust standard deviations `value` is above the median of `past`; 0 with too little past.

    If the past hardly varies, a thousandth of its median counts as one standard deviation.
    """
    finite = _finite(past)
    if finite.size < 5:
        return 0.0
    centre = float(np.median(finite))
    spread = max(mad(finite), abs(centre) * 1e-3, 1e-30)
    return (value - centre) / spread


class Best(NamedTuple):
    """The best value of a series so far, and how long ago it was."""

    value: float
    step: int
    checks_since: int


def best_so_far(
    steps: Sequence[int], values: Sequence[float], *, min_improvement: float = 0.0
) -> Best | None:
    """The smallest value so far; None without values.

    A value counts as better if it is smaller by the share `min_improvement`: 0.01 is one per cent.
    """
    best: Best | None = None
    for step, value in zip(steps, values, strict=True):
        if not math.isfinite(value):
            best = best and best._replace(checks_since=best.checks_since + 1)
        elif best is None or value < best.value - min_improvement * abs(best.value):
            best = Best(value, step, 0)
        else:
            best = best._replace(checks_since=best.checks_since + 1)
    return best


class LevelChange(NamedTuple):
    """Where a series changes its level."""

    place: int
    """Where the first value at the new level is."""
    before: float
    after: float
    score: float
    """How many robust standard deviations lie between the levels."""


def change_point(values: ArrayLike, *, least: int = 3) -> LevelChange | None:
    """Where the level of a series changes most, with at least `least` values on either side.

    The levels are medians, so that a spike is not a change. None if the series is too short or constant.
    """
    numbers = np.asarray(values, np.float64)
    best: LevelChange | None = None
    for index in range(least, len(numbers) - least + 1):
        before, after = numbers[:index], numbers[index:]
        spread = max(mad(before), mad(after), 1e-3 * abs(median(before)), 1e-30)
        change = LevelChange(
            index, median(before), median(after), abs(median(after) - median(before)) / spread
        )
        if math.isfinite(change.score) and (best is None or change.score > best.score):
            best = change
    return best if best is not None and best.before != best.after else None


def fall(values: ArrayLike, *, window: int = 20) -> float:
    """The share by which a series fell, from the median of its first `window` values to that of its last.

    0.5 is half; negative if it rose. NaN with fewer than two windows of finite values, or a first level of 0.
    """
    finite = _finite(values)
    if finite.size < 2 * window:
        return math.nan
    first, last = float(np.median(finite[:window])), float(np.median(finite[-window:]))
    return (first - last) / abs(first) if first else math.nan


def remember(past: list[float], values: Iterable[float], keep: int) -> None:
    """Append values to a list and drop the oldest beyond `keep`."""
    past.extend(float(value) for value in values)
    if len(past) > keep:
        del past[: len(past) - keep]


def _finite(values: ArrayLike) -> Floats:
    numbers = np.asarray(values, np.float64).reshape(-1)
    return numbers[np.isfinite(numbers)]
