"""The curves of a run and their axes, as plain data."""

from __future__ import annotations

from typing import TypedDict

import numpy as np

from smdebug.plain_text import escaped
from smdebug.runs.curves.best import is_highest_best
from smdebug.runs.curves.epochs import Epochs
from smdebug.runs.curves.lines import Line
from smdebug.ui.answer_types import BestAnswer, SeriesAnswer
from smdebug.ui.drawing.json_numbers import numbers
from smdebug.ui.drawing.pyramid import Pyramid, Stretches
from smdebug.ui.read_run import ReadRun

MOST_KNOTS = 2000
"""Of the line from the steps of a run to another axis."""
MOST_EPOCHS = 500
"""Means of one series."""


class Axes(TypedDict):
    """What curves can be drawn over besides the steps of the run, as `RunAnswer` describes it."""

    training_steps: list[tuple[int, int]]
    epochs: list[tuple[int, float]]
    no_epochs: str
    times: list[tuple[int, float]]


def axes_of(run: ReadRun) -> Axes:
    """Return the axes of a run's curves."""
    charts, epochs = run.charts, run.charts.epochs
    return {
        "training_steps": charts.training_steps.knots(MOST_KNOTS),
        "epochs": epochs.knots(MOST_KNOTS),
        "no_epochs": epochs.missing,
        "times": charts.moments.knots(MOST_KNOTS),
    }


def series_of(
    run: ReadRun, name: str, mode: str, first: int | None, last: int | None, most: int
) -> SeriesAnswer:
    """Return a window of a scalar, or of the line that it is in one mode."""
    epochs = run.charts.epochs
    if not mode:
        series = run.series[name]
        answer = series_answer(escaped(name), len(series), series.between(first, last, most))
        line = run.charts.whole(name)
    else:
        line = run.charts.line(name, mode)
        points = Pyramid()
        points.append(line.first, line.values)
        found = points.between(first, last, most)
        answer = series_answer(escaped(name), len(line), found)
        answer["training_steps"] = run.charts.training_steps.of(found.first).tolist()
    answer["best"] = best_of(name, line, epochs)
    if not epochs.missing:
        answer["epoch_means"] = epochs.means(line.training_steps, line.values, MOST_EPOCHS)
    return answer


def best_of(name: str, line: Line, epochs: Epochs) -> BestAnswer | None:
    """Return the best value of a line; None if none is finite, or the name does not tell what is better."""
    is_highest = is_highest_best(name)
    found = None if is_highest is None else line.extreme(highest=is_highest)
    if found is None:
        return None
    value, step = found
    epoch = None if epochs.missing else int(epochs.of(np.array([step]))[0])
    return {"value": value, "is_highest": bool(is_highest), "step": step, "epoch": epoch}


def series_answer(name: str, total: int, found: Stretches) -> SeriesAnswer:
    """Return a window of a scalar."""
    return {
        "name": name,
        "first": found.first.tolist(),
        "last": found.last.tolist(),
        "low": numbers(found.low),
        "high": numbers(found.high),
        "not_finite": found.not_finite.tolist(),
        "exact": found.is_exact,
        "total": total,
        "training_steps": None,
        "best": None,
        "epoch_means": [],
    }
