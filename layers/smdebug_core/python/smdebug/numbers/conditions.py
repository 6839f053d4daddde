"""Conditions on a whole tensor: not finite, all zero, changed.

Each is answered block by block, in the order of the values, and no further than it takes. 16-bit types
are processed in float32.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from smdebug.numbers.foreign_types import FIRST_FOREIGN_TYPE
from smdebug.numbers.statistics import abs_mean, is_numeric

__all__ = [
    "NonFinite",
    "abs_mean",
    "all_close",
    "count_non_finite",
    "count_zeros",
    "is_numeric",
    "max_abs_difference",
    "mean_abs_difference",
]

_BLOCK = 1 << 16

Array = NDArray[Any]


class NonFinite(NamedTuple):
    """Count the NaN values and the infinite values."""

    nan: int
    infinite: int


def count_non_finite(array: Array) -> NonFinite:
    """Count the values that are NaN or infinite; integers, booleans and text have none."""
    if array.dtype.kind in "biu" or not is_numeric(array):
        return NonFinite(0, 0)
    nan = infinite = 0
    with np.errstate(all="ignore"):
        for block in _blocks(array):
            # The sum of squares is finite only if all values are: one pass without a temporary.
            if np.isfinite(np.vdot(block, block)):
                continue
            nans = int(np.count_nonzero(np.isnan(block)))
            nan += nans
            infinite += block.size - int(np.count_nonzero(np.isfinite(block))) - nans
    return NonFinite(nan, infinite)


def count_zeros(array: Array) -> int:
    """Count the zeros, including -0.0 and False; text has none."""
    if not is_numeric(array):
        return 0
    if array.dtype.num >= FIRST_FOREIGN_TYPE:
        return sum(block.size - int(np.count_nonzero(block)) for block in _blocks(array))
    return array.size - int(np.count_nonzero(array))


def all_close(
    value: Array, other: Array, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> bool:
    """Return `numpy.allclose` of both, stopping at the first difference; False for different shapes.

    Values that are not numbers are compared for equality.
    """
    if value.shape != other.shape:
        return False
    if not (is_numeric(value) and is_numeric(other)):
        return value.dtype.kind == other.dtype.kind and bool(np.array_equal(value, other))
    size = min(_BLOCK, value.size)
    kept = (np.empty(size, np.float32), np.empty(size, np.float32))
    with np.errstate(all="ignore"):
        for a, b in _paired_blocks(value, other):
            close = _are_close(a, b, rtol, atol, kept)
            if close is None:
                close = np.allclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)
            if not close:
                return False
    return True


def _are_close(a: Array, b: Array, rtol: float, atol: float, kept: tuple[Array, Array]) -> bool | None:
    """Whether |a - b| <= rtol * |b| everywhere; None if numpy has to decide. Allocates little.

    False only where a difference is twice what is allowed: that is no matter of rounding.
    """
    if a.dtype != np.float32 or b.dtype != np.float32:
        return None
    apart, limit = kept[0][: a.size], kept[1][: a.size]
    # The fastest test first: a / b is about 1. It decides nothing if b is 0 or infinite.
    np.divide(a, b, out=limit)
    nearly = min(rtol, 1.0) - 2e-7
    if limit.max() <= 1 + nearly and limit.min() >= 1 - nearly:
        return True
    np.subtract(a, b, out=apart)
    np.abs(apart, out=apart)
    np.multiply(b, np.float32(rtol), out=limit)
    np.abs(limit, out=limit)
    # Infinity minus infinity is NaN, which compares false: numpy decides that case. It also decides what only
    # `atol` makes equal.
    np.subtract(apart, limit, out=apart)
    if apart.max() <= 0:
        return True
    np.add(limit, np.float32(2 * atol), out=limit)
    return False if np.greater(apart, limit).any() else None


def mean_abs_difference(value: Array, other: Array) -> float:
    """Return the mean of |value - other|, computed in float64."""
    total = 0.0
    with np.errstate(all="ignore"):
        for a, b in _paired_blocks(value, other):
            difference = np.subtract(a, b, dtype=np.complex128 if _complex(a, b) else np.float64)
            total += float(np.abs(difference).sum())
    return total / value.size


def max_abs_difference(value: Array, other: Array) -> float:
    """Return the largest |value - other|; it is infinite if exactly one of a pair is NaN."""
    largest = 0.0
    with np.errstate(all="ignore"):
        for a, b in _paired_blocks(value, other):
            difference = np.subtract(a, b, dtype=np.complex128 if _complex(a, b) else np.float64)
            magnitude = np.abs(difference)
            magnitude[np.asarray(a == b) | (np.isnan(a) & np.isnan(b))] = 0.0
            magnitude[np.isnan(magnitude)] = np.inf
            largest = max(largest, float(magnitude.max(initial=0.0)))
    return largest


def _complex(*arrays: Array) -> bool:
    return any(array.dtype.kind == "c" for array in arrays)


def _blocks(array: Array) -> Iterator[Array]:
    flat = array.ravel(order="K")
    for start in range(0, flat.size, _BLOCK):
        yield _plain(flat[start : start + _BLOCK])


def _paired_blocks(value: Array, other: Array) -> Iterator[tuple[Array, Array]]:
    a, b = value.ravel(), other.ravel()
    for start in range(0, a.size, _BLOCK):
        yield _plain(a[start : start + _BLOCK]), _plain(b[start : start + _BLOCK])


def _plain(block: Array) -> Array:
    """Return the block in a type in which numpy computes without loss."""
    if block.dtype == np.float16 or block.dtype.num >= FIRST_FOREIGN_TYPE:
        return block.astype(np.float32)
    return block
