"""The statistics of every tensor where it was measured last: the table below the heat map."""

from __future__ import annotations

import numpy as np

from smdebug.exceptions import SMDebugError
from smdebug.numbers.rows import COLUMNS
from smdebug.plain_text import escaped
from smdebug.trials import Trial
from smdebug.ui.answer_types import NumbersAnswer
from smdebug.ui.drawing.json_numbers import numbers
from smdebug.ui.read_run import ReadRun

MOST_ROWS = 1000


def last_numbers(run: ReadRun, kind: str) -> NumbersAnswer:
    """Return every statistic of a kind's tensors at the last stretch of steps that has them."""
    statistics = run.kinds[kind]
    places = run.order(kind)[:MOST_ROWS]
    first, last, low, high = statistics.stretches
    columns = [statistics.last_measured(place) for place in places]
    rows = list(zip(places, columns, strict=True))
    nothing = np.full(len(COLUMNS), np.nan, np.float32)
    lows = [nothing if at is None else low[at, place] for place, at in rows]
    tops = low if high is None else high
    highs = [nothing if at is None else tops[at, place] for place, at in rows]
    lowest, highest = (np.array(each).reshape(-1, len(COLUMNS)) for each in (lows, highs))
    names = [statistics.names[place] for place in places]
    shapes = _shapes(run.trial, kind, None if not len(last) else int(last[-1]))
    return {
        "names": [escaped(name) for name in names],
        "shapes": [shapes.get(name, "") for name in names],
        "first": [None if at is None else int(first[at]) for at in columns],
        "last": [None if at is None else int(last[at]) for at in columns],
        "low": {column: numbers(lowest[:, at]) for at, column in enumerate(COLUMNS)},
        "high": {column: numbers(highest[:, at]) for at, column in enumerate(COLUMNS)},
    }


def _shapes(trial: Trial | None, kind: str, step: int | None) -> dict[str, str]:
    """Return the shapes of tensors, as far as the run has them without their values."""
    if trial is None or step is None or not trial.observations.has_facts:
        return {}
    try:
        layout = trial.observations.layout(step)
    except SMDebugError:
        return {}
    return {tensor.name: _in_words(tensor.shape) for tensor in layout.tensors.get(kind, ())}


def _in_words(shape: tuple[int, ...] | None) -> str:
    return "" if shape is None else " × ".join(map(str, shape)) or "scalar"
