"""The observations of a step: gathered while it runs, and made into tensors when it is written.

Rows keep their place from step to step, so that a tensor has one place in all matrices of its kind. A step
that brings a new tensor writes a new layout; one that lacks a tensor leaves its row absent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from smdebug.files.observations import (
    DIGESTS,
    FACTS,
    LAYOUT,
    MEASURED_PARTS,
    PARTS,
    SAMPLES,
    SERIES,
    STATISTICS,
    SYSTEM,
    ObservationLayout,
    ObservedTensor,
    json_array,
)
from smdebug.logger import get_logger
from smdebug.numbers.rows import (
    ABSENT,
    MEASURED,
    SAMPLE_SIZE,
    completed,
    sample_size,
    sampled_places,
)
from smdebug.saving.arrays.measurer import InBatch, Later, Measured
from smdebug.saving.planning.step_clock import StepClock

Array = NDArray[Any]
MAX_ROWS = 100_000
"""Tensors of one kind beyond this many are left out: names that change from step to step have no end."""
MAX_CARRIED = 1_000_000
"""Values of one series beyond this many since the last saved step are left out, the oldest first."""
MAX_CARRIED_BESIDE = 10_000
"""The same where tensors were chosen, as their next step may never come."""

Carried = tuple[StepClock, int, Any]
"""A scalar, of the step that came so many steps of the mode after the clock's.

It is whatever `float` accepts, and converted in the background.
"""


class Digested(NamedTuple):
    """Which tensors the rows of a matrix of digests belong to."""

    kind: str
    names: tuple[str, ...]


class Handed(NamedTuple):
    """A tensor of observations, with what computes it in the background."""

    name: str
    make: Later
    digested: Digested | None = None
    """Set for a matrix of digests."""


class _Names(NamedTuple):
    """The names of the rows of a matrix: the first of a list that only grows."""

    known: list[str]
    number: int


_new = tuple.__new__


class _Rows(NamedTuple):
    """Rows of a matrix, each with its place, that were measured together."""

    places: Sequence[int]
    measured: Measured | InBatch
    are_parts: bool = False
    """Whether each is of the part of a tensor that this process holds, whose digest belongs to no copy."""


@dataclass
class _Kind:
    """The tensors of one kind that were seen so far, each with its place."""

    tensors: dict[str, ObservedTensor] = field(default_factory=dict)
    places: dict[str, int] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    """The names in the order of their places. It only grows, so that another thread may read it."""


class StepObservations:
    """Gathers observations, and hands those of a step over when it ends."""

    def __init__(self, *, digests_only: bool = False, most_carried: int = MAX_CARRIED) -> None:
        self._digests_only = digests_only
        self.most_carried = most_carried
        self.series_names: set[str] = set()
        """The names of the scalars that were handed over."""
        self.left_out = 0
        """How many tensors were left out because there were too many."""
        self._kinds: dict[str, _Kind] = {}
        self._rows: dict[str, list[_Rows]] = {}
        self._facts: dict[str, Any] = {}
        self._lasting: dict[str, Any] = {}
        self.carried: dict[str, list[Carried]] = {}
        """The scalars of steps, saved or not, since the last step that was written, by their names."""
        self._layout_step: int | None = None
        self.system: Callable[[], dict[str, Any]] | None = None
        """Returns the system metrics of a step, in the background."""

    @property
    def carries_series(self) -> bool:
        """Whether scalars wait for the next step that is written."""
        return bool(self.carried)

    @property
    def saw_gradients_alone(self) -> bool:
        """Whether gradients were measured, and no optimizer was seen to use them."""
        return "gradients" in self._kinds and "optimizers" not in self._lasting

    def names(self) -> Iterator[str]:
        """The names of the tensors measured so far."""
        for kind in self._kinds.values():
            yield from kind.places

    def names_at_step(self, *kinds: str) -> list[str]:
        """Return the names of these kinds of tensors that were measured at the current step."""
        found = []
        for kind in kinds:
            here = {place for rows in self._rows.get(kind, ()) for place in rows.places}
            if here:
                found += [name for name, place in self._kinds[kind].places.items() if place in here]
        return found

    def room_for(self, name: str) -> list[Carried]:
        """Return the list to which values of that name are added, with room for more."""
        rows = self.carried.setdefault(name, [])
        if len(rows) > self.most_carried:
            del rows[: len(rows) // 2]
        return rows

    def drop_last(self, name: str) -> None:
        """Drop the last value of that name which waits for a step that is written."""
        rows = self.carried.get(name)
        if rows:
            rows.pop()

    def note(self, **facts: Any) -> None:
        """Keep facts of the step: JSON values, or functions that return one in the background."""
        self._facts.update(facts)

    def forget_step(self) -> None:
        """Forget what was observed of a step that is not written; its scalars wait for the next one."""
        self._facts, self._rows = {}, {}

    def note_lasting(self, **facts: Any) -> None:
        """Keep facts that hold until they change. They are written with the layout."""
        lasting = self._lasting
        for name, fact in facts.items():
            if lasting.get(name) != fact:
                lasting[name] = fact
                self._layout_step = None

    def observe(self, kind: str, tensor: ObservedTensor, measured: Measured | InBatch) -> None:
        """Keep what was measured of a tensor at the current step."""
        place = self.place_of(kind, tensor)
        if place is not None:
            self.observe_rows(kind, (place,), measured)

    def observe_rows(
        self, kind: str, places: Sequence[int], measured: Measured | InBatch, are_parts: bool = False
    ) -> None:
        """Keep what was measured of tensors with these places at the current step."""
        rows = self._rows.get(kind)
        if rows is None:
            rows = self._rows[kind] = []
        # The class itself, called with two arguments, takes three times as long.
        rows.append(_new(_Rows, (places, measured, are_parts)))

    def place_of(self, kind: str, tensor: ObservedTensor) -> int | None:
        """Return the place of a tensor among those of its kind, from now on; None if there is no room."""
        known = self._kinds.get(kind)
        if known is None:
            known = self._kinds[kind] = _Kind()
        return self._place(known, tensor)

    def hand_over(self, step: int) -> StepTaken:
        """Return what was gathered of the step, which is made into tensors later; gathering starts again."""
        series, observed, facts = self.carried, self._rows, self._facts
        system, self.system = self.system, None
        self.carried, self._rows, self._facts = {}, {}, {}
        self.series_names.update(series)
        layout = None
        if observed or facts:
            if system is not None:
                facts[SYSTEM] = system
            if self._layout_step is None:
                self._layout_step = step
                layout = self._layout()
            facts["layout"] = self._layout_step
        kinds = self._kinds
        names = {kind: _new(_Names, ((known := kinds[kind].names), len(known))) for kind in observed}
        return StepTaken(series, observed, facts, layout, names, self._digests_only)

    def _layout(self) -> ObservationLayout:
        tensors = {kind: tuple(known.tensors.values()) for kind, known in self._kinds.items()}
        return ObservationLayout(tensors, dict(self._lasting))

    def _place(self, known: _Kind, tensor: ObservedTensor) -> int | None:
        place = known.places.get(tensor.name)
        if place is None:
            if len(known.places) >= MAX_ROWS:
                self.left_out += 1
                return None
            place = known.places[tensor.name] = len(known.places)
            known.names.append(tensor.name)
        before = known.tensors.get(tensor.name)
        if before is not tensor and before != tensor:
            known.tensors[tensor.name] = tensor
            self._layout_step = None
        return place


class StepTaken(NamedTuple):
    """What was gathered of one step."""

    series: Mapping[str, Sequence[Carried]]
    rows: Mapping[str, Sequence[_Rows]]
    facts: dict[str, Any]
    layout: ObservationLayout | None
    """Set if names have changed, or what lasts."""
    names: Mapping[str, _Names]
    digests_only: bool

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to write."""
        return not (self.series or self.rows or self.facts)

    def tensors(self) -> Iterator[Handed]:
        """Yield the step's tensors, each with what computes it."""
        for name, values in self.series.items():
            yield Handed(f"{SERIES}{name}", partial(_series, values))
        if self.layout is not None:
            yield Handed(LAYOUT, self.layout.to_array)
        if self.facts:
            yield Handed(FACTS, partial(_facts, self.facts))
        matrices = _Matrices(self.rows, {kind: names.number for kind, names in self.names.items()})
        for kind, (known, number) in self.names.items():
            if not self.digests_only:
                yield Handed(f"{STATISTICS}{kind}", partial(matrices.statistics, kind))
            if matrices.has_parts(kind):
                yield Handed(f"{MEASURED_PARTS}{kind}", partial(matrices.parts, kind))
            if matrices.has_digests(kind):
                digested = Digested(kind, tuple(known[:number]))
                yield Handed(f"{DIGESTS}{kind}", partial(matrices.digests, kind), digested)
            if matrices.has_digests(kind, of_parts=True):
                digested = Digested(PARTS, tuple(known[:number]))
                yield Handed(f"{DIGESTS}{PARTS}", partial(matrices.digests, kind, of_parts=True), digested)
        if self.digests_only:
            return
        for kind in self.rows:  # last, because readers of statistics do not need them
            yield Handed(f"{SAMPLES}{kind}", partial(matrices.samples, kind))


class _Matrices:
    """The matrices of one step, computed together in the background when the first one is needed."""

    def __init__(self, rows: Mapping[str, Sequence[_Rows]], heights: Mapping[str, int]):
        self._rows = rows
        self._heights = heights

    def statistics(self, kind: str) -> Array:
        matrix = np.empty((self._heights[kind], len(ABSENT)), np.float32)
        matrix[:] = ABSENT
        matrix[self._places(kind)] = self._completed[self._slices[kind]]
        return matrix

    def samples(self, kind: str) -> Array:
        values = self._whole_samples[self._slices[kind]]
        size = min(self._sample_size, values.shape[1])
        matrix = np.full((self._heights[kind], size), np.nan, np.float32)
        if size == values.shape[1]:
            matrix[self._places(kind)] = values
            return matrix
        for place, row in zip(self._places(kind), values, strict=True):
            kept = row[sampled_places(int(np.count_nonzero(~np.isnan(row))), size)]
            matrix[place, : kept.size] = kept
        return matrix

    def has_parts(self, kind: str) -> bool:
        return any(rows.are_parts for rows in self._rows[kind])

    def parts(self, kind: str) -> Array:
        matrix = np.full((self._heights[kind], len(MEASURED)), np.nan)
        for places, measured, are_parts in self._rows[kind]:
            if are_parts:
                matrix[list(places)] = _now(measured.numbers)
        return matrix

    def has_digests(self, kind: str, *, of_parts: bool = False) -> bool:
        return any(rows.measured.has_digest for rows in self._rows[kind] if rows.are_parts is of_parts)

    def digests(self, kind: str, *, of_parts: bool = False) -> Array:
        matrix = np.zeros((self._heights[kind], 2), np.int64)
        for places, measured, are_parts in self._rows[kind]:
            if are_parts is not of_parts:
                continue
            if isinstance(measured, InBatch):
                if measured.has_digest:
                    matrix[list(places)] = measured.digests()
            elif measured.digest is not None:
                matrix[places[0]] = _now(measured.digest)
        return matrix

    def _places(self, kind: str) -> list[int]:
        return [place for rows in self._rows[kind] for place in rows.places]

    @cached_property
    def _slices(self) -> dict[str, slice]:
        """Return where the rows of each kind are in the results for all."""
        counts = [sum(len(group.places) for group in rows) for rows in self._rows.values()]
        return {
            kind: slice(end - count, end)
            for kind, count, end in zip(self._rows, counts, accumulate(counts), strict=True)
        }

    @cached_property
    def _sample_size(self) -> int:
        return sample_size(self._count)

    @cached_property
    def _count(self) -> int:
        return sum(len(group.places) for group in self._all)

    @cached_property
    def _all(self) -> list[_Rows]:
        return [group for rows in self._rows.values() for group in rows]

    @cached_property
    def _completed(self) -> NDArray[np.float32]:
        numbers = np.empty((self._count, len(MEASURED)), np.float64)
        end = 0
        for places, measured, _ in self._all:
            begin, end = end, end + len(places)
            numbers[begin:end] = _now(measured.numbers)
        return completed(numbers, self._whole_samples)

    @cached_property
    def _whole_samples(self) -> NDArray[np.float32]:
        values = np.full((self._count, SAMPLE_SIZE), np.nan, np.float32)
        end = width = 0
        for places, measured, _ in self._all:
            begin, end = end, end + len(places)
            if isinstance(measured, InBatch):
                values[begin:end] = measured.samples()
                width = SAMPLE_SIZE
            else:
                sample = _now(measured.sample)
                values[begin, : len(sample)] = sample
                width = max(width, len(sample))
        return values[:, :width]


def _series(values: Sequence[Carried]) -> Array:
    rows = [
        (clock.number_after(passed), clock.mode.value, clock.mode_step + passed, float(value))
        for clock, passed, value in values
    ]
    return np.array(rows, np.float64)


def _facts(facts: dict[str, Any]) -> Array:
    known = {}
    for name, fact in facts.items():
        try:
            known[name] = fact() if callable(fact) else fact
        except Exception as error:  # noqa: BLE001 - one fact less, and not the step
            get_logger().warning(
                "The fact %s is left out of a step: %s: %s", name, type(error).__name__, error
            )
    return json_array(known)


def _now(array: Array | Later) -> Array:
    return array() if callable(array) else array
