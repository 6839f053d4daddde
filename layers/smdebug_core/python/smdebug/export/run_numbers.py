"""The numbers of a run as records for sinks, in the order of its steps; of a run that grows, the new ones."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from smdebug.export.observed import Observed, Rows
from smdebug.export.selection import Saved, Selection
from smdebug.mode_keys import ModeKeys
from smdebug.numbers.conditions import is_numeric
from smdebug.runs.curves.lines import LABELS, line_of
from smdebug.runs.curves.training_steps import TrainingSteps
from smdebug.runs.metrics import METRICS
from smdebug.runs.statistics import TensorSummary, statistics_of
from smdebug.runs.training_loss import LOSSES
from smdebug.sinks.records import NumbersRecord
from smdebug.trials import Trial
from smdebug.trials.observations.series import settled

DEFAULT_STATISTICS = ("rms",)
"""Beside `non_finite`, which is there for tensors that have NaN or infinity."""
_NON_FINITE = "non_finite"
EVALUATIONS = (ModeKeys.EVAL, ModeKeys.PREDICT)
_TRAINING = LABELS[ModeKeys.TRAIN]

FloatRows = NDArray[np.float64]


class RunNumbers:
    """Reads scalars and statistics of tensors, each saved step once.

    An evaluation becomes one point of each scalar once it is over, that is with a later step of training or
    at the end of the run. Without `reads_values` saved tensors are not read, losses and metrics apart.
    """

    def __init__(
        self,
        trial: Trial,
        selection: Selection | None = None,
        *,
        statistics: Iterable[str] = DEFAULT_STATISTICS,
        reads_values: bool = True,
    ):
        self._trial = trial
        self._selection = selection or Selection(skips_damaged=True)
        self._statistics = tuple(statistics)
        self._reads_values = reads_values
        self._clock = TrainingSteps()
        self._last_step = -1
        self._waiting: dict[tuple[ModeKeys, str], list[FloatRows]] = {}
        self._last_time: float | None = None

    def new(
        self,
        until: int | None = None,
        *,
        progress: Callable[[Iterable[int]], Iterable[int]] = iter,
    ) -> Iterator[NumbersRecord]:
        """Yield the numbers of the saved steps that were not read before, up to `until`."""
        steps = self._selection.steps_of(self._trial)
        first = bisect_right(steps, self._last_step)
        last = len(steps) if until is None else bisect_right(steps, until)
        if first >= last:
            return
        selection = self._selection
        observed = Observed.of(self._trial, selection)
        names = self._saved_names() - observed.scalars
        chief = next(iter(sorted(self._trial.workers())), "")
        for step in progress(steps[first:last]):
            yield from self._at(step, observed, names, chief)
            self._last_step = step

    def rest(self) -> Iterator[NumbersRecord]:
        """Yield the evaluations at the end of the run."""
        drafts = _Drafts()
        self._release(drafts, None)
        yield from drafts.records(self._last_time)

    def _at(self, step: int, observed: Observed, names: set[str], chief: str) -> Iterator[NumbersRecord]:
        drafts = _Drafts()
        time: float | None = None
        own: list[tuple[str, FloatRows]] = []
        for found in observed.rows_at(step):
            time = time or found.wall_time
            self._clock.note_rows(found.rows)
            own.append((_name(found.name, found.worker, chief), self._selected(found)))
        mode, mode_step = self._trial.mode_modestep(step)
        if mode is ModeKeys.TRAIN and mode_step is not None:
            self._clock.note(np.array([step]), np.array([mode_step]))
        for name, rows in own:
            self._sort(name, rows, drafts)
        self._release(drafts, self._clock.last)
        at, label = self._place_of(step, mode), LABELS.get(mode or ModeKeys.GLOBAL, _TRAINING)
        for saved in self._selection.values_at(self._trial, step, names):
            time = time or saved.wall_time
            self._add_saved(saved, _name(saved.name, saved.worker, chief), drafts, at, label)
        for row in observed.measured_at(step):
            time = time or row.wall_time
            chosen = self._chosen(row.summary)
            if chosen:
                drafts.at(at, label).statistics[_name(row.name, row.worker, chief)] = chosen
        self._last_time = time or self._last_time
        yield from drafts.records(time)

    def _selected(self, found: Rows) -> FloatRows:
        steps = self._selection.steps
        return found.rows if steps is None else found.rows[np.isin(found.rows[:, 0], steps)]

    def _place_of(self, step: int, mode: ModeKeys | None) -> int:
        if mode in EVALUATIONS or mode is ModeKeys.TRAIN:
            return int(self._clock.of(np.array([step]))[0])
        return step

    def _sort(self, name: str, rows: FloatRows, drafts: _Drafts) -> None:
        for mode in EVALUATIONS:
            evaluated = rows[rows[:, 1] == mode.value]
            if len(evaluated):
                self._waiting.setdefault((mode, name), []).append(evaluated)
        rest = settled(rows[~np.isin(rows[:, 1], [mode.value for mode in EVALUATIONS])])
        is_training = rest[:, 1] == ModeKeys.TRAIN.value
        places = np.where(is_training, self._clock.of(rest[:, 0]), rest[:, 0])
        for step, value in zip(places.tolist(), rest[:, 3].tolist(), strict=True):
            drafts.at(int(step), _TRAINING).values[name] = value

    def _release(self, drafts: _Drafts, before: int | None) -> None:
        """Take the evaluations before that step, or all of them."""
        for (mode, name), parts in list(self._waiting.items()):
            rows = np.concatenate(parts)
            is_over = rows[:, 0] < (np.inf if before is None else before)
            if not is_over.any():
                self._waiting[mode, name] = [rows]
                continue
            over = settled(rows[is_over])
            line = line_of(mode, over[:, 0], over[:, 3], self._clock)
            for step, value in zip(line.training_steps.tolist(), line.values.tolist(), strict=True):
                drafts.at(step, line.label).values[name] = value
            if is_over.all():
                del self._waiting[mode, name]
            else:
                self._waiting[mode, name] = [rows[~is_over]]

    def _add_saved(self, saved: Saved, name: str, drafts: _Drafts, step: int, label: str) -> None:
        value = saved.value
        if not value.size or value.dtype.kind == "b" or not is_numeric(value):
            return
        if value.size == 1:
            only = value.reshape(-1)[0]
            number = float(abs(only)) if value.dtype.kind == "c" else float(only)
            drafts.at(step, label).values[name] = number
        elif chosen := self._chosen(statistics_of(value)):
            drafts.at(step, label).statistics[name] = chosen

    def _chosen(self, summary: TensorSummary) -> Mapping[str, float]:
        known = {name: summary.of(name) for name in self._statistics}
        found = {name: float(value) for name, value in known.items() if value is not None}
        if summary.non_finite:
            found[_NON_FINITE] = float(summary.non_finite)
        return found

    def _saved_names(self) -> set[str]:
        trial, selection = self._trial, self._selection
        if self._reads_values:
            return set(selection.names(trial, or_observed=True))
        small = {*trial.tensor_names(collection=LOSSES), *trial.tensor_names(collection=METRICS)}
        return small | set(trial.tensor_names(regex="^scalar/"))


class _Draft:
    def __init__(self) -> None:
        self.values: dict[str, float] = {}
        self.statistics: dict[str, Mapping[str, float]] = {}


class _Drafts:
    """The numbers of a few steps, as they are found."""

    def __init__(self) -> None:
        self._found: dict[tuple[int, str], _Draft] = {}

    def at(self, step: int, label: str) -> _Draft:
        return self._found.setdefault((step, label), _Draft())

    def records(self, time: float | None) -> Iterator[NumbersRecord]:
        """Yield a record for each step and mode, in order."""
        for (step, label), draft in sorted(self._found.items(), key=lambda item: item[0]):
            yield NumbersRecord(step, label, time, draft.values, draft.statistics)


def _name(name: str, worker: str, chief: str) -> str:
    """Return the name, with that of any worker but the first: most runs have numbers of the first alone."""
    return name if worker == chief else f"{worker}/{name}"
