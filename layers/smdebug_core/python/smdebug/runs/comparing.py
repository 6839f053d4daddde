"""Where two runs diverge: the steps and tensors that differ by more than a tolerance, and by how much."""

from __future__ import annotations

import math
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smdebug.amounts import number
from smdebug.exceptions import (
    DamagedFile,
    ObjectMissing,
    SMDebugValueError,
    TensorUnavailableForStep,
)
from smdebug.mode_keys import ModeKeys
from smdebug.numbers.conditions import all_close, is_numeric, max_abs_difference
from smdebug.runs.left_out import refuse_a_missing_file
from smdebug.runs.measured_differences import TOLERANCE, ComparedRow, compared_rows
from smdebug.runs.opening import open_run
from smdebug.runs.origins import ConfigDifference, differences, readable_origin
from smdebug.runs.overview import collections_of
from smdebug.runs.training_loss import TrainingLoss, training_loss
from smdebug.trials import Trial
from smdebug.trials.observations.damaged_values import note_damage

NO_COLLECTION = "(none)"
_RTOL = 1e-5
MOST_DIFFERENCES = 1000
DAMAGED: dict[str, NDArray[Any]] = {"damaged": np.zeros(0)}  # in place of values that cannot be read


@dataclass(frozen=True)
class Difference:
    """A tensor that differs between two runs at a step."""

    step: int
    tensor: str
    worker: str
    why: str
    largest: float | None = None  # the largest |a - b|; None if it cannot be computed
    mode: str | None = None
    kind: str | None = None
    """Of a tensor that was measured; None of a saved one."""

    def __str__(self) -> str:
        return f"step {self.step}, {self.tensor} of {self.worker}: {self.why}"

    def to_dict(self) -> dict[str, Any]:
        return {
            name: str(value) if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in vars(self).items()
        }


@dataclass
class CollectionComparison:
    """The comparison of the tensors of one collection."""

    compared: int = 0  # values
    different: int = 0
    tensors: set[str] = field(default_factory=set)
    tensors_different: set[str] = field(default_factory=set)
    first_step: int | None = None
    largest: float = 0.0

    def count(self, name: str, step: int, found: Difference | None) -> None:
        """Count a tensor at a step."""
        self.compared += 1
        self.tensors.add(name)
        if found is None:
            return
        self.different += 1
        self.tensors_different.add(name)
        if self.first_step is None:
            self.first_step = step
        if found.largest is not None and not self.largest >= found.largest:
            self.largest = found.largest

    def to_dict(self) -> dict[str, Any]:
        return {
            "compared": self.compared,
            "different": self.different,
            "tensors": len(self.tensors),
            "tensors_different": len(self.tensors_different),
            "first_step": self.first_step,
            "largest": self.largest if math.isfinite(self.largest) else str(self.largest),
        }


@dataclass(frozen=True)
class Comparison:
    """Two runs, tensor by tensor, at the steps that both have."""

    path: str
    other: str
    steps: int  # in both
    only_in_one: tuple[int, ...]
    only_in_other: tuple[int, ...]
    tensors_only_in_one: tuple[str, ...]
    tensors_only_in_other: tuple[str, ...]
    compared: int
    number_different: int
    differences: tuple[Difference, ...]  # in order, the first thousand
    collections: Mapping[str, CollectionComparison]
    first: Difference | None = None
    """The first difference of measured statistics, as on the page; without one, of saved values."""
    losses: tuple[TrainingLoss | None, TrainingLoss | None] = (None, None)
    """The losses of the two trainings."""
    config: tuple[ConfigDifference, ...] = ()
    """How the configurations, the code and the machines of the runs differ."""

    @property
    def is_same(self) -> bool:
        """Whether both have the same steps and tensors, with the same values."""
        return not (
            self.number_different
            or self.only_in_one
            or self.only_in_other
            or self.tensors_only_in_one
            or self.tensors_only_in_other
        )

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        content: dict[str, Any] = {"is_same": self.is_same}
        for name, value in vars(self).items():
            key = "one" if name == "path" else name
            content[key] = list(value) if isinstance(value, tuple) else value
        content["config"] = [difference.to_dict() for difference in self.config]
        content["first"] = self.first.to_dict() if self.first else None
        content["losses"] = [None if loss is None else loss.to_dict() for loss in self.losses]
        content["differences"] = [difference.to_dict() for difference in self.differences]
        content["collections"] = {name: collection.to_dict() for name, collection in self.collections.items()}
        return content


def compare(
    run: str | os.PathLike[str] | Trial,
    other: str | os.PathLike[str] | Trial,
    *,
    rtol: float | None = None,
    atol: float = 1e-8,
    equal_nan: bool = True,
    regex: str | list[str] | None = None,
    collection: str | None = None,
    progress: Callable[[Iterable[int]], Iterable[int]] = iter,
) -> Comparison:
    """Compare two runs at the global steps that both have saved, worker by worker.

    Values are equal if `numpy.allclose` returns True with these tolerances; `rtol` is 1e-5 unless given. If
    both runs saved only reductions, those are compared. Measured statistics are equal within `rtol`, or else
    1e-4, of the larger one.
    """
    tolerance = TOLERANCE if rtol is None else rtol
    rtol = _RTOL if rtol is None else rtol
    if not (rtol >= 0 and atol >= 0):  # this refuses NaN, too
        raise SMDebugValueError(f"Tolerances must not be negative: rtol is {rtol}, atol is {atol}")
    first = run if isinstance(run, Trial) else open_run(run)
    other = other if isinstance(other, Trial) else open_run(other)
    close = _Closeness(rtol, atol, equal_nan)
    chosen = {"regex": regex, "collection": collection}
    names, other_names = (set(trial.tensor_names(**chosen)) for trial in (first, other))  # type: ignore[arg-type]
    measured, other_measured = (set(trial.measured_tensors(**chosen)) for trial in (first, other))  # type: ignore[arg-type]
    if (regex or collection) and not names | other_names | measured | other_measured:
        raise SMDebugValueError("Neither run has a matching tensor: nothing to compare")
    steps, other_steps = set(first.steps()), set(other.steps())
    members = collections_of(first)
    tally = _Tally(members)
    common = names & other_names
    common_measured = measured & other_measured
    both = sorted(steps & other_steps)
    for step in progress(both):
        if common_measured:
            for row in compared_rows(
                first, other, step, tolerance=tolerance, is_chosen=common_measured.__contains__
            ):
                tally.add_measured(row, step, _mode_name(first, step))
        for name in sorted(_at(first, step, common) & _at(other, step, common)):
            for worker in _workers(first, other, name, step):
                values = [_values(trial, name, step, worker) for trial in (first, other)]
                if not any(values) or any(value is DAMAGED for value in values):
                    continue  # both saved only the shape, or both event files are missing
                tally.add(name, step, _difference(first, values, name, step, worker, close))
    return Comparison(
        path=first.path,
        other=other.path,
        steps=len(both),
        only_in_one=tuple(sorted(steps - other_steps)),
        only_in_other=tuple(sorted(other_steps - steps)),
        tensors_only_in_one=tuple(sorted((names | measured) - (other_names | other_measured))),
        tensors_only_in_other=tuple(sorted((other_names | other_measured) - (names | measured))),
        compared=tally.compared,
        number_different=tally.different,
        differences=tuple(tally.differences),
        collections=dict(sorted(tally.collections.items())),
        first=tally.first_measured or next(iter(tally.differences), None),
        losses=(training_loss(first), training_loss(other)),
        config=tuple(differences(readable_origin(first), readable_origin(other))),
    )


@dataclass(frozen=True)
class _Closeness:
    rtol: float
    atol: float
    equal_nan: bool

    def why_not(self, a: NDArray[Any], b: NDArray[Any]) -> tuple[str, float | None] | None:
        """The difference in words, with the largest |a - b|; None if the two are equal."""
        if a.shape != b.shape:
            return f"shape {list(a.shape)} in the first run, {list(b.shape)} in the second", None
        if not (is_numeric(a) and is_numeric(b)):
            same = a.dtype.kind == b.dtype.kind and bool(np.array_equal(a, b))
            return None if same else ("different text", None)
        if all_close(a, b, self.rtol, self.atol, self.equal_nan):
            return None
        largest = max_abs_difference(a, b)
        if math.isnan(largest):
            return "NaN in only one of the runs", largest
        return f"largest |a - b| is {largest:.4g}", largest


def _difference(
    run: Trial,
    values: Sequence[dict[str, NDArray[Any]] | None],
    name: str,
    step: int,
    worker: str,
    close: _Closeness,
) -> Difference | None:
    mode = _mode_name(run, step)
    ours, others = values
    if ours is None or others is None:
        which = "first" if ours is None else "second"
        why_lost = f"the event file of the {which} run is missing"
        return Difference(step, name, worker, why_lost, None, mode)
    both = sorted(ours.keys() & others.keys())
    if not both:
        why_none = "no value or reduction was saved in both runs"
        return Difference(step, name, worker, why_none, None, mode)
    for key in both:
        why = close.why_not(ours[key], others[key])
        if why is not None:
            of = f"{key}: " if key else ""
            return Difference(step, name, worker, f"{of}{why[0]}", why[1], mode)
    return None


def _values(run: Trial, name: str, step: int, worker: str) -> dict[str, NDArray[Any]] | None:
    """The value, or the reductions if no value was saved; None if the event file is missing."""
    tensor = run.tensor(name)
    try:
        return {"": tensor.value(step, worker=worker)}
    except TensorUnavailableForStep:
        pass
    except DamagedFile as error:  # left out: damage is not a difference
        note_damage(run, error)
        return DAMAGED
    try:
        refuse_a_missing_file(tensor, step, worker=worker)
    except ObjectMissing:
        return None
    try:
        saved = tensor.reduction_values(step, worker=worker)
    except DamagedFile as error:
        note_damage(run, error)
        return DAMAGED
    return {
        f"{'abs_' if magnitude else ''}{reduction}": np.asarray(value)
        for (reduction, magnitude), value in saved.items()
    }


def _at(run: Trial, step: int, names: set[str]) -> set[str]:
    return names.intersection(run.tensor_names(step=step))


def _workers(run: Trial, other: Trial, name: str, step: int) -> list[str]:
    in_other = set(other.tensor(name).workers(step))
    return [worker for worker in run.tensor(name).workers(step) if worker in in_other]


def _mode_name(run: Trial, step: int) -> str | None:
    mode = run.mode(step)
    return None if mode in (None, ModeKeys.GLOBAL) else mode.name


class _Tally:
    """What was compared so far, and what differs."""

    def __init__(self, members: Mapping[str, tuple[str, ...]]):
        self.compared = self.different = 0
        self.differences: list[Difference] = []
        self.first_measured: Difference | None = None
        self.collections: defaultdict[str, CollectionComparison] = defaultdict(CollectionComparison)
        self._members = members

    def add(self, name: str, step: int, found: Difference | None) -> None:
        """Count a saved value."""
        self._count(self._members.get(name, (NO_COLLECTION,)), name, step, found)

    def add_measured(self, row: ComparedRow, step: int, mode: str | None) -> None:
        """Count the statistics of a measured tensor."""
        found = None
        if row.differs:
            a, b = row.values
            why = f"{row.statistic} is {number(a)} in the first run, {number(b)} in the second"
            found = Difference(step, row.tensor, row.worker, why, row.largest, mode, row.kind)
            self.first_measured = self.first_measured or found
        self._count((row.kind,), row.tensor, step, found)

    def _count(self, collections: Iterable[str], name: str, step: int, found: Difference | None) -> None:
        self.compared += 1
        self.different += found is not None
        if found is not None and len(self.differences) < MOST_DIFFERENCES:
            self.differences.append(found)
        for collection in collections:
            self.collections[collection].count(name, step, found)
