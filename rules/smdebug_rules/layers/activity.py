"""Count the inactive units of a layer: a unit is active while its value is within limits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from smdebug.rules import Finding
from smdebug.rules.evidence import Judged
from smdebug.rules.measurements import WorkerValue, single
from smdebug.rules.selection import TensorSelection


def activations(
    collection_names: Any, tensor_regex: Any, default: str, collections: Iterable[str]
) -> TensorSelection:
    """Select by collections and patterns; if the default pattern is among them, by these collections too.

    Hooks that know the class of a module list its tensors there, however the module is named.
    """
    chosen = TensorSelection(collection_names, tensor_regex)
    parts = {part for pattern in chosen.tensor_regex for part in (pattern, *pattern.split("|"))}
    if chosen.collection_names or (chosen and default not in parts):
        return chosen
    return TensorSelection(list(collections), chosen.tensor_regex or default)


class Activity(NamedTuple):
    """The number of units of a layer at one step, and how many of them are inactive."""

    units: int
    inactive: int

    @property
    def percent_inactive(self) -> float:
        """The percentage of inactive units."""
        return 100.0 * self.inactive / self.units


def activity(
    value: Any, above: float, below: float, threshold: float, channel: int | None = None
) -> Activity:
    """Count the units that are active in less than `threshold` percent of the samples (the first axis).

    A value is active if it lies between `above` and `below`. NaN counts as active: another rule reports it.
    With `channel`, the axis of the channels, a unit is a channel and all its values are samples.
    """
    value = np.atleast_1d(value)
    if value.dtype.itemsize < 4 and value.dtype.kind not in "biu":
        value = value.astype(np.float32)
    with np.errstate(invalid="ignore"):
        inactive = value <= above
        if below != np.inf:
            inactive |= value >= below
    axes: tuple[int, ...] = (0,)
    if channel is not None and value.ndim > 2:
        axes = tuple(axis for axis in range(value.ndim) if axis != channel % value.ndim)
    samples = int(np.prod([value.shape[axis] for axis in axes]))
    active = samples - np.count_nonzero(inactive, axis=axes)
    percent = 100.0 * np.asarray(active) / samples
    return Activity(int(percent.size), int(np.count_nonzero(percent < threshold)))


def activity_by_reductions(
    reductions: Mapping[tuple[str, bool], Any], above: float, below: float
) -> float | None:
    """Return 100 or 0 percent if the saved extremes prove it, else None."""
    least, most = (single(reductions.get((name, False))) for name in ("min", "max"))
    if (most is not None and most <= above) or (least is not None and least >= below):
        return 100.0
    if least is not None and least > above and (most is not None or below == np.inf):
        return 0.0 if below == np.inf or float(most) < below else None
    return None


def percent_inactive(
    layer: WorkerValue, above: float, below: float, threshold: float, channel: int | None = None
) -> float | None:
    """Return the percentage of inactive units; None if what was saved does not reveal it."""
    if layer.value is None:
        return activity_by_reductions(layer.reductions, above, below)
    if layer.value.size == 0 or (
        layer.value.dtype.kind not in "biuf" and "float" not in layer.value.dtype.name
    ):
        return None
    axes = layer.value.ndim
    if channel is not None and axes > 2 and not -axes <= channel < axes:
        return None
    return activity(layer.value, above, below, threshold, channel).percent_inactive


def judged_layer(
    name: str,
    layer: WorkerValue,
    inactive: float | None,
    *,
    word: str,
    threshold: float,
    because: str = "",
) -> Judged:
    """Return the verdict on a layer; `word` describes its inactive units, of which None means unknown."""
    if inactive is None:
        reason = "what was saved does not reveal its units"
        return Judged(layer.name, layer.worker, skipped=reason)
    finding = None
    if inactive > threshold:
        finding = Finding(
            statistic=f"percent of {word} units",
            value=inactive,
            threshold=threshold,
            message=f"{name}: {inactive:.4g} % of the units are {word} (limit {threshold:g} %){because}",
        )
    return Judged(layer.name, layer.worker, finding, badness=inactive, value=inactive)
