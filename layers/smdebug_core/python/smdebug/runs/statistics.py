"""The numbers that describe one tensor at one step, from its value or from its saved reductions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from smdebug.exceptions import SMDebugError
from smdebug.mode_keys import ModeKeys
from smdebug.numbers.conditions import count_non_finite, count_zeros, is_numeric
from smdebug.numbers.reductions import compute_reductions
from smdebug.trials.tensor import Tensor

_WANTED = (("min", False), ("max", False), ("mean", False), ("std", False), ("mean", True))


class Statistics(NamedTuple):
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


def statistics_of(value: NDArray[Any]) -> Statistics:
    """The statistics of an array; of text, its size and shape alone."""
    told: dict[str, Any] = {
        "size": int(value.size),
        "dtype": value.dtype.name if is_numeric(value) else "text",
        "shape": tuple(value.shape),
    }
    if not value.size or not is_numeric(value):
        return Statistics(**told)
    nan, infinite = count_non_finite(value)
    told |= {"nan": nan, "infinite": infinite, "zeros": count_zeros(value)}
    finite = value
    if nan or infinite:
        wide = value.astype(np.complex128 if value.dtype.kind == "c" else np.float64)
        finite = wide[np.isfinite(wide)]
    if finite.dtype.kind == "c":
        finite = np.abs(finite)
    if not finite.size:
        return Statistics(**told)
    reduced = compute_reductions(finite, (*_WANTED, ("l2", False)))
    names = ("minimum", "maximum", "mean", "std", "abs_mean", "l2")
    told |= {name: float(number) for name, number in zip(names, reduced.values(), strict=True)}
    return Statistics(**told)


def statistics_at(
    tensor: Tensor, step: int, mode: ModeKeys = ModeKeys.GLOBAL, worker: str | None = None
) -> Statistics | None:
    """The statistics of a tensor at a step, from what was saved of it; None if nothing can be read."""
    try:
        return statistics_of(tensor.value(step, mode, worker))
    except SMDebugError:
        pass
    try:
        return from_reductions(tensor.reduction_values(step, mode, worker))
    except SMDebugError:
        return None


def from_reductions(saved: Mapping[tuple[str, bool], Any]) -> Statistics | None:
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
    return Statistics(**told) if any(one is not None for one in told.values()) else None  # type: ignore[arg-type]


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
