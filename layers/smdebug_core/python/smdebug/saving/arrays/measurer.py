"""Measures what the default plan observes of a step.

Large tensors are measured at once, where they are. Small ones are copied, which is cheaper than measuring
them, and measured together in the background.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from smdebug.numbers.digests import content_digest
from smdebug.numbers.packed import Measurements, Scratch, digests_together, measure_end_to_end
from smdebug.numbers.rows import SAMPLE_SIZE, measured, sample_of

Array = NDArray[Any]
#: Returns an array, in the background: a copy from a GPU is awaited there.
Later = Callable[[], Array]
SMALL = 8192
"""Tensors of up to this many values are copied and measured together."""


class Measured(NamedTuple):
    """What was measured of one tensor: an array, or what returns it once, in the background."""

    numbers: Array | Later
    """The numbers of `numbers.rows.MEASURED`."""
    sample: Array | Later
    """At most `SAMPLE_SIZE` values, or as many padded with NaN."""
    digest: Array | Later | None = None

    @property
    def has_digest(self) -> bool:
        return self.digest is not None


def measure(array: Array, *, digest: bool = False) -> Measured:
    """Measure an array, now."""
    halves = np.array(content_digest(array), np.int64) if digest else None
    return Measured(np.array(measured(array)), sample_of(array, SAMPLE_SIZE), halves)


class _Kept(threading.local):
    """Memory that a thread keeps from step to step."""

    def __init__(self) -> None:
        self.scratch = Scratch()


_KEPT = _Kept()


class InBatch:
    """What is measured of consecutive arrays of a batch: a row for each."""

    __slots__ = ("_batch", "_digest_place", "_place", "count")

    def __init__(self, batch: Batch, place: int, digest_place: int | None, count: int = 1):
        self._batch = batch
        self._place = place
        self._digest_place = digest_place
        self.count = count

    def numbers(self) -> Array:
        rows: Array = self._batch.measured.numbers[self._place : self._place + self.count]
        return rows

    def samples(self) -> Array:
        rows: Array = self._batch.measured.samples[self._place : self._place + self.count]
        return rows

    @property
    def has_digest(self) -> bool:
        return self._digest_place is not None

    def digests(self) -> Array:
        place = self._digest_place
        assert place is not None
        halves: Array = self._batch.digests[place : place + self.count]
        return halves


class _Packed(NamedTuple):
    """Arrays of these sizes, end to end."""

    array: Array
    sizes: Sequence[int]
    before: Array | None = None
    """What is subtracted, in the background."""

    def change(self) -> Array:
        """All values, or their difference from what they were before."""
        if self.before is None:
            return self.array
        with np.errstate(all="ignore"):  # what is not finite is counted
            difference: Array = self.array - self.before
        return difference

    def arrays(self) -> Iterator[Array]:
        array, end = self.change(), 0
        for size in self.sizes:
            begin, end = end, end + size
            yield array[begin:end]


class Batch:
    """The small arrays of one step, which do not change; measured when the first result is needed."""

    def __init__(self) -> None:
        self._arrays: list[Array | _Packed] = []
        self._digested: list[Array | _Packed] = []
        self._count = self._digest_count = 0

    def add(self, array: Array, digested: Array | None = None) -> InBatch:
        """Measure this array, and digest that one, later."""
        place, digest_place = self._count, None
        if digested is not None:
            digest_place = self._digest_count
            self._digest_count += 1
            self._digested.append(digested)
        self._count += 1
        self._arrays.append(array)
        return InBatch(self, place, digest_place)

    def add_packed(
        self, array: Array, sizes: Sequence[int], *, digest: bool, before: Array | None = None
    ) -> InBatch:
        """Measure arrays of these sizes, which lie end to end in one, later.

        If there is an array of what they were before, what is measured is the difference.
        """
        packed, count = _Packed(array, sizes, before), len(sizes)
        place, digest_place = self._count, None
        if digest:
            digest_place = self._digest_count
            self._digest_count += count
            self._digested.append(packed)
        self._count += count
        self._arrays.append(packed)
        return InBatch(self, place, digest_place, count)

    @cached_property
    def measured(self) -> Measurements:
        arrays, self._arrays = self._arrays, []
        parts: list[Array] = []
        sizes: list[int] = []
        for array in arrays:
            if isinstance(array, _Packed):
                parts.append(array.change())
                sizes += array.sizes
            else:
                parts.append(array.reshape(-1))
                sizes.append(array.size)
        return measure_end_to_end(parts, sizes, _KEPT.scratch)

    @cached_property
    def digests(self) -> NDArray[np.int64]:
        arrays, self._digested = self._digested, []
        return digests_together(list(_unpacked(arrays)))


def _unpacked(arrays: Iterable[Array | _Packed]) -> Iterator[Array]:
    for array in arrays:
        if isinstance(array, _Packed):
            yield from array.arrays()
        else:
            yield array


class Measurer:
    """Measures the arrays of one step after another."""

    def __init__(self) -> None:
        self._batch = Batch()

    def measure(self, array: Any, *, digest: bool) -> Measured | InBatch | None:
        """Measure an array of real numbers as it is now."""
        if array.size > SMALL:
            return measure(array, digest=digest)
        copy = np.array(array, order="C")
        return self._batch.add(copy, copy if digest else None)

    def fits(self, value: Any) -> bool:
        """Return whether `measure_together` takes that value."""
        return False

    def fit_again(self, values: Sequence[Any], shapes: Sequence[Any]) -> bool:
        """Return whether the values still fit, and have the shapes that they had when they did."""
        return False

    def measure_again(self, value: Any, *, digest: bool) -> Measured | InBatch | None:
        """Measure a value of a form that was measured before, if there is a short way for it."""
        return None

    def packed(self, values: Sequence[Any]) -> Array:
        """Return copies of values that fit, end to end."""
        raise NotImplementedError

    def measure_together(
        self, values: Sequence[Any], *, digest: bool, before: Array | None = None
    ) -> InBatch:
        """Measure values that fit as they are now, which is cheaper than measuring each.

        If `packed` has returned what they were before, what is measured is the difference.
        """
        raise NotImplementedError

    def kept(self, number: Any) -> Any:
        """Return what `float` converts to the present value later, even if the value has changed."""
        return number

    def end_step(self) -> None:
        """End the step: what is measured from now on belongs to the next one."""
        self._batch = Batch()
