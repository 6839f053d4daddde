"""The kinds of plots, each over the values of some tensors or over a run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from smdebug.plots.picture import ACCENT, SECOND, Picture, panels
from smdebug.plots.values import Runs, Values, edges_of, flat, magnitudes, named, values_of

_BINS = 50
_FAR_APART = 50  # as in reports


def histogram(
    runs: Runs | Values, regex: str | list[str] = ".*", *, step: int | None = None, **chosen: Any
) -> Picture:
    """Draw the distribution of each tensor at its last step, or at `step`, with the first one's outline."""
    values = _values(runs, regex, chosen if step is None else {**chosen, "steps": [step]})
    figure, axes = panels(list(values))
    for axis, over_steps in zip(axes, values.values(), strict=True):
        first, last = min(over_steps), max(over_steps)
        edges: Any = edges_of([flat(over_steps[first]), flat(over_steps[last])], _BINS)
        axis.hist(flat(over_steps[last]), edges, color=ACCENT, alpha=0.75, label=f"step {last}")
        if first != last:
            axis.hist(flat(over_steps[first]), edges, histtype="step", color=SECOND, label=f"step {first}")
        axis.legend(fontsize=6, frameon=False)
    return Picture(figure)


def ridge(
    runs: Runs | Values, regex: str | list[str] = ".*", *, most_steps: int = 14, **chosen: Any
) -> Picture:
    """Draw the distributions of each tensor over its steps, one behind another, the last in front."""
    values = _values(runs, regex, {**chosen, "most_steps": most_steps})
    figure, axes = panels(list(values), size=(3.4, 3.0))
    for axis, over_steps in zip(axes, values.values(), strict=True):
        edges = edges_of([flat(value) for value in over_steps.values()], _BINS)
        middle = (edges[1:] + edges[:-1]) / 2
        count = len(over_steps)
        for at, value in enumerate(over_steps[step] for step in sorted(over_steps)):
            heights = np.histogram(flat(value), edges)[0]
            tall = 2.2 * heights / max(1, heights.max())
            base = count - at  # the first step is at the top, behind the others
            shade = 0.25 + 0.6 * at / max(1, count - 1)
            axis.fill_between(middle, base, base + tall, color=ACCENT, alpha=shade, zorder=at, linewidth=0)
            axis.plot(middle, base + tall, color="white", linewidth=0.7, zorder=at)
        labelled = range(0, count, max(1, count // 6))
        steps = sorted(over_steps)
        axis.set_yticks([count - at for at in labelled], [str(steps[at]) for at in labelled])
        axis.set_ylabel("step", fontsize=7)
    return Picture(figure)


def heatmap(runs: Runs | Values, regex: str | list[str] = ".*", **chosen: Any) -> Picture:
    """Draw the distribution of each tensor over its steps as a heat map: darker means more values."""
    values = _values(runs, regex, chosen)
    figure, axes = panels(list(values))
    for axis, over_steps in zip(axes, values.values(), strict=True):
        steps = sorted(over_steps)
        rows = [flat(over_steps[step]) for step in steps]
        edges = edges_of(rows, _BINS)
        low, high = float(edges[0]), float(edges[-1])
        counts = np.stack([np.histogram(row, edges)[0] for row in rows], axis=1)
        shares = counts / np.maximum(1, counts.max(axis=0))
        axis.imshow(
            shares,
            cmap="Blues",
            aspect="auto",
            origin="lower",
            interpolation="nearest",
            extent=(-0.5, len(steps) - 0.5, low, high),
        )
        labelled = range(0, len(steps), max(1, len(steps) // 5))
        axis.set_xticks(list(labelled), [str(steps[at]) for at in labelled])
        axis.set_xlabel("step", fontsize=7)
    return Picture(figure)


def line(
    runs: Runs | Values,
    regex: str | list[str] = ".*",
    *,
    statistic: str = "mean",
    most_steps: int = 500,
    **chosen: Any,
) -> Picture:
    """Draw a statistic of each tensor over its steps: mean, abs_mean, rms, std, min, max or l2.

    Several runs share a panel per tensor. The scale is logarithmic if the numbers are positive and far
    apart, so that the later course of a loss that begins at 200 remains visible.
    """
    compute = _STATISTICS.get(_OLDER_NAMES.get(statistic, statistic))
    if compute is None:
        from smdebug.exceptions import SMDebugValueError

        raise SMDebugValueError(f"Unknown statistic {statistic!r}: choose one of {', '.join(_STATISTICS)}")
    values = _values(runs, regex, {**chosen, "most_steps": most_steps})
    labels = list(named(runs)) if not _are_values(runs) else [""]  # type: ignore[arg-type]
    tensors: dict[str, dict[str, Any]] = {}
    for full, over_steps in values.items():
        label, _, name = full.partition(": ") if len(labels) > 1 else ("", "", full)
        tensors.setdefault(name, {})[label] = over_steps
    figure, axes = panels(list(tensors))
    for axis, by_run in zip(axes, tensors.values(), strict=True):
        drawn: list[float] = []
        for label, over_steps in by_run.items():
            steps = sorted(over_steps)
            numbers = [float(compute(magnitudes(over_steps[step]))) for step in steps]
            axis.plot(steps, numbers, linewidth=1.2, label=label, marker="." * (len(steps) < 3))
            drawn += filter(math.isfinite, numbers)
        if drawn and min(drawn) > 0 and max(drawn) > _FAR_APART * min(drawn):
            axis.set_yscale("log")
        if len(by_run) > 1:
            axis.legend(fontsize=6, frameon=False)
        axis.set_xlabel("step", fontsize=7)
    return Picture(figure)


def variance_across_layers(
    runs: Runs | Values, regex: str | list[str] = "gradient", **chosen: Any
) -> Picture:
    """Draw the variance of all tensors over steps in one panel: layers that learn alike lie together.

    Layers are coloured from dark to light in their order. Several runs have a panel each, on one scale.
    """
    values = _values(runs, regex, chosen)
    several = not _are_values(runs) and len(named(runs)) > 1  # type: ignore[arg-type]
    groups: dict[str, dict[str, Any]] = {}
    for full, over_steps in values.items():
        label, _, name = full.partition(": ") if several else ("", "", full)
        groups.setdefault(label, {})[name] = over_steps
    figure, axes = panels(list(groups) if several else ["variance"], columns=len(groups), size=(5.0, 3.6))
    from matplotlib import colormaps

    for axis, tensors in zip(axes, groups.values(), strict=True):
        for at, (name, over_steps) in enumerate(tensors.items()):
            steps = sorted(over_steps)
            numbers = [
                float(np.var(flat(over_steps[step]))) if flat(over_steps[step]).size else math.nan
                for step in steps
            ]
            colour = colormaps["viridis"](at / max(1, len(tensors) - 1) * 0.9)
            axis.plot(steps, numbers, color=colour, linewidth=1.2, label=name)
        axis.set_yscale("symlog", linthresh=1e-30)
        axis.set_xlabel("step", fontsize=7)
        if len(tensors) <= 12:
            axis.legend(fontsize=6, frameon=False)
    lows, highs = zip(*(axis.get_ylim() for axis in axes), strict=True)
    for axis in axes:  # one scale, so that runs a factor of a thousand apart do not look alike
        axis.set_ylim(min(lows), max(highs))
    return Picture(figure)


def dead_units(
    runs: Runs | Values,
    regex: str | list[str] = "relu.*output",
    *,
    saturated_at: float | None = None,
    **chosen: Any,
) -> Picture:
    """Draw the percentage of units of each layer that are not positive for a whole batch, over steps.

    The first axis is the batch. With `saturated_at`, such as 0.99 for sigmoids and tanh, a second curve
    shows the units whose magnitude is at least that for the whole batch.
    """
    values = _values(runs, regex, chosen)
    figure, axes = panels(list(values))
    for axis, over_steps in zip(axes, values.values(), strict=True):
        steps = sorted(over_steps)
        dead = [_share_of_units(over_steps[step], lambda x: x <= 0) for step in steps]
        axis.plot(steps, dead, color=ACCENT, linewidth=1.2, label="dead")
        if saturated_at is not None:
            full = [_share_of_units(over_steps[step], lambda x: np.abs(x) >= saturated_at) for step in steps]
            axis.plot(steps, full, color=SECOND, linewidth=1.2, label="saturated")
            axis.legend(fontsize=6, frameon=False)
        axis.set_ylim(-2, 102)
        axis.set_ylabel("% of units", fontsize=7)
        axis.set_xlabel("step", fontsize=7)
    return Picture(figure)


def _share_of_units(value: Any, condition: Any) -> float:
    """The percentage of units for which the condition holds over the whole batch."""
    array = np.asarray(value)
    units = array.reshape(array.shape[0], -1) if array.ndim > 1 else array.reshape(1, -1)
    return 100.0 * float(np.mean(np.all(condition(units), axis=0))) if units.size else 0.0


_STATISTICS: Mapping[str, Any] = {
    "mean": np.mean,
    "abs_mean": lambda x: np.mean(np.abs(x)),
    "rms": lambda x: np.sqrt(np.mean(np.square(x))),
    "std": np.std,
    "min": np.min,
    "max": np.max,
    "l2": lambda x: np.sqrt(np.sum(np.square(x))),
}


_OLDER_NAMES = {"mean_abs": "abs_mean"}


def _values(runs: Runs | Values, regex: str | list[str], chosen: Mapping[str, Any]) -> Values:
    if _are_values(runs):
        return runs  # type: ignore[return-value]
    return values_of(runs, regex, **chosen)  # type: ignore[arg-type]


def _are_values(runs: Any) -> bool:
    """Whether these are values, `{tensor: {step: value}}`, as a rule collects them."""
    return isinstance(runs, Mapping) and all(isinstance(value, Mapping) for value in runs.values())
