"""The numbers that describe one tensor at one step, from its value or from its saved reductions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from smdebug.exceptions import SMDebugError, TensorUnavailableForStep
from smdebug.mode_keys import ModeKeys
from smdebug.numbers.statistics import is_numeric, statistics
from smdebug.runs.left_out import refuse_a_missing_file
from smdebug.trials.tensor import Tensor


class TensorSummary(NamedTuple):
    """What there is to say of the values of a tensor; None where it is not known.

    `minimum` to `abs_mean` are of the finite values where there are others, and `nan` and `infinite`
    count those.
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
        """As JSON has it; what is not known is left out."""
        told = self._asdict()
        if self.shape is not None:
            told["shape"] = list(self.shape)
        return {name: value for name, value in told.items() if value is not None}


def statistics_of(value: NDArray[Any]) -> TensorSummary:
    """The statistics of an array; of text, its size and shape alone; of complex numbers, of |x|."""
    told: dict[str, Any] = {
        "size": int(value.size),
        "dtype": value.dtype.name if is_numeric(value) else "text",
        "shape": tuple(value.shape),
    }
    if not value.size or not is_numeric(value):
        return TensorSummary(**told)
    if value.dtype.kind == "c":
        value = np.abs(value)
    seen = statistics(value)
    told |= {"nan": seen.nan, "infinite": seen.infinite, "zeros": seen.zeros}
    if seen.non_finite == seen.size:
        return TensorSummary(**told)
    if seen.non_finite:
        wide = value.astype(np.float64)
        seen = statistics(wide[np.isfinite(wide)])
    told |= {
        "minimum": seen.min,
        "maximum": seen.max,
        "mean": seen.mean,
        "std": seen.std,
        "abs_mean": seen.mean_abs,
        "l2": seen.l2,
    }
    return TensorSummary(**told)


def statistics_at(
    tensor: Tensor, step: int, mode: ModeKeys = ModeKeys.GLOBAL, worker: str | None = None
) -> TensorSummary | None:
    """The statistics of a tensor at a step, from what was saved of it; None if nothing can be read."""
    try:
        return statistics_read(tensor, step, mode, worker)
    except SMDebugError:
        return None


def statistics_read(
    tensor: Tensor, step: int, mode: ModeKeys = ModeKeys.GLOBAL, worker: str | None = None
) -> TensorSummary | None:
    """The same; None if the shape alone was saved, and `DamagedFile` or whatever else forbids reading.

    `ObjectMissing` if the event file is gone.
    """
    try:
        return statistics_of(tensor.value(step, mode, worker))
    except TensorUnavailableForStep:
        refuse_a_missing_file(tensor, step, mode, worker)
        return from_reductions(tensor.reduction_values(step, mode, worker))


def from_reductions(saved: Mapping[tuple[str, bool], Any]) -> TensorSummary | None:
    """What saved reductions tell; None if they tell nothing."""
    known = {key: _number(value) for key, value in saved.items()}
    told: dict[str, float | None] = {
        "minimum": known.get(("min", False)),
        "maximum": known.get(("max", False)),
        "mean": known.get(("mean", False)),
        "std": known.get(("std", False)),
        "abs_mean": known.get(("mean", True)),
        "l2": known.get(("l2", False)),
    }
    variance = known.get(("variance", False))
    if told["std"] is None and variance is not None and variance >= 0:
        told["std"] = math.sqrt(variance)
    return TensorSummary(**told) if any(one is not None for one in told.values()) else None  # type: ignore[arg-type]


def _number(value: Any) -> float | None:
    array = np.asarray(value)
    return float(array.reshape(-1)[0]) if array.size == 1 and is_numeric(array) else None


def sparkline(numbers: Iterable[float], most: int = 40) -> str:
    """The course of some numbers as one line of text; what is not finite shows as `!`."""
    found = list(numbers)
    if len(found) > most:
        found = [found[round(at * (len(found) - 1) / (most - 1))] for at in range(most)]
    finite = [one for one in found if math.isfinite(one)]
    if not finite:
        return "!" * len(found)
    low, high = min(finite), max(finite)
    span = high - low
    if not math.isfinite(span):
        low, high, span = low / 4, high / 4, high / 4 - low / 4
        found = [one / 4 for one in found]
    blocks = "▁▂▃▄▅▆▇█"
    return "".join(
        blocks[min(7, int(8 * (one - low) / span)) if span else 0] if math.isfinite(one) else "!"
        for one in found
    )
