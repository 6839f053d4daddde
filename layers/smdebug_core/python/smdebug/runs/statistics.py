"""Statistics of one tensor at one step, from its value or its saved reductions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from smdebug.exceptions import SMDebugError, TensorUnavailableForStep
from smdebug.mode_keys import ModeKeys
from smdebug.numbers.statistics import is_numeric, statistics
from smdebug.runs.left_out import refuse_a_missing_file
from smdebug.trials.tensor import Tensor


class TensorSummary(NamedTuple):
    """Statistics of the values of a tensor; None if unknown.

    `minimum` to `l2` are of the finite values; `nan` and `infinite` count the others.
    """

    minimum: float | None = None
    maximum: float | None = None
    mean: float | None = None
    std: float | None = None
    abs_mean: float | None = None
    l2: float | None = None
    nan: int | None = None
    infinite: int | None = None
    zeros: int | None = None
    size: int | None = None
    dtype: str | None = None
    shape: tuple[int, ...] | None = None

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it, without unknown values."""
        known = {name: value for name, value in self._asdict().items() if value is not None}
        if self.shape is not None:
            known["shape"] = list(self.shape)
        return known


def statistics_of(value: NDArray[Any]) -> TensorSummary:
    """Return the statistics of an array: of |x| for complex numbers, only size and shape for text."""
    found: dict[str, Any] = {
        "size": int(value.size),
        "dtype": value.dtype.name if is_numeric(value) else "text",
        "shape": tuple(value.shape),
    }
    if not value.size or not is_numeric(value):
        return TensorSummary(**found)
    if value.dtype.kind == "c":
        value = np.abs(value)
    seen = statistics(value)
    found |= {"nan": seen.nan, "infinite": seen.infinite, "zeros": seen.zeros}
    if seen.non_finite == seen.size:
        return TensorSummary(**found)
    if seen.non_finite:
        wide = value.astype(np.float64)
        seen = statistics(wide[np.isfinite(wide)])
    found |= {
        "minimum": seen.min,
        "maximum": seen.max,
        "mean": seen.mean,
        "std": seen.std,
        "abs_mean": seen.mean_abs,
        "l2": seen.l2,
    }
    return TensorSummary(**found)


def statistics_at(
    tensor: Tensor, step: int, mode: ModeKeys = ModeKeys.GLOBAL, worker: str | None = None
) -> TensorSummary | None:
    """Return the statistics of a tensor at a step; None if nothing of it can be read."""
    try:
        return statistics_read(tensor, step, mode, worker)
    except SMDebugError:
        return None


def statistics_read(
    tensor: Tensor, step: int, mode: ModeKeys = ModeKeys.GLOBAL, worker: str | None = None
) -> TensorSummary | None:
    """Return the statistics of a tensor at a step; None if only its shape was saved.

    Raise `ObjectMissing` if the event file is missing, and `DamagedFile` if it is damaged.
    """
    try:
        return statistics_of(tensor.value(step, mode, worker))
    except TensorUnavailableForStep:
        refuse_a_missing_file(tensor, step, mode, worker)
        return from_reductions(tensor.reduction_values(step, mode, worker))


def from_reductions(saved: Mapping[tuple[str, bool], Any]) -> TensorSummary | None:
    """Return the statistics in saved reductions; None if they contain none."""
    known = {key: _number(value) for key, value in saved.items()}
    found: dict[str, float | None] = {
        "minimum": known.get(("min", False)),
        "maximum": known.get(("max", False)),
        "mean": known.get(("mean", False)),
        "std": known.get(("std", False)),
        "abs_mean": known.get(("mean", True)),
        "l2": known.get(("l2", False)),
    }
    variance = known.get(("variance", False))
    if found["std"] is None and variance is not None and variance >= 0:
        found["std"] = math.sqrt(variance)
    return TensorSummary(**found) if any(value is not None for value in found.values()) else None  # type: ignore[arg-type]


def _number(value: Any) -> float | None:
    array = np.asarray(value)
    return float(array.reshape(-1)[0]) if array.size == 1 and is_numeric(array) else None
