"""What a report tells of a run, as plain data: gathered once, in bounded memory and time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smdebug.exceptions import SMDebugError
from smdebug.mode_keys import ModeKeys
from smdebug.numbers.conditions import is_numeric
from smdebug.reports.distributions import Distribution, distribution_of
from smdebug.reports.verdicts import Verdict
from smdebug.runs.overview import Overview, collections_of, overview_of, thinned
from smdebug.runs.statistics import TensorSummary, statistics_at
from smdebug.service.costs import Cost
from smdebug.trials import Trial
from smdebug.trials.tensor import Tensor

STATISTICS = ("abs_mean", "std", "minimum", "maximum", "mean")
MOST_TENSORS = 240
MOST_STEPS = 150  # at which the statistics of all tensors are taken
MOST_POINTS = 800  # of a curve of losses
MOST_SCALARS = 24
MOST_DISTRIBUTIONS = 12
MOST_COMPARED = 40  # tensors over workers
MOST_COMPARED_STEPS = 24

# In the order in which a training goes wrong.
_ORDER = ("gradients", "weights", "biases", "outputs", "layers", "inputs", "optimizer_variables")
_SCALARS = ("losses", "metrics", "sm_metrics")
_TITLES = {"gradients": "Gradients", "weights": "Weights", "biases": "Biases"}

Progress = Callable[[int], Any]


@dataclass(frozen=True)
class Curve:
    """A scalar over its steps, thinned so that every extreme stays."""

    name: str
    mode: str
    steps: tuple[int, ...]
    values: tuple[float, ...]
    total: int  # how many steps it was saved at


@dataclass(frozen=True)
class Series:
    """The statistics of one tensor at the steps of its section, NaN where there is none."""

    name: str
    numbers: Mapping[str, NDArray[np.float32]]
    not_finite: tuple[tuple[int, int, int], ...]  # step, NaNs, infinities
    last: TensorSummary | None
    last_step: int | None


@dataclass(frozen=True)
class Section:
    """The tensors of one collection, drawn alike."""

    title: str
    series: tuple[Series, ...]


@dataclass(frozen=True)
class Disagreement:
    """How far the workers are apart in one tensor: the spread of their mean |x|, by its mean."""

    name: str
    steps: tuple[int, ...]
    spread: tuple[float, ...]

    @property
    def largest(self) -> float:
        return max((one for one in self.spread if math.isfinite(one)), default=0.0)


@dataclass(frozen=True)
class Gathered:
    """Everything that is on the page."""

    overview: Overview
    verdicts: tuple[Verdict, ...]
    curves: tuple[Curve, ...]
    steps: tuple[int, ...]  # global ones, at which statistics were taken
    mode: str  # of these steps
    sections: tuple[Section, ...]
    distributions: tuple[Distribution, ...]
    disagreements: tuple[Disagreement, ...]
    left_out: int = 0  # tensors that are not drawn
    latency: Mapping[str, tuple[float, float]] = field(default_factory=dict)  # p50, p99 in seconds
    deployed: bool = False  # the verdicts are those of the deployed application
    notes: tuple[str, ...] = ()

    @property
    def cost(self) -> Cost | None:
        """What it costs the deployed application to look at the run; None if no rule has looked."""
        steps = sum(one.count for one in self.overview.steps)
        workers = max(1, self.overview.num_workers)
        return Cost(steps, workers) if self.verdicts and steps else None


def gather(
    trial: Trial,
    verdicts: Sequence[Verdict] = (),
    *,
    latency: Mapping[str, tuple[float, float]] | None = None,
    deployed: bool = False,
    notes: Sequence[str] = (),
    progress: Progress = lambda done: None,
) -> Gathered:
    """What the page tells of this run. One step's values at a time are in memory."""
    overview = overview_of(trial, with_values=False)
    named = list(dict.fromkeys(name for verdict in verdicts for name in verdict.tensors))
    curves = curves_of(trial, progress)
    members = collections_of(trial)
    scalars = {curve.name for curve in curves}
    drawn, left_out = _drawn(overview, members, scalars, named)
    mode, steps = _sampled(trial, verdicts)
    found = _statistics(trial, drawn, steps, progress)
    sections = _sections(found, members)
    distributions = _distributions(trial, found, steps, named, progress)
    disagreements = _disagreements(trial, [*scalars, *drawn], steps, progress)
    return Gathered(
        overview=overview,
        verdicts=tuple(verdicts),
        curves=curves,
        steps=tuple(steps),
        mode=mode,
        sections=sections,
        distributions=distributions,
        disagreements=disagreements,
        left_out=left_out,
        latency=dict(latency or {}),
        deployed=deployed,
        notes=tuple(notes),
    )


def work_of(trial: Trial, verdicts: Sequence[Verdict] = ()) -> int:
    """How often `gather` tells its progress, or a little more: what a bar is measured by."""
    named = {name for verdict in verdicts for name in verdict.tensors}
    tensors = trial.tensor_names()
    several = len(trial.workers()) > 1
    return sum(
        (
            len(_scalar_names(trial)),
            len(_sampled(trial, verdicts)[1]),
            min(len(named) or 4, len(tensors), MOST_DISTRIBUTIONS),
            min(len(tensors), MOST_COMPARED) if several else 0,
        )
    )


# Curves


def curves_of(trial: Trial, progress: Progress = lambda done: None) -> tuple[Curve, ...]:
    """Losses and metrics, at every step that they have."""
    curves = []
    for name in _scalar_names(trial):
        tensor = trial.tensor(name)
        for mode in [*trial.modes(), ModeKeys.GLOBAL]:
            curve = _curve(tensor, mode, trial)
            if curve is not None:
                curves.append(curve)
        progress(1)
    return tuple(curves)


def _scalar_names(trial: Trial) -> list[str]:
    names: dict[str, None] = {}
    known = trial.collections()
    for collection in _SCALARS:
        if collection in known:
            names.update(dict.fromkeys(trial.tensor_names(collection=collection)))
    return list(names)[:MOST_SCALARS]


def _curve(tensor: Tensor, mode: ModeKeys, trial: Trial) -> Curve | None:
    steps = [
        step for step in tensor.steps() if (trial.mode(step) or ModeKeys.GLOBAL) is mode
    ]  # by their global numbers, so that all modes share an axis
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
    """At most so many points: of each stretch its smallest and largest, and all that are not finite."""
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


# TensorSummary


def _drawn(
    overview: Overview,
    members: Mapping[str, tuple[str, ...]],
    scalars: set[str],
    named: Sequence[str],
) -> tuple[list[str], int]:
    """The tensors that are drawn: those in findings first, then by collection, as far as there is room."""
    known = [one.name for one in overview.tensors if one.name not in scalars]
    important = set(named)
    rank = {name: at for at, name in enumerate(_ORDER)}

    def order(name: str) -> tuple[bool, int]:
        collections = members.get(name, ())
        return name not in important, min((rank.get(one, 50) for one in collections), default=60)

    chosen = sorted(known, key=order)[:MOST_TENSORS]
    kept = set(chosen)
    return [name for name in known if name in kept], len(known) - len(chosen)


def _sampled(trial: Trial, verdicts: Sequence[Verdict]) -> tuple[str, list[int]]:
    """The steps at which all tensors are looked at, those with findings among them; and their mode."""
    by_mode = {mode: trial.steps(mode) for mode in trial.modes()}
    if not by_mode:
        mode, steps = ModeKeys.GLOBAL, trial.steps()
    else:
        mode = max(by_mode, key=lambda one: len(by_mode[one]))
        steps = [
            step for one in by_mode[mode] if (step := trial.global_step(mode, one)) is not None
        ]
    there = set(steps)
    marked = [step for verdict in verdicts for step in verdict.telling_steps if step in there]
    room = MOST_STEPS - min(len(set(marked)), MOST_STEPS // 3)
    chosen = {*thinned(sorted(there), room), *thinned(sorted(set(marked)), MOST_STEPS // 3)}
    return mode.name, sorted(chosen)


def _statistics(
    trial: Trial, names: Sequence[str], steps: Sequence[int], progress: Progress
) -> list[Series]:
    tensors = {name: trial.tensor(name) for name in names}
    numbers = {
        name: {one: np.full(len(steps), np.nan, np.float32) for one in STATISTICS} for name in names
    }
    odd: dict[str, list[tuple[int, int, int]]] = {name: [] for name in names}
    last: dict[str, tuple[int, TensorSummary]] = {}
    chosen = set(names)

    def look(at: int) -> list[tuple[str, TensorSummary]]:
        here = chosen.intersection(trial.tensor_names(step=steps[at]))
        seen = ((name, statistics_at(tensors[name], steps[at])) for name in sorted(here))
        return [(name, one) for name, one in seen if one is not None]

    for start in range(0, len(steps), 16):  # so that no more than these are under way
        some = list(range(start, min(start + 16, len(steps))))
        for at, seen in zip(some, trial.in_parallel(look, some), strict=True):
            for name, one in seen:
                for statistic in STATISTICS:
                    value = getattr(one, statistic)
                    if value is not None:
                        numbers[name][statistic][at] = _narrow(value)
                if one.nan or one.infinite:
                    odd[name].append((steps[at], one.nan or 0, one.infinite or 0))
                last[name] = (steps[at], one)
            progress(1)
    return [
        Series(
            name,
            numbers[name],
            tuple(odd[name]),
            last[name][1] if name in last else None,
            last[name][0] if name in last else None,
        )
        for name in names
        if name in last
    ]


def _narrow(value: float) -> float:
    """As float32 has it; what is too large for that, as its largest."""
    largest = float(np.finfo(np.float32).max)
    return max(-largest, min(largest, value))


def _sections(
    found: Sequence[Series], members: Mapping[str, tuple[str, ...]]
) -> tuple[Section, ...]:
    """Each tensor once: in the collection that tells most of it."""
    rank = {name: at for at, name in enumerate(_ORDER)}
    groups: dict[str, list[Series]] = {}
    for series in found:
        collections = [one for one in members.get(series.name, ()) if one not in _SCALARS]
        home = min(collections, key=lambda one: rank.get(one, 50), default="")
        groups.setdefault(home, []).append(series)
    ordered = sorted(groups, key=lambda one: (rank.get(one, 50 if one else 60), one))
    return tuple(
        Section(
            _TITLES.get(home, home.replace("_", " ").capitalize() if home else "Other tensors"),
            tuple(sorted(groups[home], key=lambda one: natural(one.name))),
        )
        for home in ordered
    )


def natural(name: str) -> list[tuple[int, int, str]]:
    """Sorts `layer10` behind `layer9`."""
    import re

    return [
        (1, int(part), "") if part.isdecimal() else (0, 0, part)
        for part in re.split(r"(\d+)", name)
        if part
    ]


# Distributions and workers


def _distributions(
    trial: Trial,
    found: Sequence[Series],
    steps: Sequence[int],
    named: Sequence[str],
    progress: Progress,
) -> tuple[Distribution, ...]:
    """Of the tensors in findings; where there are none, of a few that a look is worth."""
    by_name = {series.name: series for series in found}
    wanted = [name for name in named if name in by_name]
    if not wanted:
        wanted = [series.name for series in found][:4]
    drawn = []
    for name in wanted[:MOST_DISTRIBUTIONS]:
        drawn.append(distribution_of(trial.tensor(name), steps, by_name[name].numbers))
        progress(1)
    return tuple(one for one in drawn if one is not None)


def _disagreements(
    trial: Trial, names: Iterable[str], steps: Sequence[int], progress: Progress
) -> tuple[Disagreement, ...]:
    if len(trial.workers()) < 2:
        return ()
    chosen = thinned(list(steps), MOST_COMPARED_STEPS)
    found = []
    for name in list(dict.fromkeys(names))[:MOST_COMPARED]:
        tensor = trial.tensor(name)
        points = []
        for step in chosen:
            spread = _spread(tensor, step)
            if spread is not None:
                points.append((step, spread))
        progress(1)
        if points:
            told = Disagreement(name, tuple(s for s, _ in points), tuple(v for _, v in points))
            found.append(told)
    return tuple(sorted(found, key=lambda one: -one.largest))


def _spread(tensor: Tensor, step: int) -> float | None:
    """How far the workers' mean |x| are apart at a step, relative to their mean; None with one worker."""
    try:
        workers = tensor.workers(step)
    except SMDebugError:
        return None
    seen = (statistics_at(tensor, step, worker=worker) for worker in workers)
    means = [one.abs_mean for one in seen if one is not None and one.abs_mean is not None]
    if len(means) < 2:
        return None
    middle = sum(means) / len(means)
    return (max(means) - min(means)) / middle if middle else 0.0
