"""The charts of a run, as far as it was read: series, statistics of its tensors, facts and modes."""

from __future__ import annotations

import sys
from collections.abc import Container, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from smdebug.exceptions import SMDebugError
from smdebug.files.names import SYSTEM
from smdebug.mode_keys import ModeKeys
from smdebug.runs.curves.epochs import NAMES, Epochs, epochs_of
from smdebug.runs.curves.lines import LABELS, Line, line_of
from smdebug.runs.curves.moments import Moments
from smdebug.runs.curves.training_steps import TrainingSteps
from smdebug.runs.evaluation.layer_order import in_order, layers_of, modules_of
from smdebug.trials import Trial
from smdebug.trials.known_steps import KnownSteps
from smdebug.trials.observations.one_step import ObservedStep
from smdebug.trials.observations.series import settled
from smdebug.trials.observations.whole_run import Observations
from smdebug.ui.drawing.folded_rows import MOST_TENSORS, FoldedRows
from smdebug.ui.drawing.matrices import BUDGET, Statistics
from smdebug.ui.drawing.pyramid import Pyramid
from smdebug.ui.drawing.saved_values import MOST_BYTES, SavedValues

Rows = NDArray[np.float64]

MOST_FACTS = 2000  # changes of facts that are kept
_LONGEST_FACT = 200
_NOT_SHOWN = frozenset({"layout", "modules", "optimizers", "loss", "frozen"})
"""Facts that are not a line of text."""


class ObservedRun(Protocol):
    """What charts ask of a run."""

    @property
    def index(self) -> KnownSteps: ...
    @property
    def observations(self) -> Observations: ...
    def mode(self, global_step: int) -> ModeKeys | None: ...


class Charts:
    """What the steps read so far have, in bounded memory. Steps come in order."""

    def __init__(
        self,
        per_stretch: Mapping[str, int] | None = None,
        *,
        budget: int = BUDGET,
        measured: Container[int] | None = None,
    ) -> None:
        """`per_stretch` is how many steps of each kind share a cell of its heat map from the beginning.

        `budget` is how many bytes each kind may take. Of tensors that were saved by name, statistics are
        computed at the steps in `measured`, or else at all.
        """
        self._per_stretch = per_stretch or {}
        self._budget = budget
        self._measured = measured
        self.series: dict[str, Pyramid] = {}
        self.lines: dict[str, dict[str, Pyramid]] = {}
        """Of each mode, the series that were written in it; none of the machine."""
        self.training_steps = TrainingSteps()
        self.moments = Moments()
        self.kinds: dict[str, Statistics] = {}
        self.modes: list[tuple[int, int, str]] = []
        """Stretches of steps of one mode: first, last, name."""
        self.facts: list[tuple[int, str, Any]] = []
        """Changes of facts: step, name, value."""
        self.damaged: dict[str, str] = {}
        """What could not be read, with the reason."""
        self.orders: dict[str, list[int]] = {}
        self.folded: dict[str, FoldedRows] = {}
        """The rows of kinds with very many tensors."""
        self.values_left_out_from: int | None = None
        """The first step of which saved values were not read: those before it are as many as are read."""
        self._last_facts: dict[str, Any] = {}
        self._saved: SavedValues | None = None
        self._waiting: dict[str, list[Rows]] = {}
        self._waits_through: dict[str, float] = {}
        self._evaluating: dict[str, Rows] = {}

    @property
    def nbytes(self) -> int:
        """About how much memory the charts take."""
        series = sum(
            each.nbytes for pyramids in (self.series, *self.lines.values()) for each in pyramids.values()
        )
        return series + sum(statistics.nbytes for statistics in self.kinds.values())

    def read(self, trial: ObservedRun, step: int) -> None:
        """Add a step of the run. Its values are in `series` after `settle`."""
        self._note_mode(step, trial.mode(step) or ModeKeys.GLOBAL)
        written = (trial.index.workers_at(step, ModeKeys.GLOBAL) or {}).values()
        self.moments.note(step, max((each.saved_at for each in written if each.saved_at), default=None))
        try:
            seen = trial.observations.at(step)
            if trial.observations.exist or seen.series_names:
                self._read_observations(seen)
            else:
                assert isinstance(trial, Trial)
                if self._saved is None:
                    most = MOST_BYTES if self._measured is None else sys.maxsize
                    self._saved = SavedValues(trial, most)
                self._read_saved(self._saved, step, trial)
        except SMDebugError as error:
            self.damaged[f"step {step}"] = str(error)

    def settle(self) -> None:
        """Add the values of the steps read since the last time to their series.

        Many steps at once, as growing the pyramid costs more than reading a value.
        """
        for name in list(self._waiting):
            self._settle(name)

    def extend(self, later: Charts) -> None:
        """Add the charts of later steps."""
        self.settle()
        for name, series in later.series.items():
            _pyramid_in(self.series, name).append(series.steps, series.values)
        for mode, lines in later.lines.items():
            for name, series in lines.items():
                _pyramid_in(self.lines.setdefault(mode, {}), name).append(series.steps, series.values)
        self.training_steps.extend(later.training_steps)
        self.moments.extend(later.moments)
        for kind, statistics in later.kinds.items():
            self._kind(kind).extend(statistics)
        for first, last, mode in later.modes:
            self._note_mode(first, ModeKeys[mode], last)
        self._extend_facts(later)
        self.damaged.update(later.damaged)
        self.folded.update(later.folded)
        self._leave_out_from(later.values_left_out_from)

    def _extend_facts(self, later: Charts) -> None:
        seen: set[str] = set()
        for step, name, value in later.facts:
            is_first, known = name not in seen, self._last_facts.get(name, self)
            seen.add(name)
            if is_first and known is not self and _shortened(known) == value:
                continue  # as at the steps before
            if len(self.facts) < MOST_FACTS:
                self.facts.append((step, name, value))
        self._last_facts.update(later._last_facts)

    def modes_of(self, name: str) -> list[str]:
        """Return the names of the modes in which a series has values."""
        return [mode.name for mode in LABELS if name in self.lines.get(mode.name, {})]

    def line(self, name: str, mode: str) -> Line:
        """Return the values that a series has in a mode."""
        series = self.lines[mode][name]
        return line_of(ModeKeys[mode], series.steps, series.values, self.training_steps)

    @property
    def epochs(self) -> Epochs:
        """The epochs of the training, if the run has recorded them."""
        clock = self.training_steps
        last = max((each.steps[-1] for each in self.series.values()), default=-1)
        for name in NAMES:
            of_training = self.lines.get(ModeKeys.TRAIN.name, {}).get(name)
            series = of_training or self.series.get(name)
            if series is not None:
                return epochs_of(series.steps, series.values, clock, int(last))
        return epochs_of(np.empty(0, np.int64), np.empty(0), clock, int(last))

    def whole(self, name: str) -> Line:
        """Return the values of a series in all modes, as if all of them were training."""
        series = self.series[name]
        return line_of(ModeKeys.TRAIN, series.steps, series.values, self.training_steps)

    def order(self, kind: str, trial: Trial | None, step: int) -> list[int]:
        """Return the places of a kind's tensors in the order of the network, as of that step."""
        names = self.kinds[kind].names
        known = self.orders.get(kind)
        if known is None or len(known) != len(names):
            known = self.orders[kind] = _order_of(names, trial, step)
        return known

    def _read_observations(self, seen: ObservedStep) -> None:
        step = seen.step
        for name in seen.series_names:
            self._append_series(name, seen.series(name))
        layout = seen.layout
        for kind in () if layout is None else layout.tensors:
            matrix = seen.statistics(kind)
            if matrix is not None and len(matrix):
                self._append_rows(kind, step, matrix.names, matrix.values)
        self._note_facts(step, seen.facts)
        for what, why in seen.damaged.items():
            self.damaged[f"{what} at step {step}"] = why

    def _read_saved(self, saved: SavedValues, step: int, trial: Trial) -> None:
        mode, mode_step = trial.mode_modestep(step)
        for name, value in saved.scalars(step).items():
            row = [step, (mode or ModeKeys.GLOBAL).value, step if mode_step is None else mode_step, value]
            self._append_series(name, np.array([row], np.float64))
        if self._measured is not None and step not in self._measured:
            return
        for kind, (names, values) in saved.statistics(step).items():
            self._append_rows(kind, step, names, values)
        self._leave_out_from(saved.left_out_from)

    def _leave_out_from(self, step: int | None) -> None:
        if self.values_left_out_from is None:
            self.values_left_out_from = step

    def _append_rows(self, kind: str, step: int, names: Sequence[str], values: Any) -> None:
        """Add the statistics of a step; too many tensors share the rows of their modules."""
        folded = self.folded.get(kind)
        if folded is None and len(names) <= MOST_TENSORS:
            self._kind(kind).append(step, names, values)
            return
        if folded is None or folded.tensors != list(names):
            folded = self.folded[kind] = FoldedRows(names)
        low, high = folded.extremes(values)
        self._kind(kind).append(step, folded.names, low, high)

    def _append_series(self, name: str, rows: Rows) -> None:
        """Note the values of a series: a row has a step, a mode, the step in it, and the value."""
        if not len(rows):
            return
        if rows[:, 0].min() < self._waits_through.get(name, -1):  # the training was resumed
            self._settle(name)
        self._waiting.setdefault(name, []).append(rows)
        self._waits_through[name] = float(rows[:, 0].max())

    def _settle(self, name: str) -> None:
        parts = self._waiting.pop(name, None)
        self._waits_through.pop(name, None)
        if not parts:
            return
        rows = settled(self._with_evaluation(name, np.concatenate(parts)))
        steps = rows[:, 0].astype(np.int64)
        for mode in () if name.startswith(f"{SYSTEM}/") else LABELS:
            chosen = rows[:, 1] == mode.value
            if not chosen.any():
                continue
            if mode is ModeKeys.TRAIN:
                self.training_steps.note(rows[chosen, 0], rows[chosen, 2])
            _pyramid_in(self.lines.setdefault(mode.name, {}), name).append(steps[chosen], rows[chosen, 3])
        # In the series of all modes, an evaluation gives way to the training step that has its number.
        is_first = np.append(True, steps[1:] != steps[:-1])
        trained = self.lines.get(ModeKeys.TRAIN.name, {}).get(name)
        if trained is not None:
            places = np.minimum(np.searchsorted(trained.steps, steps), len(trained) - 1)
            is_first &= (rows[:, 1] == ModeKeys.TRAIN.value) | (trained.steps[places] != steps)
        _pyramid_in(self.series, name).append(steps[is_first], rows[is_first, 3])

    def _with_evaluation(self, name: str, rows: Rows) -> Rows:
        """Return the rows, with those of the evaluation that was read last, if they continue it."""
        known = self._evaluating.pop(name, None)
        evaluates = np.isin(rows[:, 1], (ModeKeys.EVAL.value, ModeKeys.PREDICT.value))
        if not evaluates.any():
            return rows
        if known is not None and known[0, 0] in rows[evaluates, 0]:
            rows = np.concatenate([known, rows])
            evaluates = np.append(np.ones(len(known), bool), evaluates)
        self._evaluating[name] = rows[evaluates & (rows[:, 0] == rows[evaluates, 0].max())]
        return rows

    def _kind(self, kind: str) -> Statistics:
        if kind not in self.kinds:
            self.kinds[kind] = Statistics(self._budget, per_stretch=self._per_stretch.get(kind, 1))
        return self.kinds[kind]

    def _note_mode(self, step: int, mode: ModeKeys, last: int | None = None) -> None:
        last = step if last is None else last
        if self.modes and self.modes[-1][2] == mode.name:
            self.modes[-1] = (self.modes[-1][0], last, mode.name)
        else:
            self.modes.append((step, last, mode.name))

    def _note_facts(self, step: int, facts: Any) -> None:
        for name, value in facts.items():
            if name == SYSTEM and isinstance(value, dict):
                self._append_metrics(step, value)
            elif name not in _NOT_SHOWN and self._last_facts.get(name, self) != value:
                self._last_facts[name] = value
                if len(self.facts) < MOST_FACTS:
                    self.facts.append((step, name, _shortened(value)))

    def _append_value(self, name: str, step: int, value: float) -> None:
        self._append_series(name, np.array([[step, ModeKeys.GLOBAL.value, step, value]], np.float64))

    def _append_metrics(self, step: int, metrics: dict[str, Any]) -> None:
        """Add what the machine did at a step: the fact of each step becomes series."""
        devices = metrics.get("gpus")
        of_devices = {
            f"gpu{at}_{name}": value
            for at, device in enumerate(devices if isinstance(devices, list) else ())
            if isinstance(device, dict)
            for name, value in device.items()
        }
        for name, value in {**metrics, **of_devices}.items():
            if isinstance(value, int | float):
                self._append_value(f"{SYSTEM}/{name}", step, value)


def _pyramid_in(series: dict[str, Pyramid], name: str) -> Pyramid:
    return series.setdefault(name, Pyramid())


def _order_of(names: Sequence[str], trial: Trial | None, step: int) -> list[int]:
    layout = None
    try:
        if trial is not None and trial.observations.has_facts:
            layout = trial.observations.layout(step)
    except SMDebugError:
        pass  # without it, in the order of the rows
    root = "" if layout is None else next(iter(modules_of(layout)), "")
    return in_order(names, layers_of(layout), root)


def _shortened(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    text = value if isinstance(value, str) else str(value)
    return text if len(text) <= _LONGEST_FACT else f"{text[: _LONGEST_FACT - 1]}…"
