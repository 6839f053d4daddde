"""Several runs side by side: what was configured differently, where they diverge, and their verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from smdebug.numbers.rows import COLUMN
from smdebug.runs.measured_differences import PLACES, differing
from smdebug.runs.origins import differing as differing_settings
from smdebug.trials.kinds import COMPUTED
from smdebug.ui.answer_types import (
    ComparedRun,
    ComparisonAnswer,
    DifferenceAnswer,
    DivergenceAnswer,
)
from smdebug.ui.answering.answers import rows_answer, series_names
from smdebug.ui.answering.curves import axes_of
from smdebug.ui.finding.glance import configuration_of
from smdebug.ui.following.verdict_answers import issue_answer
from smdebug.ui.read_run import ReadRun
from smdebug.ui.watching.summary import passed_of


class Part(NamedTuple):
    """One of the compared runs."""

    id: str
    name: str
    run: ReadRun
    listed: Mapping[str, Any] = MappingProxyType({})
    """The configuration that the list of runs shows, until the run is open."""


def comparison_of(runs: Sequence[Part]) -> ComparisonAnswer:
    """Return the comparison of the runs with the first of them."""
    parts = [_part(part) for part in runs]
    first = runs[0].run
    for part, other in zip(parts[1:], runs[1:], strict=True):
        with first.lock, other.run.lock:
            part["divergence"] = first_divergence(first, other.run)
    return {
        "runs": parts,
        "configuration": configuration_differences([part["configuration"] for part in parts]),
        "series": sorted(
            {each["name"] for part in parts for each in part["series"] if not each["is_tensor"]}
        ),
        "values": None,
    }


def _part(part: Part) -> ComparedRun:
    run = part.run
    with run.lock:
        trial = run.trial
        return {
            "id": part.id,
            "name": part.name,
            "ready": trial is not None and run.steps_read >= len(run.steps),
            "error": run.error,
            "steps": len(run.steps),
            "issues": [issue_answer(issue) for issue in run.issues],
            "checked": run.steps_checked,
            "passed": passed_of(run),
            "missing": run.missing,
            "series": series_names(run),
            **axes_of(run),
            "configuration": dict(part.listed) if trial is None else configuration_of(trial),
            "divergence": None,
        }


def configuration_differences(
    configurations: Sequence[Mapping[str, Any]],
) -> list[DifferenceAnswer]:
    """Return the parameters that are not the same in all runs."""
    return [
        {"name": name, "values": [configuration.get(name) for configuration in configurations]}
        for name in differing_settings(configurations)
    ]


def first_divergence(base: ReadRun, other: ReadRun) -> DivergenceAnswer | None:
    """Return the first step at which the statistics of a tensor differ, and its first such tensor."""
    best: tuple[int, int, int] | None = None
    found: DivergenceAnswer | None = None
    for rank, kind in enumerate(COMPUTED):
        if kind not in base.kinds or kind not in other.kinds:
            continue
        names, places = rows_answer(base, kind)
        hit = _first_difference(base, other, kind, places)
        if hit is None:
            continue
        step, place, a, b = hit
        key = (step, rank, place)
        if best is None or key < best:
            best = key
            found = {"step": step, "kind": kind, "tensor": names[place], "rms": [a, b]}
    return found


def _first_difference(
    base: ReadRun, other: ReadRun, kind: str, places: Sequence[int]
) -> tuple[int, int, float | None, float | None] | None:
    ours, theirs = base.kinds[kind], other.kinds[kind]
    of_theirs = {name: place for place, name in enumerate(theirs.names)}
    pairs = [(at, place, of_theirs.get(ours.names[place])) for at, place in enumerate(places)]
    common = [(at, place, match) for at, place, match in pairs if match is not None]
    first, a, b = ours.together_with(theirs)
    if not common or not len(first):
        return None
    mine = a[:, [place for _, place, _ in common]][:, :, PLACES]
    others = b[:, [match for _, _, match in common]][:, :, PLACES]
    by_tensor: Any = differing(mine, others).any(axis=2)
    steps = np.flatnonzero(by_tensor.any(axis=1))
    if not len(steps):
        return None
    step = int(steps[0])
    column = int(np.flatnonzero(by_tensor[step])[0])
    rms = PLACES.index(COLUMN["rms"])
    numbers = [float(statistics[step, column, rms]) for statistics in (mine, others)]
    known = [value if np.isfinite(value) else None for value in numbers]
    return int(first[step]), common[column][0], known[0], known[1]
