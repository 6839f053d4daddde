"""The distribution of a tensor's values, step by step, for a heat map."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smdebug.exceptions import SMDebugError
from smdebug.numbers.conditions import is_numeric
from smdebug.runs.overview import thinned
from smdebug.trials.tensor import Tensor

MOST_STEPS = 60
BINS = 41


@dataclass(frozen=True)
class Distribution:
    """Shares of the values in bins that are equal on the scale asinh(x / unit).

    The bins are even near zero and grow with values beyond `unit`, so that gradients of 1e-9 and of 1 are
    both visible.
    """

    name: str
    steps: tuple[int, ...]
    unit: float
    low: float  # on that scale
    high: float
    shares: NDArray[np.uint8]  # steps × bins; 255 is the largest share of the step

    def value_at(self, scaled: float) -> float:
        return self.unit * math.sinh(scaled)


def distribution_of(
    tensor: Tensor, steps: Sequence[int], numbers: Mapping[str, NDArray[np.float32]]
) -> Distribution | None:
    """Return the distribution at some of these steps; `numbers` has the tensor's statistics there."""
    known = np.isfinite(numbers["minimum"]) & np.isfinite(numbers["maximum"])
    chosen = thinned(
        [step for step, is_known in zip(steps, known, strict=True) if is_known], MOST_STEPS
    )
    if not chosen:
        return None
    unit, low, high = _scale({name: values[known] for name, values in numbers.items()})
    rows: list[NDArray[np.uint8]] = []
    drawn = []
    for step in chosen:
        value = _value(tensor, step)
        if value is None:
            continue
        scaled = np.arcsinh(value / unit)
        counts = np.histogram(np.clip(scaled, low, high), BINS, (low, high))[0]
        top = counts.max()
        rows.append((255 * counts / top if top else counts).astype(np.uint8))
        drawn.append(step)
    if not rows:
        return None
    return Distribution(tensor.name, tuple(drawn), unit, low, high, np.stack(rows))


def _scale(numbers: Mapping[str, NDArray[np.float32]]) -> tuple[float, float, float]:
    """The unit of the scale, and the smallest and largest value on it."""
    smallest, largest = float(numbers["minimum"].min()), float(numbers["maximum"].max())
    stds = numbers["std"]
    scales = stds[np.isfinite(stds) & (stds > 0)]
    reach = max(abs(smallest), abs(largest), 1e-30)
    unit = float(np.quantile(scales, 0.1)) if scales.size else reach / 10
    unit = min(max(unit, reach * 1e-12, 1e-38), reach)
    low, high = math.asinh(smallest / unit), math.asinh(largest / unit)
    if high - low < 1e-9:
        low, high = low - 0.5, high + 0.5
    return unit, low, high


def _value(tensor: Tensor, step: int) -> NDArray[Any] | None:
    try:
        value = tensor.value(step)
    except SMDebugError:
        try:
            value = tensor.sample(step)  # of a tensor that was measured and not saved
        except SMDebugError:
            return None
    if not is_numeric(value) or value.dtype.kind == "c":
        return None
    flat = value.reshape(-1).astype(np.float64)
    flat = flat[np.isfinite(flat)]
    return flat if flat.size else None
