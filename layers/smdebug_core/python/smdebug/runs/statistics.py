"""Statistics of one tensor at one step: from its value, its saved reductions, or what was measured of it.

Their names are those of a step's matrix of statistics (`numbers.rows`), wherever people or programs see them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smdebug.exceptions import SMDebugError, TensorUnavailableForStep
from smdebug.mode_keys import ModeKeys
from smdebug.numbers.conditions import is_numeric
from smdebug.numbers.rows import COLUMNS, MEASURED, SAMPLE_SIZE, quantiles_of, sample_of
from smdebug.numbers.statistics import statistics
from smdebug.runs.left_out import refuse_a_missing_file
from smdebug.trials.tensor import Tensor

QUANTILES = COLUMNS[len(MEASURED) :]
STATISTICS = (*COLUMNS[: len(MEASURED)], "l2", *QUANTILES)
"""The names of all statistics, in order."""
COUNTS = ("count", "non_finite", "zeros")
"""Those that are whole numbers."""


@dataclass(frozen=True)
class TensorSummary:
    """Statistics of the values of a tensor; None if unknown.

    `zeros` to `l2` and the quantiles, which are those of a sample, are of the finite values. `non_finite`
    counts the others; `nan` and `infinite` tell them apart, unless the tensor was only measured.
    """

    count: int | None = None
    non_finite: int | None = None
    nan: int | None = None
    infinite: int | None = None
    zeros: int | None = None
    min: float | None = None
    max: float | None = None
    mean: float | None = None
    abs_mean: float | None = None
    rms: float | None = None
    std: float | None = None
    l2: float | None = None
    quantiles: Mapping[str, float] = field(default_factory=dict)
    """`p01` to `p99`."""
    dtype: str | None = None
    shape: tuple[int, ...] | None = None

    def of(self, statistic: str) -> float | None:
        """Return one of `STATISTICS`; None if it is unknown."""
        if statistic in QUANTILES:
            return self.quantiles.get(statistic)
        value: float | None = getattr(self, statistic)
        return value

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it, without unknown values."""
        fields = {**vars(self), **self.quantiles}
        del fields["quantiles"]
        known = {name: value for name, value in fields.items() if value is not None}
        if self.shape is not None:
            known["shape"] = list(self.shape)
        return known


def statistics_of(value: NDArray[Any]) -> TensorSummary:
    """Return the statistics of an array: of |x| for complex numbers, only count and shape for text."""
    found: dict[str, Any] = {
        "count": int(value.size),
        "dtype": value.dtype.name if is_numeric(value) else "text",
        "shape": tuple(value.shape),
    }
    if not value.size or not is_numeric(value):
        return TensorSummary(**found)
    if value.dtype.kind == "c":
        value = np.abs(value)
    seen = statistics(value)
    found |= {name: getattr(seen, name) for name in ("non_finite", "nan", "infinite", "zeros")}
    if seen.non_finite == seen.size:
        return TensorSummary(**found)
    sample = sample_of(value, SAMPLE_SIZE)
    if seen.non_finite:
        wide = value.astype(np.float64)
        seen = statistics(wide[np.isfinite(wide)])
    found |= {name: getattr(seen, name) for name in ("min", "max", "mean", "abs_mean", "std", "l2")}
    found["rms"] = seen.l2 / math.sqrt(seen.size)
    quantiles = zip(QUANTILES, quantiles_of(sample[None, :])[0].tolist(), strict=True)
    found["quantiles"] = {name: share for name, share in quantiles if share == share}
    return TensorSummary(**found)


def statistics_of_number(value: float) -> TensorSummary:
    """Return the statistics of a single number, as `statistics_of` has them, but fast."""
    is_nan, is_infinite = math.isnan(value), math.isinf(value)
    counts: dict[str, Any] = {
        "count": 1,
        "non_finite": int(is_nan or is_infinite),
        "zeros": int(value == 0),
        "nan": int(is_nan),
        "infinite": int(is_infinite),
        "dtype": "float64",
        "shape": (),
    }
    if counts["non_finite"]:
        return TensorSummary(**counts)
    size = abs(value)
    return TensorSummary(
        **counts,
        min=value,
        max=value,
        mean=value,
        abs_mean=size,
        rms=size,
        std=0.0,
        l2=size,
        quantiles=dict.fromkeys(QUANTILES, value),
    )


def statistics_in_row(row: Mapping[str, float], dtype: str, shape: tuple[int, ...]) -> TensorSummary | None:
    """Return the statistics in a row of a step's matrix; None if the step did not have the tensor."""
    if not row["count"] > 0:
        return None
    counts: dict[str, Any] = {name: int(row[name]) for name in ("count", "non_finite")}
    if not row["non_finite"]:
        counts |= {"nan": 0, "infinite": 0}
    known = {name: row[name] for name in COLUMNS if row[name] == row[name]}
    numbers: dict[str, Any] = {name: known.get(name) for name in MEASURED if name not in COUNTS}
    if "rms" in known:
        numbers["l2"] = known["rms"] * math.sqrt(row["count"] - row["non_finite"])
    if "zeros" in known:
        counts["zeros"] = int(known["zeros"])
    quantiles = {name: known[name] for name in QUANTILES if name in known}
    return TensorSummary(**counts, **numbers, quantiles=quantiles, dtype=dtype, shape=shape)


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

    Of a value that was not saved, they are what was measured, or the saved reductions. Raise `ObjectMissing`
    if the event file is missing, and `DamagedFile` if it is damaged.
    """
    try:
        return statistics_of(tensor.value(step, mode, worker))
    except TensorUnavailableForStep:
        refuse_a_missing_file(tensor, step, mode, worker)
    observations = tensor.trial.observations
    if observations.has_facts:
        measured = observations.measured.matrix(tensor.name, step, mode, worker)
        if measured is not None:
            return statistics_in_row(*measured.described(tensor.name))
    return from_reductions(tensor.reduction_values(step, mode, worker))


def from_reductions(saved: Mapping[tuple[str, bool], Any]) -> TensorSummary | None:
    """Return the statistics in saved reductions; None if they contain none."""
    known = {key: _number(value) for key, value in saved.items()}
    found: dict[str, float | None] = {
        "min": known.get(("min", False)),
        "max": known.get(("max", False)),
        "mean": known.get(("mean", False)),
        "abs_mean": known.get(("mean", True)),
        "std": known.get(("std", False)),
        "l2": known.get(("l2", False)),
    }
    variance = known.get(("variance", False))
    if found["std"] is None and variance is not None and variance >= 0:
        found["std"] = math.sqrt(variance)
    return TensorSummary(**found) if any(value is not None for value in found.values()) else None  # type: ignore[arg-type]


def _number(value: Any) -> float | None:
    array = np.asarray(value)
    return float(array.reshape(-1)[0]) if array.size == 1 and is_numeric(array) else None
