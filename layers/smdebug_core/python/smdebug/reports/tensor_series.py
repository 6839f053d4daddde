"""The statistics of tensors over steps, grouped by collection."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smdebug.reports.curves import SCALARS, Progress
from smdebug.runs.overview import Overview
from smdebug.runs.statistics import TensorSummary, statistics_at
from smdebug.trials import Trial

STATISTICS = ("abs_mean", "std", "minimum", "maximum", "mean")
MOST_TENSORS = 240
_STEPS_AT_A_TIME = 16

# In the order in which a training goes wrong.
_ORDER = ("gradients", "weights", "biases", "outputs", "layers", "inputs", "optimizer_variables")
_RANKS = {name: rank for rank, name in enumerate(_ORDER)}
_OTHER_COLLECTION, _NO_COLLECTION = 50, 60  # ranks


@dataclass(frozen=True)
class Series:
    """The statistics of one tensor at the steps of its section, NaN where unknown."""

    name: str
    numbers: Mapping[str, NDArray[np.float32]]
    not_finite: tuple[tuple[int, int, int], ...]  # step, NaNs, infinities
    last: TensorSummary | None
    last_step: int | None


@dataclass(frozen=True)
class Section:
    """The tensors of one collection, drawn with the same axes."""

    title: str
    series: tuple[Series, ...]


def choose_tensors(
    overview: Overview,
    members: Mapping[str, tuple[str, ...]],
    scalars: set[str],
    named: Sequence[str],
) -> tuple[list[str], int]:
    """Choose the tensors to draw, those named in findings first; return also how many are left out."""
    known = [tensor.name for tensor in overview.tensors if tensor.name not in scalars]
    important = set(named)

    def order(name: str) -> tuple[bool, int]:
        ranks = (_RANKS.get(home, _OTHER_COLLECTION) for home in members.get(name, ()))
        return name not in important, min(ranks, default=_NO_COLLECTION)

    chosen = set(sorted(known, key=order)[:MOST_TENSORS])
    return [name for name in known if name in chosen], len(known) - len(chosen)


def series_of(
    trial: Trial, names: Sequence[str], steps: Sequence[int], progress: Progress
) -> list[Series]:
    """Compute the statistics of these tensors at these steps, a few steps at a time."""
    tensors = {name: trial.tensor(name) for name in names}
    numbers = {
        name: {statistic: np.full(len(steps), np.nan, np.float32) for statistic in STATISTICS}
        for name in names
    }
    odd: dict[str, list[tuple[int, int, int]]] = {name: [] for name in names}
    last: dict[str, tuple[int, TensorSummary]] = {}
    chosen = set(names)

    def summaries(at: int) -> list[tuple[str, TensorSummary]]:
        here = chosen.intersection(trial.tensor_names(step=steps[at]))
        found = ((name, statistics_at(tensors[name], steps[at])) for name in sorted(here))
        return [(name, summary) for name, summary in found if summary is not None]

    for start in range(0, len(steps), _STEPS_AT_A_TIME):
        chunk = list(range(start, min(start + _STEPS_AT_A_TIME, len(steps))))
        for at, found in zip(chunk, trial.in_parallel(summaries, chunk), strict=True):
            for name, summary in found:
                for statistic in STATISTICS:
                    value = getattr(summary, statistic)
                    if value is not None:
                        numbers[name][statistic][at] = _clamped(value)
                if summary.nan or summary.infinite:
                    odd[name].append((steps[at], summary.nan or 0, summary.infinite or 0))
                last[name] = (steps[at], summary)
            progress(1)
    return [
        Series(name, numbers[name], tuple(odd[name]), last[name][1], last[name][0])
        for name in names
        if name in last
    ]


def _clamped(value: float) -> float:
    """The value, or the largest float32 if it is beyond that."""
    largest = float(np.finfo(np.float32).max)
    return max(-largest, min(largest, value))


def sections_of(
    found: Sequence[Series], members: Mapping[str, tuple[str, ...]]
) -> tuple[Section, ...]:
    """Group the tensors: each in the first of its collections, in the order of `_ORDER`."""
    groups: dict[str, list[Series]] = {}
    for series in found:
        collections = [name for name in members.get(series.name, ()) if name not in SCALARS]
        home = min(collections, key=lambda name: _RANKS.get(name, _OTHER_COLLECTION), default="")
        groups.setdefault(home, []).append(series)

    def order(home: str) -> tuple[int, str]:
        return _RANKS.get(home, _OTHER_COLLECTION if home else _NO_COLLECTION), home

    return tuple(
        Section(
            home.replace("_", " ").capitalize() if home else "Other tensors",
            tuple(sorted(groups[home], key=lambda series: natural(series.name))),
        )
        for home in sorted(groups, key=order)
    )


def natural(name: str) -> list[tuple[int, int, str]]:
    """A key that sorts `layer10` after `layer9`."""
    return [
        (1, int(part), "") if part.isdecimal() else (0, 0, part)
        for part in re.split(r"(\d+)", name)
        if part
    ]
