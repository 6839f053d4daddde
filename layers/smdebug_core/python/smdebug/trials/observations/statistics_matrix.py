"""The statistics of all tensors of a step, as one matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from smdebug.exceptions import SMDebugValueError, TensorUnavailableForStep
from smdebug.files.observations import ObservedTensor, Rows
from smdebug.numbers.rows import COLUMN, COLUMNS

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class StatisticsMatrix:
    """What was measured of each tensor at one step: a row per tensor, a column per statistic."""

    step: int
    tensors: tuple[ObservedTensor, ...]
    kinds: tuple[str, ...]
    """The kind of each row: `parameters`, `gradients`, `updates`, `inputs`, `outputs`."""
    values: Floats
    columns: tuple[str, ...] = COLUMNS
    parts: Mapping[str, str] = field(default_factory=dict)
    """The rows that are of a part of a sharded tensor, and not of the whole: which part, in words."""
    combined: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    """The rows of whole tensors that were combined from their parts, not rounded. They have no quantiles."""

    @cached_property
    def names(self) -> list[str]:
        """The names of the rows."""
        rows = self.tensors
        return rows.names if isinstance(rows, Rows) else [tensor.name for tensor in rows]

    def column(self, statistic: str) -> Floats:
        """That statistic of every tensor, NaN where the step had none of it."""
        place = COLUMN.get(statistic)
        if place is None:
            raise SMDebugValueError(f"{statistic!r} is not a statistic. Known are {', '.join(self.columns)}")
        return self.values[:, place]

    def row(self, name: str) -> dict[str, float]:
        """The statistics of that tensor, by name."""
        place = self._places.get(name)
        if place is None:
            raise TensorUnavailableForStep(name, self.step)
        numbers = self.combined.get(name, self.values[place])
        return dict(zip(self.columns, numbers.tolist(), strict=True))

    def described(self, name: str) -> tuple[dict[str, float], str, tuple[int, ...]]:
        """The statistics of that tensor with the type and the shape of what they are of."""
        row = self.row(name)
        tensor = self.tensors[self._places[name]]
        return row, tensor.dtype, tensor.shape

    def of(self, kind: str) -> StatisticsMatrix:
        """The rows of one kind alone."""
        chosen = [place for place, other in enumerate(self.kinds) if other == kind]
        return StatisticsMatrix(
            self.step,
            tuple(self.tensors[place] for place in chosen),
            (kind,) * len(chosen),
            self.values[chosen],
            parts=self.parts,
            combined=self.combined,
        )

    def __len__(self) -> int:
        return len(self.tensors)

    def __repr__(self) -> str:
        kinds = ", ".join(f"{self.kinds.count(kind)} {kind}" for kind in dict.fromkeys(self.kinds))
        rows = kinds or "no tensors"
        return f"StatisticsMatrix(step={self.step}, {rows}; {len(self.columns)} statistics each)"

    def __contains__(self, name: object) -> bool:
        return name in self._places

    @cached_property
    def _places(self) -> dict[str, int]:
        rows = self.tensors
        if isinstance(rows, Rows):
            return rows.places
        return {name: place for place, name in enumerate(self.names)}


def joined(parts: Sequence[StatisticsMatrix]) -> StatisticsMatrix:
    """Return the rows of several matrices of one step as one; there is at least one."""
    return StatisticsMatrix(
        parts[0].step,
        tuple(tensor for part in parts for tensor in part.tensors),
        tuple(kind for part in parts for kind in part.kinds),
        np.concatenate([part.values for part in parts]),
        parts={name: words for part in parts for name, words in part.parts.items()},
        combined={name: row for part in parts for name, row in part.combined.items()},
    )
