"""The observations of a step: gathered while it runs, and made into tensors when it is written.

Rows keep their place from step to step, so that a tensor has one place in all matrices of its kind. A step
that brings a new tensor writes a new layout; one that lacks a tensor leaves its row absent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
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
from smdebug.numbers.rows import ABSENT, completed
from smdebug.saving.step_clock import StepClock

Array = NDArray[Any]
#: Returns an array, behind the training: a copy from a GPU is awaited there. It is called more than once.
Later = Callable[[], Array]
MAX_ROWS = 100_000
"""Tensors of one kind beyond this many are left out: names that change from step to step have no end."""
MAX_CARRIED = 1_000_000
"""Values of one series beyond this many since the last saved step are left out, the oldest first."""


class Measured(NamedTuple):
    """What was measured of some tensors: a row for each in all of the arrays."""

    numbers: Later
    """The numbers of `numbers.rows.MEASURED`."""
    samples: Later
    digests: Later | None = None


class _Part(NamedTuple):
    places: NDArray[np.int64]
    measured: Measured


@dataclass
class _Kind:
    """The tensors of one kind that were seen so far, each with its place."""

    tensors: dict[str, ObservedTensor] = field(default_factory=dict)
    places: dict[str, int] = field(default_factory=dict)


class StepObservations:
    """Gathers observations, and hands those of a step over when it ends."""

    def __init__(self) -> None:
        self.left_out = 0
        """How many tensors were left out because there were too many."""
        self._kinds: dict[str, _Kind] = {}
        self._parts: dict[str, list[_Part]] = {}
        self._facts: dict[str, Any] = {}
        self._lasting: dict[str, Any] = {}
        self._carried: dict[str, list[tuple[int, int, int, float]]] = {}
        self._layout_step: int | None = None

    @property
    def carries_series(self) -> bool:
        """Whether scalars wait for the next step that is written."""
        return bool(self._carried)

    def carry(self, name: str, value: float, clock: StepClock) -> None:
        """Keep a scalar of a step, whether that step is saved or not, until one is written."""
        rows = self._carried.setdefault(name, [])
        rows.append((clock.step, clock.mode.value, clock.mode_step, value))
        if len(rows) > MAX_CARRIED:
            del rows[: len(rows) // 2]

    def note(self, **facts: Any) -> None:
        """Keep facts of the step: JSON values."""
        self._facts.update(facts)

    def note_lasting(self, **facts: Any) -> None:
        """Keep facts that hold until they change. They are written with the layout."""
        if any(self._lasting.get(name) != fact for name, fact in facts.items()):
            self._lasting.update(facts)
            self._layout_step = None

    def observe(self, kind: str, tensors: Sequence[ObservedTensor], measured: Measured) -> None:
        """Keep what was measured of these tensors at the step that runs."""
        known = self._kinds.setdefault(kind, _Kind())
        places = [self._place(known, tensor) for tensor in tensors]
        self._parts.setdefault(kind, []).append(_Part(np.array(places, np.int64), measured))

    def hand_over(self, step: int) -> Iterator[tuple[str, Later]]:
        """The step's tensors, each with what computes it; what was gathered begins anew."""
        series, parts, facts = self._carried, self._parts, self._facts
        self._carried, self._parts, self._facts = {}, {}, {}
        for name, rows in series.items():
            yield f"{SERIES}{name}", _array(np.array(rows, np.float64))
        if not parts and not facts:
            return
        if self._layout_step is None:
            self._layout_step = step
            yield LAYOUT, _array(self._layout().to_array())
        yield FACTS, _array(json_array({**facts, "layout": self._layout_step}))
        for kind, observed in parts.items():
            yield from _tensors_of(kind, observed, len(self._kinds[kind].places))

    def _layout(self) -> Layout:
        tensors = {kind: tuple(known.tensors.values()) for kind, known in self._kinds.items()}
        return Layout(tensors, dict(self._lasting))

    def _place(self, known: _Kind, tensor: ObservedTensor) -> int:
        place = known.places.get(tensor.name)
        if place is None:
            if len(known.places) >= MAX_ROWS:
                self.left_out += 1
                return -1
            place = known.places[tensor.name] = len(known.places)
        if known.tensors.get(tensor.name) != tensor:
            known.tensors[tensor.name] = tensor
            self._layout_step = None
        return place


def _tensors_of(kind: str, parts: Iterable[_Part], rows: int) -> Iterator[tuple[str, Later]]:
    """The matrices of one kind. Samples come last: who reads statistics does not need them."""
    parts = list(parts)
    yield f"{STATISTICS}{kind}", lambda: _statistics(parts, rows)
    if any(part.measured.digests for part in parts):
        yield f"{DIGESTS}{kind}", lambda: _digests(parts, rows)
    yield f"{SAMPLES}{kind}", lambda: _samples(parts, rows)


def _statistics(parts: Sequence[_Part], rows: int) -> Array:
    matrix = np.tile(ABSENT, (rows, 1))
    for places, measured in parts:
        _fill(matrix, places, completed(measured.numbers(), measured.samples()))
    return matrix


def _samples(parts: Sequence[_Part], rows: int) -> Array:
    found = [(part.places, part.measured.samples()) for part in parts]
    matrix = np.full((rows, max(len(values.T) for _, values in found)), np.nan, np.float32)
    for places, values in found:
        _fill(matrix[:, : len(values.T)], places, values)
    return matrix


def _digests(parts: Sequence[_Part], rows: int) -> Array:
    matrix = np.zeros((rows, 2), np.int64)
    for places, measured in parts:
        if measured.digests is not None:
            _fill(matrix, places, measured.digests())
    return matrix


def _fill(matrix: Array, places: NDArray[np.int64], values: Array) -> None:
    kept = places >= 0
    matrix[places[kept]] = values[kept]


def _array(array: Array) -> Later:
    return lambda: array
