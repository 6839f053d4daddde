"""How many units of a layer still react: a unit is active where its value is within limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from smdebug.rules import Finding
from smdebug.rules.evidence import Judged
from smdebug.rules.measurements import WorkerValue, single


class Activity(NamedTuple):
    """Of a layer at one step: how many units there are, and how many of them hardly react."""

    units: int
    inactive: int

    @property
    def percent_inactive(self) -> float:
        """How many of 100 units hardly react."""
        return 100.0 * self.inactive / self.units


def activity(
    value: Any, above: float, below: float, threshold: float, channel: int | None = None
) -> Activity:
    """Units active in less than `threshold` percent of the samples, which are along the first axis.

    A value is active if it is more than `above` and less than `below`; NaN is, since it is another illness.
    With `channel`, the axis of the channels, all that a channel has are its samples.
    """
    value = np.atleast_1d(value)
    if value.dtype.itemsize < 4 and value.dtype.kind not in "biu":
        value = value.astype(np.float32)
    with np.errstate(invalid="ignore"):
        still = value <= above
        if below != np.inf:
            still |= value >= below
    axes: tuple[int, ...] = (0,)
    if channel is not None and value.ndim > 2:
        axes = tuple(axis for axis in range(value.ndim) if axis != channel % value.ndim)
    samples = int(np.prod([value.shape[axis] for axis in axes]))
    active = samples - np.count_nonzero(still, axis=axes)
    percent = 100.0 * np.asarray(active) / samples
    return Activity(int(percent.size), int(np.count_nonzero(percent < threshold)))


def activity_by_reductions(
    reductions: Mapping[tuple[str, bool], Any], above: float, below: float
) -> float | None:
    """100 percent or none are inactive where the saved extremes prove it; None where they do not."""
    least, most = (single(reductions.get((name, False))) for name in ("min", "max"))
    if (most is not None and most <= above) or (least is not None and least >= below):
        return 100.0
    if least is not None and least > above and (most is not None or below == np.inf):
        return 0.0 if below == np.inf or float(most) < below else None
    return None


def percent_inactive(
    seen: WorkerValue, above: float, below: float, threshold: float, channel: int | None = None
) -> float | None:
    """How many of 100 units hardly react; None where that cannot be said."""
    if seen.value is None:
        return activity_by_reductions(seen.reductions, above, below)
    if seen.value.size == 0 or (
        seen.value.dtype.kind not in "biuf" and "float" not in seen.value.dtype.name
    ):
        return None
    axes = seen.value.ndim
    if channel is not None and axes > 2 and not -axes <= channel < axes:
        return None
    return activity(seen.value, above, below, threshold, channel).percent_inactive


def judged_layer(
    name: str,
    seen: WorkerValue,
    inactive: float | None,
    *,
    word: str,
    threshold: float,
    because: str = "",
) -> Judged:
    """What is to be said of a layer of whose units so many percent are `word`; None: that is not known."""
    if inactive is None:
        reason = "its units cannot be told from what was saved of it"
        return Judged(seen.name, seen.worker, skipped=reason)
    finding = None
    if inactive > threshold:
        finding = Finding(
            statistic=f"percent of {word} units",
            value=inactive,
            threshold=threshold,
            message=f"{name}: {inactive:.4g} % of the units are {word}, "
            f"more than {threshold:g} %{because}",
        )
    return Judged(seen.name, seen.worker, finding, badness=inactive)
