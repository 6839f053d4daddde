"""The statistics of a tensor, in one pass over its values.

A block of the tensor is read once and is then in the cache for everything that is computed from it. Sums are
kept in float64; 16-bit types are processed in float32, which holds each of their values.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from smdebug.exceptions import SMDebugTypeError
from smdebug.numbers.foreign_types import FIRST_FOREIGN_TYPE
from smdebug.numbers.reductions import compute_reductions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]
# 64k float32 are 256 KB: a block and its magnitudes stay in the cache of one core.
_BLOCK = 1 << 16
# Sums of rows this short are accurate to about 1e-7; they are added in float64.
_ROW = 256
_ROWS_TOGETHER = 32  # with rows of 256, too small for BLAS to start threads


class Statistics(NamedTuple):
    """The statistics of a tensor.

    Each is within 1e-6 of float64's result. With NaN in the tensor, statistics of all values are NaN; for an
    empty tensor, all but counts and norms are NaN. Complex numbers have no `min` and `max`.
    """

    size: int
    nan: int
    infinite: int
    zeros: int
    min: float
    max: float
    mean: float
    abs_mean: float
    variance: float
    l1: float
    l2: float

    @property
    def non_finite(self) -> int:
        """The number of values that are NaN or infinite."""
        return self.nan + self.infinite

    @property
    def std(self) -> float:
        """The standard deviation of the population."""
        return math.sqrt(self.variance)

    @property
    def percent_zero(self) -> float:
        """The percentage of zeros."""
        return 100.0 * self.zeros / self.size


def is_numeric(array: Array) -> bool:
    """Whether the type has statistics."""
    kind, number = array.dtype.kind, array.dtype.num
    return kind in "biufc" or (number >= FIRST_FOREIGN_TYPE and "float" in array.dtype.name)


def statistics(array: Any) -> Statistics:
    """Return the statistics of the values; raise `SMDebugTypeError` if they are not numbers."""
    values = np.asarray(array)
    if not is_numeric(values):
        raise SMDebugTypeError(f"There are no statistics of {values.dtype} values")
    if values.size == 0:
        none = math.nan
        return Statistics(0, 0, 0, 0, none, none, none, none, none, 0.0, 0.0)
    flat = values.ravel(order="K")
    with np.errstate(all="ignore"):
        if flat.dtype.kind == "c":
            return _of_complex(flat)
        return _Pass(flat).statistics()


def abs_mean(array: Array) -> float:
    """Return the mean of the absolute values, faster than all statistics."""
    flat = array.ravel(order="K")
    sums = _Sums(flat, 4 * _BLOCK)  # only the absolute values have to fit into the cache
    with np.errstate(all="ignore"):
        total = sum(sums.of_magnitudes(piece) for piece in blocks(flat, 4 * _BLOCK))
    return total / flat.size if flat.size else math.nan


def blocks(flat: Array, block: int = _BLOCK) -> Iterator[Array]:
    """Yield the values in blocks, in a type in which numpy computes without loss."""
    kind = flat.dtype
    is_bfloat16 = kind.num >= FIRST_FOREIGN_TYPE and kind.name == "bfloat16"
    is_narrow = kind == np.float16 or kind.num >= FIRST_FOREIGN_TYPE
    for start in range(0, flat.size, block):
        piece = flat[start : start + block]
        if is_bfloat16:  # the upper half of a float32: shifting is faster than converting
            upper: Array = piece.view(np.uint16).astype(np.uint32)
            upper <<= np.uint32(16)
            piece = upper.view(np.float32)
        elif is_narrow:
            piece = piece.astype(np.float32)
        elif kind.kind in "biu":
            piece = piece.astype(np.float64)
        yield piece


class _Pass:
    """A pass over real values."""

    def __init__(self, flat: Array):
        self._flat = flat
        self._total = self._squares = self._magnitudes = 0.0
        self._nan = self._infinite = self._zeros = 0
        self._sums = _Sums(flat)
        smallest, largest = [], []
        for piece in blocks(flat):
            smallest.append(np.minimum.reduce(piece))
            largest.append(np.maximum.reduce(piece))
            self._add(piece)
        is_one = len(smallest) == 1  # mostly: and numpy takes long for lists
        self._min = float(smallest[0] if is_one else np.min(smallest))
        self._max = float(largest[0] if is_one else np.max(largest))

    def _add(self, piece: Array) -> None:
        self._total += self._sums.of(piece)
        self._squares += (squares := self._sums.of_squares(piece))
        # It is finite only if all values are.
        if not math.isfinite(squares):
            nan = int(np.count_nonzero(np.isnan(piece)))
            self._nan += nan
            self._infinite += piece.size - int(np.count_nonzero(np.isfinite(piece))) - nan
        self._magnitudes += self._sums.of_magnitudes(piece)
        if not np.minimum.reduce(self._sums.magnitudes) > 0:
            self._zeros += piece.size - int(np.count_nonzero(piece))

    def statistics(self) -> Statistics:
        size = self._flat.size
        mean = self._mean()
        return Statistics(
            size,
            self._nan,
            self._infinite,
            self._zeros,
            self._min,
            self._max,
            mean,
            self._more_carefully("mean", self._magnitudes / size, of_magnitude=True),
            self._variance(mean),
            self._more_carefully("l1", self._magnitudes),
            self._norm(),
        )

    def _mean(self) -> float:
        """Return the mean, computed again in float64 if cancellation made the float32 error too large."""
        found = self._total / self._flat.size
        if self._nan or self._infinite:
            return found
        rounded_off = 2e-7 * math.sqrt(self._squares) + 1e-10 * self._magnitudes
        if rounded_off <= 5e-7 * abs(self._total) < math.inf:
            return found
        total = sum(float(np.add.reduce(block, dtype=np.float64)) for block in blocks(self._flat))
        return self._more_carefully("mean", total / self._flat.size)

    def _variance(self, mean: float) -> float:
        if self._nan or self._infinite:
            return math.nan
        if self._min == self._max:
            return 0.0
        found = self._squares / self._flat.size - mean * mean
        if found > mean * mean and self._is_in_range():
            return found
        return self._more_carefully("variance", math.inf)

    def _norm(self) -> float:
        if self._nan or self._infinite:
            return math.nan if self._nan else math.inf
        if self._is_in_range() or self._min == self._max == 0:
            return math.sqrt(self._squares)
        return self._more_carefully("l2", math.inf)

    def _is_in_range(self) -> bool:
        """Whether the sum of squares neither overflowed nor underflowed."""
        least = 1e-280 if self._flat.dtype == np.float64 else 1e-25
        return least * self._flat.size < self._squares < math.inf

    def _more_carefully(self, name: str, found: float, *, of_magnitude: bool = False) -> float:
        """Compute the sums again in float64 if finite values have no finite sum."""
        if math.isfinite(found) or self._nan or self._infinite:
            return found
        if name == "mean" and not of_magnitude and self._flat.dtype != np.float64:
            return found
        wide = self._flat if self._flat.dtype == np.float64 else self._flat.astype(np.float64)
        return float(compute_reductions(wide, [(name, of_magnitude)])[name, of_magnitude])


class _Sums:
    """Sums over a block without a temporary of its size."""

    def __init__(self, flat: Array, block: int = _BLOCK):
        wide = flat.dtype == np.float64 or flat.dtype.kind in "biu"
        self._dtype = np.dtype(np.float64 if wide else np.float32)
        size = min(block, flat.size)
        self._kept = np.empty(size, self._dtype)
        if size >= _ROW:  # a tensor without a whole row needs none of these
            self._rows = np.empty((size // _ROW, 1, 1), self._dtype)
            self._few = np.empty((size // (_ROWS_TOGETHER * _ROW), _ROWS_TOGETHER), self._dtype)
            self._ones = np.ones(_ROW, self._dtype)
        self.magnitudes = self._kept

    def of(self, piece: Array) -> float:
        """Σx"""
        return self._by_rows(piece, None)

    def of_squares(self, piece: Array) -> float:
        """Σx²"""
        return self._by_rows(piece, piece)

    def of_magnitudes(self, piece: Array) -> float:
        """Σ|x|"""
        if piece.dtype != self._dtype:  # complex numbers
            return float(np.abs(piece).sum())
        self.magnitudes = np.abs(piece, out=self._kept[: piece.size])
        found = self._by_rows(self.magnitudes, None)
        return found if math.isfinite(found) else float(self.magnitudes.sum(dtype=np.float64))

    def _by_rows(self, piece: Array, other: Array | None) -> float:
        """Return the product of `piece` and `other`, or ones, as a dot product per row.

        BLAS is called for a few rows at a time: for more it takes threads, at a cost.
        """
        together = _ROW if other is not None else _ROW * _ROWS_TOGETHER
        count = piece.size // together
        whole = count * together
        total = 0.0
        if count and other is None:
            few = piece[:whole].reshape(count, _ROWS_TOGETHER, _ROW)
            sums = np.matmul(few, self._ones, out=self._few[:count])
            total = float(sums.sum(dtype=np.float64))
        elif count:
            rows = piece[:whole].reshape(count, _ROW)
            sums = np.matmul(rows[:, None, :], rows[:, :, None], out=self._rows[:count])
            total = float(sums.sum(dtype=np.float64))
        if whole < piece.size:
            rest = piece[whole:].astype(np.float64)
            total += float(np.add.reduce(rest) if other is None else np.dot(rest, rest))
        return total


def _of_complex(flat: Array) -> Statistics:
    wanted = [("variance", False), ("l1", False), ("l2", False), ("mean", True)]
    found = {name: float(value) for (name, _), value in compute_reductions(flat, wanted).items()}
    nan = int(np.count_nonzero(np.isnan(flat)))
    infinite = flat.size - int(np.count_nonzero(np.isfinite(flat))) - nan
    zeros = flat.size - int(np.count_nonzero(flat))
    return Statistics(
        flat.size,
        nan,
        infinite,
        zeros,
        math.nan,
        math.nan,
        math.nan,
        found["mean"],
        found["variance"],
        found["l1"],
        found["l2"],
    )
