"""Losses and metrics over steps, thinned so that every extreme stays."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from smdebug.exceptions import SMDebugError
from smdebug.mode_keys import ModeKeys
from smdebug.numbers.conditions import is_numeric
from smdebug.trials import Trial
from smdebug.trials.tensor import Tensor

MOST_POINTS = 800  # of a curve
MOST_SCALARS = 24
SCALARS = ("losses", "metrics", "sm_metrics")  # collections

Progress = Callable[[int], Any]


@dataclass(frozen=True)
class Curve:
    """A scalar over its steps."""

    name: str
    mode: str
    steps: tuple[int, ...]
    values: tuple[float, ...]
    total: int  # the number of steps at which it was saved


def curves_of(trial: Trial, progress: Progress = lambda done: None) -> tuple[Curve, ...]:
    """Return the losses and metrics of a run, in each mode."""
    curves = [*_series_curves(trial)]
    kept = {curve.name for curve in curves}
    for name in scalar_names(trial):
        if name in kept:  # its series has every step
            progress(1)
            continue
        tensor = trial.tensor(name)
        for mode in [*trial.modes(), ModeKeys.GLOBAL]:
            curve = _curve(tensor, mode, trial)
            if curve is not None:
                curves.append(curve)
        progress(1)
    return tuple(curves)


def _series_curves(trial: Trial) -> Iterator[Curve]:
    """Yield what the run keeps of every step: losses first, without scalars of single tensors."""
    if not trial.observations.exist:
        return
    tensors = {name for kind in _kinds_observed(trial) for name in kind}
    names = [name for name in trial.observations.series_names() if name not in tensors]
    for name in sorted(names, key=lambda name: ("loss" not in name.lower(), name))[:MOST_SCALARS]:
        try:
            series = trial.series(name)
            modes = [mode for mode in ModeKeys if len(series.of(mode))]
        except SMDebugError:  # damage is listed elsewhere
            continue
        for mode in modes:
            of_mode = series.of(mode)
            points = list(zip(of_mode.steps.tolist(), of_mode.values.tolist(), strict=True))
            kept = with_extremes(points, MOST_POINTS)
            steps, values = zip(*kept, strict=True)
            yield Curve(name, mode.name, steps, values, len(points))


def _kinds_observed(trial: Trial) -> list[list[str]]:
    try:
        layout = trial.observations.layout(trial.observations.steps()[-1])
    except (SMDebugError, IndexError):
        return []
    return [layout.names(kind) for kind in layout.tensors]


def scalar_names(trial: Trial) -> list[str]:
    """The names of the losses and metrics."""
    names: dict[str, None] = {}
    known = trial.collections()
    for collection in SCALARS:
        if collection in known:
            names.update(dict.fromkeys(trial.tensor_names(collection=collection)))
    return list(names)[:MOST_SCALARS]


def _curve(tensor: Tensor, mode: ModeKeys, trial: Trial) -> Curve | None:
    steps = [
        step for step in tensor.steps() if (trial.mode(step) or ModeKeys.GLOBAL) is mode
    ]  # global numbers, so that all modes share an axis
    if not steps:
        return None
    values = trial.in_parallel(lambda step: _scalar(tensor, step), steps)
    points = [(step, value) for step, value in zip(steps, values, strict=True) if value is not None]
    if not points:
        return None
    kept = with_extremes(points, MOST_POINTS)
    return Curve(
        tensor.name,
        mode.name,
        tuple(step for step, _ in kept),
        tuple(value for _, value in kept),
        len(points),
    )


def _scalar(tensor: Tensor, step: int) -> float | None:
    try:
        value = tensor.value(step)
    except SMDebugError:
        return None
    if value.size != 1 or not is_numeric(value) or value.dtype.kind == "c":
        return None
    return float(value.reshape(-1)[0])


def with_extremes(points: Sequence[tuple[int, float]], most: int) -> list[tuple[int, float]]:
    """Keep about `most` points: of each stretch the smallest, the largest, and one that is not finite."""
    if len(points) <= most:
        return list(points)
    stretches = max(1, most // 3)
    kept: set[int] = {0, len(points) - 1}
    for at in range(stretches):
        start, stop = (len(points) * edge // stretches for edge in (at, at + 1))
        finite = [i for i in range(start, stop) if math.isfinite(points[i][1])]
        odd = [i for i in range(start, stop) if not math.isfinite(points[i][1])]
        if finite:
            kept.add(min(finite, key=lambda i: points[i][1]))
            kept.add(max(finite, key=lambda i: points[i][1]))
        kept.update(odd[:1])
    return [points[i] for i in sorted(kept)]
