"""Rows, samples and digests of many small arrays, computed together.

A step has hundreds of tensors of a few hundred values. One at a time, each would take a dozen calls of numpy;
end to end in one array, all of them take a dozen calls.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from smdebug.numbers.digests import (
    WORDS_IN_A_BLOCK,
    block_weight,
    content_digest,
    finished,
    weights,
)
from smdebug.numbers.rows import MEASURED, SAMPLE_SIZE, Floats, measured, sample_of, sampled_places

Array = NDArray[Any]
_PAIR = 16  # bytes: a word for each half of a digest
_LAYOUTS = 32
_VALUES_TOGETHER = 1 << 17
_MEAN = MEASURED.index("mean")


class Measurements(NamedTuple):
    """What was measured of arrays, in their order."""

    numbers: NDArray[np.float64]
    """The numbers of `MEASURED`: a row per array."""
    samples: Floats
    """`SAMPLE_SIZE` columns, padded with NaN."""


def measure_together(arrays: Sequence[Array], scratch: Scratch | None = None) -> Measurements:
    """Measure arrays of real numbers. `scratch` is used by one caller at a time."""
    scratch = scratch or Scratch()
    numbers = np.full((len(arrays), len(MEASURED)), math.nan)
    samples = np.full((len(arrays), SAMPLE_SIZE), np.nan, np.float32)
    alone = [place for place, array in enumerate(arrays) if not _is_packed(array)]
    for together in _groups(arrays):
        layout = _layout_of(tuple(arrays[place].size for place in together))
        flat, work = scratch.of(len(layout.owners))
        np.concatenate([arrays[place].reshape(-1) for place in together], out=flat)
        numbers[together] = rows = _rows(flat, work, layout)
        found = np.full((len(together), SAMPLE_SIZE), np.nan, np.float32)
        found[layout.sample_rows, layout.sample_columns] = flat[layout.sampled]
        samples[together] = found
        alone += [together[place] for place in np.flatnonzero(~np.isfinite(rows[:, _MEAN]))]
    for place in alone:
        numbers[place] = measured(arrays[place])
        sample = sample_of(arrays[place], SAMPLE_SIZE)
        samples[place, : sample.size] = sample
    return Measurements(numbers, samples)


def measure_end_to_end(parts: Sequence[Array], sizes: Sequence[int], scratch: Scratch) -> Measurements:
    """Measure arrays of these sizes, which lie end to end in the parts."""
    if sizes and sum(sizes) <= _VALUES_TOGETHER and all(map(_is_packed, parts)):
        layout = _layout_of(tuple(sizes))
        flat, work = scratch.of(len(layout.owners))
        np.concatenate(parts, out=flat)
        sampled = flat[layout.sampled]
        rows = _rows(flat, work, layout)
        if np.isfinite(rows[:, _MEAN]).all():
            samples = np.full((len(sizes), SAMPLE_SIZE), np.nan, np.float32)
            samples[layout.sample_rows, layout.sample_columns] = sampled
            return Measurements(rows, samples)
    return measure_together(list(_split(parts, sizes)), scratch)


def _split(parts: Sequence[Array], sizes: Sequence[int]) -> Iterator[Array]:
    """The arrays of these sizes, none of which is in two parts."""
    waiting = iter(parts)
    part, end = np.empty(0), 0
    for size in sizes:
        begin, end = end, end + size
        while begin >= part.size and size:
            part, begin, end = next(waiting), 0, size
        yield part[begin:end]


def digests_together(arrays: Sequence[Array]) -> NDArray[np.int64]:
    """Return the content digests of arrays, two 64-bit integers a row."""
    found = np.zeros((len(arrays), 2), np.int64)
    small = [place for place, array in enumerate(arrays) if _fits_a_block(array)]
    for place in set(range(len(arrays))).difference(small):
        found[place] = content_digest(arrays[place])
    if not small:
        return found
    pairs = tuple(max(1, -(-arrays[place].nbytes // _PAIR)) for place in small)
    starts, factors = _weights_of(pairs)
    content = np.zeros(_PAIR * sum(pairs), np.uint8)
    for place, start in zip(small, starts.tolist(), strict=True):
        array = np.ascontiguousarray(arrays[place]).reshape(-1).view(np.uint8)
        content[_PAIR * start : _PAIR * start + array.size] = array
    words = content.view("<u8").reshape(-1, 2)
    with np.errstate(over="ignore"):
        totals = np.add.reduceat(words * factors, starts, axis=0) * np.uint64(block_weight(0))
    for place, (first, second) in zip(small, totals.tolist(), strict=True):
        length = arrays[place].nbytes
        found[place] = finished(first, length), finished(second, length + 1)
    return found


class _Layout(NamedTuple):
    """Where arrays of given sizes begin in the packed one, and where their samples are."""

    sizes: NDArray[np.int64]
    starts: NDArray[np.int64]
    owners: NDArray[np.int32]
    """The number of the array that each value belongs to."""
    sampled: NDArray[np.int64]
    sample_rows: NDArray[np.int64]
    sample_columns: NDArray[np.int64]


@lru_cache(maxsize=_LAYOUTS)
def _layout_of(sizes: tuple[int, ...]) -> _Layout:
    starts = np.concatenate([[0], np.cumsum(sizes[:-1], dtype=np.int64)]).astype(np.int64)
    places = [sampled_places(size, SAMPLE_SIZE) for size in sizes]
    lengths = [len(sampled) for sampled in places]
    return _Layout(
        np.array(sizes, np.int64),
        starts,
        np.repeat(np.arange(len(sizes), dtype=np.int32), sizes),
        np.concatenate([start + sampled for start, sampled in zip(starts, places, strict=True)]),
        np.repeat(np.arange(len(sizes)), lengths),
        np.concatenate([np.arange(length) for length in lengths]),
    )


@lru_cache(maxsize=_LAYOUTS)
def _weights_of(pairs: tuple[int, ...]) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Where each array's words begin, and the weight of each pair of words, as a column."""
    starts = np.concatenate([[0], np.cumsum(pairs[:-1], dtype=np.int64)]).astype(np.int64)
    factors = np.concatenate([weights(count) for count in pairs])
    return starts, factors[:, None]


class Scratch:
    """Memory for values and intermediate results, kept for the next time: fresh memory is slow."""

    def __init__(self) -> None:
        self._kept = np.empty((2, 0))

    def of(self, size: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return two arrays of that size, as they were left."""
        if self._kept.shape[1] < size:
            self._kept = np.empty((2, size))
        return self._kept[0, :size], self._kept[1, :size]


def _rows(flat: NDArray[np.float64], work: NDArray[np.float64], layout: _Layout) -> NDArray[np.float64]:
    """The rows of arrays without values that are not finite; of others the mean is not finite."""
    starts, sizes = layout.starts, layout.sizes
    rows = np.empty((len(sizes), len(MEASURED)))
    with np.errstate(all="ignore"):
        smallest, largest = np.minimum.reduceat(flat, starts), np.maximum.reduceat(flat, starts)
        mean = np.add.reduceat(flat, starts) / sizes
        rows[:, 0], rows[:, 1], rows[:, 2] = sizes, 0, 0
        rows[:, 3], rows[:, 4], rows[:, 5] = smallest, largest, mean
        np.abs(flat, out=work)
        rows[:, 6] = np.add.reduceat(work, starts) / sizes
        for place in np.flatnonzero(np.minimum.reduceat(work, starts) == 0):
            part = flat[starts[place] : starts[place] + sizes[place]]
            rows[place, 2] = part.size - np.count_nonzero(part)
        np.multiply(flat, flat, out=work)
        rows[:, 7] = np.sqrt(np.add.reduceat(work, starts) / sizes)
        np.subtract(flat, np.take(mean, layout.owners, mode="clip", out=work), out=work)
        np.multiply(work, work, out=work)
        rows[:, 8] = np.sqrt(np.add.reduceat(work, starts) / sizes)
    rows[smallest == largest, 8] = 0  # a mean of equal values may differ from them in its last bit
    return rows


def _groups(arrays: Sequence[Array]) -> Iterator[list[int]]:
    """The places of arrays that are packed together: as many as stay in the processor's cache."""
    group: list[int] = []
    size = 0
    for place, array in enumerate(arrays):
        if not _is_packed(array):
            continue
        if group and size + array.size > _VALUES_TOGETHER:
            yield group
            group, size = [], 0
        group.append(place)
        size += array.size
    if group:
        yield group


def _is_packed(array: Array) -> bool:
    """Whether it is small, and squares of its values fit a float64."""
    if not 0 < array.size <= _VALUES_TOGETHER:
        return False
    return array.dtype.kind in "biu" or (array.dtype.kind == "f" and array.itemsize <= 4)


def _fits_a_block(array: Array) -> bool:
    return array.nbytes <= _PAIR * WORDS_IN_A_BLOCK
