"""Statistics of the last steps up to each step, for many runs at once; NaN is left out.

A row is a run. The first windows are shorter. A window of nothing but NaN gives NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]

_STATISTICS: Mapping[str, tuple[Callable[..., Matrix], Callable[..., Matrix]]] = {
    "rolling_mean": (np.mean, np.nanmean),
    "rolling_min": (np.min, np.nanmin),
    "rolling_max": (np.max, np.nanmax),
    "rolling_std": (np.std, np.nanstd),
}
NAMES = (*_STATISTICS, "rolling_median")


def rolled(name: str, values: Matrix, steps: int) -> Matrix:
    """Return the statistic of that name of the last steps up to each."""
    if name == "rolling_median":
        return rolling_median(values, steps)
    of_window = _STATISTICS[name][int(np.isnan(values).any())]
    found = np.empty(values.shape)
    with catch_warnings():
        simplefilter("ignore", RuntimeWarning)  # a window of nothing but NaN
        for at in range(values.shape[1]):
            found[:, at] = of_window(values[:, max(0, at - steps + 1) : at + 1], axis=1)
    return found


def rolling_median(values: Matrix, steps: int) -> Matrix:
    """Return the median of the last steps up to each.

    Each value is replaced by its rank in the run, and the median's rank is searched by halves, in all runs
    together. That takes a tenth of the time of sorting each window.
    """
    runs, length = values.shape
    order = np.argsort(values, axis=1, kind="stable")  # NaN comes last
    ordered = np.take_along_axis(values, order, axis=1)
    ranks = np.empty((length, runs), np.uint16 if length < 1 << 15 else np.uint32)
    ranks[order.T, np.arange(runs)] = np.arange(length, dtype=ranks.dtype)[:, None]
    numbers = length - np.isnan(values).sum(axis=1)
    is_number = ranks < numbers
    window = np.empty((min(steps, length), runs), ranks.dtype)
    count = np.zeros(runs, np.int64)
    each = np.arange(runs)
    found = np.empty(values.shape)
    for at in range(length):
        if at >= steps:
            count -= is_number[at - steps]
        count += is_number[at]
        window[at % steps] = ranks[at]
        used = window[: at + 1]
        lower = _ranked(used, np.maximum(count - 1, 0) >> 1, length)
        is_even = count & 1 == 0
        upper = np.where(is_even, _ranked(used, count >> 1, length), lower) if is_even.any() else lower
        median = (ordered[each, lower] + ordered[each, upper]) / 2
        found[:, at] = np.where(count > 0, median, np.nan)
    return found


def _ranked(window: NDArray[Any], place: NDArray[np.int64], length: int) -> NDArray[Any]:
    """Return the rank that is at that place of each column, if it were sorted."""
    kind = window.dtype  # two ranks can be added in it
    counts = np.uint8 if len(window) < 1 << 8 else np.uint32
    before = place.astype(counts)
    low = np.zeros(window.shape[1], kind)
    high = np.full(window.shape[1], length - 1, kind)
    for _ in range((length - 1).bit_length()):
        middle = (low + high) >> 1
        is_enough = (window <= middle).view(np.uint8).sum(axis=0, dtype=counts) > before
        high = np.where(is_enough, middle, high)
        low = np.where(is_enough, low, np.minimum(middle + 1, high))
    return low
