"""The observations of a step: gathered while it runs, and made into tensors when it is written.

Rows keep their place from step to step, so that a tensor has one place in all matrices of its kind. A step
that brings a new tensor writes a new layout; one that lacks a tensor leaves its row absent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from smdebug.files.observations import (
    DIGESTS,
    FACTS,
    LAYOUT,
    SAMPLES,
    SERIES,
    STATISTICS,
    Layout,
    ObservedTensor,
    json_array,
)
from smdebug.numbers.digests import content_digest
from smdebug.numbers.rows import (
    ABSENT,
    SAMPLE_SIZE,
    completed,
    measured,
    sample_of,
    sample_size,
    sampled_places,
)
from smdebug.saving.step_clock import StepClock

Array = NDArray[Any]
#: Returns an array, behind the training: a copy from a GPU is awaited there.
Later = Callable[[], Array]
MAX_ROWS = 100_000
"""Tensors of one kind beyond this many are left out: names that change from step to step have no end."""
MAX_CARRIED = 1_000_000
"""Values of one series beyond this many since the last saved step are left out, the oldest first."""


class Measured(NamedTuple):
    """What was measured of one tensor: an array, or what returns it once, behind the training."""

    numbers: Array | Later
    """The numbers of `numbers.rows.MEASURED`."""
    sample: Array | Later
    """At most `SAMPLE_SIZE` values."""
    digest: Array | Later | None = None


def measure(array: Array, *, digest: bool = False) -> Measured:
    """Measure an array, now."""
    halves = np.array(content_digest(array), np.int64) if digest else None
    return Measured(np.array(measured(array)), sample_of(array, SAMPLE_SIZE), halves)


class Digested(NamedTuple):
    """Which tensors the rows of a matrix of digests belong to."""

    kind: str
    names: tuple[str, ...]


class Handed(NamedTuple):
    """A tensor of observations, with what computes it behind the training."""

    name: str
    make: Later
    digested: Digested | None = None
    """Set for a matrix of digests."""


class _Row(NamedTuple):
    place: int
    measured: Measured


@dataclass
class _Kind:
    """The tensors of one kind that were seen so far, each with its place."""

    tensors: dict[str, ObservedTensor] = field(default_factory=dict)
    places: dict[str, int] = field(default_factory=dict)


class StepObservations:
    """Gathers observations, and hands those of a step over when it ends."""

    def __init__(self, *, digests_only: bool = False) -> None:
        self._digests_only = digests_only
        self.left_out = 0
        """How many tensors were left out because there were too many."""
        self._kinds: dict[str, _Kind] = {}
        self._rows: dict[str, list[_Row]] = {}
        self._facts: dict[str, Any] = {}
        self._lasting: dict[str, Any] = {}
        self._carried: dict[str, list[tuple[int, int, int, Any]]] = {}
        self._layout_step: int | None = None

    @property
    def carries_series(self) -> bool:
        """Whether scalars wait for the next step that is written."""
        return bool(self._carried)

    def carry(self, name: str, value: Any, clock: StepClock) -> None:
        """Keep a scalar of a step, whether that step is saved or not, until one is written.

        Whatever `float` takes is a value; it is converted behind the training.
        """
        rows = self._carried.setdefault(name, [])
        rows.append((clock.step, clock.mode.value, clock.mode_step, value))
        if len(rows) > MAX_CARRIED:
            del rows[: len(rows) // 2]

    def note(self, **facts: Any) -> None:
        """Keep facts of the step: JSON values, or functions that return one behind the training."""
        self._facts.update(facts)

    def note_lasting(self, **facts: Any) -> None:
        """Keep facts that hold until they change. They are written with the layout."""
        if any(self._lasting.get(name) != fact for name, fact in facts.items()):
            self._lasting.update(facts)
            self._layout_step = None

    def observe(self, kind: str, tensor: ObservedTensor, measured: Measured) -> None:
        """Keep what was measured of a tensor at the step that runs."""
        known = self._kinds.setdefault(kind, _Kind())
        place = self._place(known, tensor)
        if place is not None:
            self._rows.setdefault(kind, []).append(_Row(place, measured))

    def hand_over(self, step: int) -> Iterator[Handed]:
        """The step's tensors, each with what computes it; what was gathered begins anew."""
        series, observed, facts = self._carried, self._rows, self._facts
        self._carried, self._rows, self._facts = {}, {}, {}
        for name, values in series.items():
            yield Handed(f"{SERIES}{name}", partial(_series, values))
        if not observed and not facts:
            return
        if self._layout_step is None:
            self._layout_step = step
            layout = self._layout()
            yield Handed(LAYOUT, layout.to_array)
        yield Handed(FACTS, partial(_facts, {**facts, "layout": self._layout_step}))
        tensors = sum(map(len, observed.values()))
        matrices = [
            _Matrices(kind, rows, len(self._kinds[kind].places), sample_size(tensors))
            for kind, rows in observed.items()
        ]
        for matrix in matrices:
            if not self._digests_only:
                yield Handed(f"{STATISTICS}{matrix.kind}", matrix.statistics)
            if matrix.has_digests:
                names = tuple(self._kinds[matrix.kind].places)
                yield Handed(
                    f"{DIGESTS}{matrix.kind}", matrix.digests, Digested(matrix.kind, names)
                )
        if self._digests_only:
            return
        for matrix in matrices:  # last, because readers of statistics do not need them
            yield Handed(f"{SAMPLES}{matrix.kind}", matrix.samples)

    def _layout(self) -> Layout:
        tensors = {kind: tuple(known.tensors.values()) for kind, known in self._kinds.items()}
        return Layout(tensors, dict(self._lasting))

    def _place(self, known: _Kind, tensor: ObservedTensor) -> int | None:
        place = known.places.get(tensor.name)
        if place is None:
            if len(known.places) >= MAX_ROWS:
                self.left_out += 1
                return None
            place = known.places[tensor.name] = len(known.places)
        if known.tensors.get(tensor.name) != tensor:
            known.tensors[tensor.name] = tensor
            self._layout_step = None
        return place


class _Matrices:
    """The matrices of one kind at one step, computed behind the training."""

    def __init__(self, kind: str, rows: Sequence[_Row], height: int, sample_size: int):
        self.kind = kind
        self.has_digests = any(row.measured.digest is not None for row in rows)
        self._rows = rows
        self._height = height
        self._sample_size = sample_size

    def statistics(self) -> Array:
        numbers = np.array([_now(row.measured.numbers) for row in self._rows], np.float64)
        matrix = np.tile(ABSENT, (self._height, 1))
        matrix[self._places] = completed(numbers, self._whole_samples)
        return matrix

    def samples(self) -> Array:
        values = self._whole_samples
        size = min(self._sample_size, values.shape[1])
        matrix = np.full((self._height, size), np.nan, np.float32)
        for place, row in zip(self._places, values, strict=True):
            kept = row[sampled_places(int(np.count_nonzero(~np.isnan(row))), size)]
            matrix[place, : kept.size] = kept
        return matrix

    def digests(self) -> Array:
        matrix = np.zeros((self._height, 2), np.int64)
        for place, row in zip(self._places, self._rows, strict=True):
            if row.measured.digest is not None:
                matrix[place] = _now(row.measured.digest)
        return matrix

    @cached_property
    def _places(self) -> list[int]:
        return [row.place for row in self._rows]

    @cached_property
    def _whole_samples(self) -> NDArray[np.float32]:
        samples = [_now(row.measured.sample) for row in self._rows]
        width = max((len(sample) for sample in samples), default=0)
        values = np.full((len(samples), width), np.nan, np.float32)
        for row, sample in zip(values, samples, strict=True):
            row[: len(sample)] = sample
        return values


def _series(values: Sequence[tuple[int, int, int, Any]]) -> Array:
    return np.array([(*place, float(value)) for *place, value in values], np.float64)


def _facts(facts: dict[str, Any]) -> Array:
    return json_array({name: fact() if callable(fact) else fact for name, fact in facts.items()})


def _now(array: Array | Later) -> Array:
    return array() if callable(array) else array
