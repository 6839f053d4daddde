"""One row of numbers per tensor: what is kept of a tensor that is not saved whole.

A step of a training has hundreds of tensors, and their rows together are one matrix. What depends on all
values is computed where the tensor is; quantiles come from a sample of at most `SAMPLE_SIZE` values, which
is kept beside the row.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smdebug.numbers.statistics import is_numeric, statistics

Floats = NDArray[np.float32]
QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
MEASURED = ("count", "non_finite", "zeros", "min", "max", "mean", "abs_mean", "rms", "std")
"""What is computed from all values. Apart from the first two, only the finite values count."""
COLUMNS = (*MEASURED, *(f"p{round(100 * quantile):02d}" for quantile in QUANTILES))
"""The columns of the matrix, in order. `p05` is the quantile below which 5 % of the values lie."""
COLUMN = {name: place for place, name in enumerate(COLUMNS)}
SAMPLE_SIZE = 128
"""The largest number of sampled values of a tensor."""
SAMPLE_BYTES = 256 * 1024
"""The largest total size of the samples of one step."""

_GOLDEN_RATIO = (math.sqrt(5) - 1) / 2
_SHARES = np.array(QUANTILES)
ABSENT: Floats = np.full(len(COLUMNS), np.nan, np.float32)
"""The row of a tensor that the step did not have: its count is 0 and all else is NaN."""
ABSENT[COLUMN["count"]] = 0


def sample_size(tensors: int) -> int:
    """How many values to sample of each of `count` tensors."""
    return min(SAMPLE_SIZE, max(1, SAMPLE_BYTES // (4 * max(1, tensors))))


@lru_cache(maxsize=4096)
def sampled_places(count: int, size: int) -> NDArray[np.int64]:
    """Where in a tensor of `count` values its sample is taken: all of them if there are no more than `size`.

    One place lies in each of `size` equal parts, at a distance that varies from part to part: a fixed stride
    would hit the same column of a matrix again and again.
    """
    if count <= size:
        return np.arange(count)
    bounds = np.arange(size + 1) * count // size
    shares = np.arange(size) * _GOLDEN_RATIO % 1.0
    return bounds[:-1] + (shares * np.diff(bounds)).astype(np.int64)


def sample_of(array: NDArray[Any], size: int) -> Floats:
    """The sample of the array's values."""
    places = sampled_places(array.size, size)
    with np.errstate(over="ignore"):  # a float64 may be too large for a float32
        return array.reshape(-1)[places].astype(np.float32)


def measured(array: NDArray[Any]) -> Sequence[float]:
    """The numbers of `MEASURED` of the array."""
    found = statistics(array)
    if found.non_finite == 0 and array.size:
        return _numbers_of(found.size, 0, found)
    finite = array[np.isfinite(array)] if array.size else array
    if finite.size == 0:
        nothing = [math.nan] * (len(MEASURED) - 3)
        return [found.size, found.non_finite, 0, *nothing]
    return _numbers_of(found.size, found.non_finite, statistics(finite))


def _numbers_of(count: int, non_finite: int, found: Any) -> Sequence[float]:
    finite = found.size
    rms = found.l2 / math.sqrt(finite)
    return [
        count,
        non_finite,
        found.zeros,
        found.min,
        found.max,
        found.mean,
        found.abs_mean,
        rms,
        found.std,
    ]


def matrix_of(arrays: Iterable[NDArray[Any] | None], size: int) -> tuple[Floats, Floats]:
    """The rows of the arrays, and their samples, each padded with NaN to `size` values.

    An array that is None, or has no numbers in it, has the row `ABSENT`.
    """
    given = list(arrays)
    numbers = np.full((len(given), len(MEASURED)), np.nan, np.float64)
    numbers[:, 0] = 0
    samples = np.full((len(given), size), np.nan, np.float32)
    for row, array in enumerate(given):
        if array is not None and is_numeric(array) and array.dtype.kind != "c":
            numbers[row] = measured(array)
            sample = sample_of(array, size)
            samples[row, : sample.size] = sample
    return completed(numbers, samples), samples


def completed(numbers: NDArray[Any], samples: Floats) -> Floats:
    """The whole matrix, from the measurements of all values and the samples of some."""
    matrix = np.empty((len(numbers), len(COLUMNS)), np.float32)
    with np.errstate(over="ignore"):
        matrix[:, : len(MEASURED)] = numbers
    matrix[:, len(MEASURED) :] = quantiles_of(samples)
    return matrix


def quantiles_of(samples: Floats) -> Floats:
    """The quantiles of each row's finite values, between two of which they are interpolated."""
    found = np.full((len(samples), len(QUANTILES)), np.nan, np.float32)
    if not samples.size:
        return found
    ordered = np.where(np.isfinite(samples), samples, np.nan)
    ordered.sort(axis=1)  # NaN comes last
    counts = np.count_nonzero(ordered == ordered, axis=1)
    place = _SHARES * np.maximum(counts - 1, 0)[:, None]
    below = place.astype(np.int64)
    above = np.minimum(below + 1, np.maximum(counts - 1, 0)[:, None])
    lower = np.take_along_axis(ordered, below, axis=1)
    upper = np.take_along_axis(ordered, above, axis=1)
    share = (place - below).astype(np.float32)
    np.multiply(lower, 1 - share, out=found)
    found += upper * share
    return found


def combined(parts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the numbers of `MEASURED` of whole tensors from those of their parts: [parts, tensors, numbers].

    A part whose count is NaN does not exist. Counts and extremes are exact; means, the root mean square and
    the deviation are weighted by the finite values of each part. Quantiles of parts give none of the whole.
    """
    counts = np.nan_to_num(parts[:, :, :3])
    numbers = counts[:, :, 0] - counts[:, :, 1]
    known = numbers > 0
    values = np.where(known[:, :, None], parts[:, :, 3:], np.nan)
    smallest = np.where(known, values[:, :, 0], np.inf).min(0, initial=np.inf)
    largest = np.where(known, values[:, :, 1], -np.inf).max(0, initial=-np.inf)
    magnitude = np.maximum(np.abs(smallest), np.abs(largest))
    # A power of two takes no digits off. It keeps squares of large values finite, and of small ones above 0.
    scale = np.ldexp(1.0, np.frexp(np.where(np.isfinite(magnitude), magnitude, 1.0))[1])
    mean, abs_mean, rms, std = np.moveaxis(np.nan_to_num(values[:, :, 2:]) / scale[:, None], 2, 0)
    total = numbers.sum(0)
    with np.errstate(invalid="ignore", divide="ignore"):
        whole = (mean * numbers).sum(0) / total
        rows = [
            smallest,
            largest,
            whole * scale,
            (abs_mean * numbers).sum(0) / total * scale,
            np.sqrt((rms * rms * numbers).sum(0) / total) * scale,
            np.sqrt(((std * std + (mean - whole) ** 2) * numbers).sum(0) / total) * scale,
        ]
    found = np.where(total > 0, rows, np.nan)
    return np.concatenate([counts.sum(0).T, found]).T
