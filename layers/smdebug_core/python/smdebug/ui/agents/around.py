"""What changed in a run near a step: scalars, facts, and the statistics of its tensors."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from smdebug.amounts import as_json_number
from smdebug.exceptions import SMDebugError, SMDebugValueError
from smdebug.mode_keys import ModeKeys
from smdebug.numbers.rows import COLUMN
from smdebug.runs.training_loss import loss_name
from smdebug.trials import Trial
from smdebug.trials.kinds import COMPUTED

STEPS_BEFORE, STEPS_AFTER = 3, 3
"""Saved steps that are compared."""
POINTS = 5
"""Steps of a scalar on each side."""
MOST_SCALARS = 200
LEAST_CHANGE = 1.5
"""A statistic has changed if it is this many times what it was, or this part of it."""
_RMS, _NON_FINITE = COLUMN["rms"], COLUMN["non_finite"]


class Window(NamedTuple):
    """The saved steps before a step, and from it on."""

    before: tuple[int, ...]
    after: tuple[int, ...]


@dataclass(frozen=True)
class ChangedTensor:
    """A tensor whose size differs between the two sides of a step."""

    kind: str
    tensor: str
    before: float | None
    """The root mean square of its finite values; None if it has none."""
    after: float | None
    step: int
    """Where `after` was measured."""
    non_finite: int = 0
    """How many values are NaN or infinite at that step, if none were before."""

    @property
    def size(self) -> float:
        """How large the change is, for sorting; infinite if values ceased to be finite."""
        if self.non_finite or not self.before or not self.after:
            return math.inf
        return abs(math.log(self.after / self.before))

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        found: dict[str, Any] = {"kind": self.kind, "tensor": self.tensor, "at": self.step}
        found["rms"] = [self.before, self.after]
        if self.before and self.after:
            found["times"] = as_json_number(self.after / self.before)
        if self.non_finite:
            found["non_finite"] = self.non_finite
        return found


def window_of(steps: Sequence[int], step: int) -> Window:
    """Return the steps to compare; both sides have at least one if there are two steps."""
    place = bisect_left(steps, step)
    if place == len(steps):
        place = max(0, len(steps) - 1)
    elif place == 0 and len(steps) > 1:
        place = 1
    return Window(
        tuple(steps[max(0, place - STEPS_BEFORE) : place]), tuple(steps[place : place + STEPS_AFTER])
    )


def window_at(trial: Trial, step: int) -> Window:
    """Return the steps of the mode of that step which are compared; `SMDebugValueError` if it is no step."""
    steps = trial.steps()
    if not steps:
        raise SMDebugValueError("Nothing was saved yet")
    if not 0 <= step <= steps[-1]:
        raise SMDebugValueError(f"step must be between 0 and {steps[-1]}, the last saved step")
    nearest = steps[min(bisect_left(steps, step), len(steps) - 1)]
    mode = trial.mode(nearest)
    return window_of([each for each in steps if trial.mode(each) is mode], step)


def changed_tensors(trial: Trial, window: Window) -> list[ChangedTensor]:
    """Return the tensors that changed by more than `LEAST_CHANGE`, the largest change first.

    Of two that ceased to be finite, the one that a step computes first comes first.
    """
    found = [change for kind in COMPUTED for change in _changed(trial, kind, window)]
    return sorted(found, key=_place_of)


def _place_of(change: ChangedTensor) -> tuple[bool, float]:
    return not change.non_finite, change.step if change.non_finite else -change.size


def _changed(trial: Trial, kind: str, window: Window) -> Iterator[ChangedTensor]:
    before = [rows for step in window.before if (rows := _rows(trial, step, kind))]
    if not before:
        return
    usual: dict[str, tuple[float, float]] = {}
    for name in before[-1]:
        known = [rows[name] for rows in before if name in rows]
        sizes = [row[0] for row in known if math.isfinite(row[0])]
        usual[name] = (float(np.median(sizes)) if sizes else math.nan, max(row[1] for row in known))
    best: dict[str, ChangedTensor] = {}
    for step in window.after:
        for name, (size, non_finite) in (_rows(trial, step, kind) or {}).items():
            if name not in usual:
                continue
            change = _change(kind, name, step, usual[name], (size, non_finite))
            known_change = best.get(name)
            if change is not None and (known_change is None or change.size > known_change.size):
                best[name] = change
    yield from best.values()


def _change(
    kind: str, name: str, step: int, was: tuple[float, float], now: tuple[float, float]
) -> ChangedTensor | None:
    before, after = as_json_number(was[0]), as_json_number(now[0])
    broken = int(now[1]) if now[1] > 0 and was[1] == 0 else 0
    if not broken:
        if before == after or before is None or after is None:
            return None
        least, most = sorted((before, after))
        if least > 0 and most / least < LEAST_CHANGE:
            return None
    return ChangedTensor(kind, name, before, after, step, broken)


def _rows(trial: Trial, step: int, kind: str) -> dict[str, tuple[float, float]] | None:
    """Return the root mean square, and the number of values that are not finite, of each tensor."""
    try:
        matrix = trial.observations.judged(step).statistics(kind)
    except SMDebugError:  # a damaged file is named elsewhere
        return None
    if matrix is None:
        return None
    values = matrix.values
    return {
        name: (float(values[place, _RMS]), float(values[place, _NON_FINITE]))
        for place, name in enumerate(matrix.names)
        if values[place, 0] > 0
    }


def scalars_near(trial: Trial, step: int) -> dict[str, list[tuple[int, float]]]:
    """Return the scalars that are not constant near the step, and the loss: pairs of step and value.

    The loss comes first.
    """
    names = trial.observations.series_names()
    loss = loss_name(trial)
    ordered = [*([loss] if loss else []), *(name for name in names if name != loss)][:MOST_SCALARS]
    found: dict[str, list[tuple[int, float]]] = {}
    for name in ordered:
        points = _points(trial, name, step)
        if points and (name == loss or len({value for _, value in points}) > 1):
            found[name] = points
    return found


def _points(trial: Trial, name: str, step: int) -> list[tuple[int, float]]:
    try:
        if name in trial.observations.series_names():
            rows = trial.observations.series_rows(name)
            training = rows[rows[:, 1] == ModeKeys.TRAIN.value]
            rows = training if len(training) else rows
            steps, values = rows[:, 0].astype(int).tolist(), rows[:, 3].tolist()
        else:
            tensor = trial.tensor(name)
            steps = tensor.steps()
            values = [np.nan] * len(steps)
            place = bisect_left(steps, step)
            for at in range(max(0, place - POINTS), min(len(steps), place + POINTS + 1)):
                values[at] = float(np.mean(tensor.value(steps[at])))
    except (SMDebugError, TypeError, ValueError):
        return []
    place = bisect_left(steps, step)
    chosen = slice(max(0, place - POINTS), place + POINTS + 1)
    return list(zip(steps[chosen], values[chosen], strict=True))


def changed_facts(trial: Trial, window: Window) -> list[tuple[str, Any, Any]]:
    """Return the facts that were the same at the steps before, and are others from the step on."""
    before = [_facts(trial, step) for step in window.before]
    after = [_facts(trial, step) for step in window.after]
    if not before or not after:
        return []
    found = []
    for name, value in after[0].items():
        if name not in before[-1] or value == before[-1][name] or name == "layout":
            continue
        if len(before) > 1 and all(facts.get(name) == before[-1][name] for facts in before):
            found.append((name, before[-1][name], value))
    return found


def _facts(trial: Trial, step: int) -> Mapping[str, Any]:
    try:
        return trial.observations.judged(step).facts
    except SMDebugError:
        return {}
