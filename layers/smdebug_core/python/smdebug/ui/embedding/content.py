"""The answers that a report holds, as plain data of bounded size.

They are those of the server, from the same functions. What the server computes for each request (a window of
steps, one statistic, one tensor) the page takes from the whole: a series has the resolution of a screen,
and the statistics of a kind are one block, from which heat maps and histories are cut.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smdebug.exceptions import SMDebugRuntimeError
from smdebug.mode_keys import ModeKeys
from smdebug.numbers.rows import COLUMNS
from smdebug.plain_text import escaped
from smdebug.runs.training_loss import losses_first
from smdebug.trials import Trial
from smdebug.trials.kinds import in_kind_order
from smdebug.ui.about.answer import Latency, about
from smdebug.ui.about.last_numbers import last_numbers
from smdebug.ui.about.logged_values import embedded
from smdebug.ui.answer_types import AtStepAnswer, ComparisonAnswer, RunAnswer
from smdebug.ui.answering.answers import described, rows_answer
from smdebug.ui.answering.curves import series_of
from smdebug.ui.answering.tensors import at_step, last_step_of
from smdebug.ui.drawing.folded_rows import FoldedRows
from smdebug.ui.read_run import ReadRun
from smdebug.ui.replicas import differences
from smdebug.ui.watching.board import id_of

MOST_POINTS = 2000
"""Of one series."""
MOST_SERIES = 240
MOST_BYTES = 2 << 20
"""Of the statistics of all tensors."""
MOST_BYTES_AT_STEPS = 600_000
"""Of what single steps have of tensors, as JSON."""
_POINTS_OF_ALL = 24_000
_FEWEST_POINTS, _FEWEST_COLUMNS = 100, 24
_MOST_AT_STEPS = 240  # tensors

Floats = NDArray[np.float32]
Progress = Callable[[int], Any]


@dataclass(frozen=True)
class Content:
    """What a report shows: a run, and the one that it is compared with."""

    name: str
    run: RunAnswer
    answers: dict[str, Any]
    """By the address that the page would request."""
    other: RunAnswer | None = None


def content_of(
    name: str,
    run: ReadRun,
    *,
    other: tuple[str, ReadRun] | None = None,
    comparison: ComparisonAnswer | None = None,
    latency: Latency | None = None,
    deployed: bool = False,
    reads_values: bool = True,
    progress: Progress = lambda done: None,
) -> Content:
    """Return the content of a report on a run; without `reads_values` nothing more is read of it."""
    add = partial(_add, progress=progress if reads_values else None)
    answers: dict[str, Any] = {}
    described_run = add(answers, name, run, latency, deployed)
    described_other = None
    if other is not None:
        described_other = add(answers, *other, None, False)
        answers[f"compare/{described_run['id']},{described_other['id']}"] = comparison
    return Content(escaped(name), described_run, answers, described_other)


def id_in_report(run: ReadRun) -> str:
    """Return the id of a run in the addresses of its report."""
    return id_of(run.path)


def _add(
    answers: dict[str, Any],
    name: str,
    run: ReadRun,
    latency: Latency | None,
    deployed: bool,
    progress: Progress | None,
) -> RunAnswer:
    """Add all answers about a run, without `progress` only those that read no values; return the first."""
    trial = run.trial
    if trial is None:
        raise SMDebugRuntimeError("The list of steps is being read. Try again in a moment.")
    described_run = described(id_in_report(run), escaped(name), run)
    scalars = losses_first(run.series)[:MOST_SERIES]
    described_run["series"] = [each for each in described_run["series"] if each["name"] in scalars]
    place = f"run/{described_run['id']}"
    answers[place] = described_run
    answers[f"{place}/about"] = about(run, trial, latency=latency, deployed=deployed, progress=progress)
    answers[f"{place}/facts"] = {"changes": [list(change) for change in run.charts.facts]}
    answers[f"{place}/log"] = run.verdict["log"]
    listed, values = embedded(trial.storage)
    answers[f"{place}/logged"] = listed
    answers.update({f"{place}/logged/{key}": value for key, value in values.items()})
    if progress is None:
        return described_run
    if len(run.workers) > 1:
        answers[f"{place}/ranks"] = differences(trial)
    points = max(_FEWEST_POINTS, min(MOST_POINTS, _POINTS_OF_ALL // max(1, len(scalars))))
    for scalar in scalars:
        for mode in ("", *_modes_apart(run, scalar)):
            key = f"{place}/series/{escaped(scalar)}" + (f"/{mode}" if mode else "")
            answers[key] = _series(run, scalar, mode, points)
    for kind, block in _blocks(run):
        answers[f"{place}/kind/{kind}"] = block
        answers[f"{place}/numbers/{kind}"] = last_numbers(run, kind)
    for kind, tensor, at in _at_steps(run, trial, described_run, progress):
        answers[f"{place}/at/{kind}/{tensor}"] = at
    return described_run


def _modes_apart(run: ReadRun, name: str) -> list[str]:
    """Return the modes that the page draws as lines: none if all of the series is training."""
    modes = run.charts.modes_of(name)
    return [] if modes == [ModeKeys.TRAIN.name] else modes


def _series(run: ReadRun, name: str, mode: str, points: int) -> dict[str, Any]:
    """Return a scalar; where each part is one value, its ends are not repeated."""
    answer: dict[str, Any] = {**series_of(run, name, mode, None, None, points)}
    if answer["exact"]:
        answer["last"] = answer["high"] = None
    if not any(answer["not_finite"]):
        answer["not_finite"] = None
    return answer


def _blocks(run: ReadRun) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the statistics of each kind, in as many columns as there is room for."""
    kinds = in_kind_order(run.kinds)
    rows = sum(len(run.kinds[kind].names) for kind in kinds)
    of_column = 4 * len(COLUMNS)
    most_rows = MOST_BYTES // (2 * _FEWEST_COLUMNS * of_column)
    for kind in kinds:
        names, places = rows_answer(run, kind)
        folded = run.charts.folded.get(kind)
        tensors = len(names) if folded is None else len(folded.tensors)
        is_folded = folded is not None
        doubled = 1 if run.kinds[kind].stretches[3] is None else 2
        most = MOST_BYTES // (max(1, min(rows, most_rows)) * of_column * doubled)
        first, last, low, high = run.kinds[kind].joined(most)
        low = low[:, places]
        high = None if high is None else high[:, places]
        share = max(1, most_rows * len(names) // max(1, rows))
        if rows > most_rows and len(names) > share:
            joined = FoldedRows(names, share)
            pairs = [joined.extremes(each) for each in low]
            tops = [joined.extremes(each)[1] for each in (low if high is None else high)]
            low, high = np.array([bottom for bottom, _ in pairs]), np.array(tops)
            names, is_folded = joined.names, True
        yield (
            kind,
            {
                "names": names,
                "tensors": tensors,
                "folded": is_folded,
                "statistics": list(COLUMNS),
                "first": first.tolist(),
                "last": last.tolist(),
                "low": _packed(low),
                "high": None if high is None else _packed(high),
            },
        )


def _packed(block: Floats) -> str:
    """Return float32 numbers as text: by statistic, then tensor, then column."""
    return base64.b64encode(block.transpose(2, 1, 0).astype("<f4").tobytes()).decode()


def _at_steps(
    run: ReadRun, trial: Trial, described_run: RunAnswer, progress: Progress
) -> Iterator[tuple[str, str, AtStepAnswer]]:
    """Yield what the last step has of tensors, those in findings first, as long as there is room."""
    named = [(each["kind"], each["name"]) for each in described_run["named"]]
    others = [(kind, name) for kind in in_kind_order(run.kinds) for name in rows_answer(run, kind)[0]]
    by_shown = {
        kind: {escaped(name): name for name in statistics.names} for kind, statistics in run.kinds.items()
    }
    room = MOST_BYTES_AT_STEPS
    for kind, shown in list(dict.fromkeys([*named, *others]))[:_MOST_AT_STEPS]:
        progress(0)
        name = by_shown[kind][shown]
        at = at_step(trial, kind, name, last_step_of(run, kind, name))
        size = len(json.dumps(at))
        if size > room:
            at["values"] = None
            size = len(json.dumps(at))
        if size > room:
            return
        room -= size
        yield kind, shown, at
