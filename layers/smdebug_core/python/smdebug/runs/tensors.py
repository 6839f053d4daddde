"""The tensors of a run: those that it saved, and those that it measured at its steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

from smdebug.exceptions import DamagedFile, InvalidWorker, ObjectMissing, SMDebugError
from smdebug.files.observations import SERIES, STATISTICS
from smdebug.mode_keys import ModeKeys
from smdebug.runs.overview import collections_of
from smdebug.runs.statistics import (
    TensorSummary,
    statistics_in_row,
    statistics_of_number,
    statistics_read,
)
from smdebug.runs.training_loss import has_series
from smdebug.trials import Trial
from smdebug.trials.kinds import in_kind_order
from smdebug.trials.observations.worker_parts import part_in_words
from smdebug.trials.tensor import Tensor

OTHER = "tensors"
"""The kind of a tensor that is in no collection."""


@dataclass(frozen=True)
class WatchedTensor:
    """A tensor that a run saves or measures."""

    name: str
    kind: str
    """Of a measured tensor its kind, else its first collection."""
    is_saved: bool
    is_measured: bool


@dataclass(frozen=True)
class TensorAtStep:
    """What a run has of a tensor at one step."""

    step: int
    workers: tuple[str, ...] = ()
    mode: str | None = None
    """Of a scalar of every step."""
    summary: TensorSummary | None = None
    problem: str = ""
    """Why it cannot be read."""
    part: str | None = None
    """Of a sharded tensor: which part these are statistics of, such as "1 of 2 along dp"; None of a whole."""

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it, without what is unknown."""
        known = {"mode": self.mode, "problem": self.problem or None, "part": self.part}
        return {
            "step": self.step,
            "workers": list(self.workers),
            **({} if self.summary is None else self.summary.to_dict()),
            **{name: value for name, value in known.items() if value is not None},
        }


def watched_tensors(trial: Trial) -> list[WatchedTensor]:
    """Return the tensors of a run, those of one kind together, in the order in which kinds are shown."""
    saved = dict.fromkeys(trial.tensor_names())
    measured = trial.observations.measured.by_kind()
    members = collections_of(trial)
    by_kind: dict[str, list[WatchedTensor]] = {}
    for kind, tensors in measured.items():
        by_kind[kind] = [
            WatchedTensor(tensor.name, kind, tensor.name in saved, is_measured=True) for tensor in tensors
        ]
    known = {tensor.name for tensors in measured.values() for tensor in tensors}
    for name in saved:
        if name not in known:
            kind = kind_of_collections(members.get(name, ()))
            tensor = WatchedTensor(name, kind, is_saved=True, is_measured=False)
            by_kind.setdefault(kind, []).append(tensor)
    return list(chain.from_iterable(by_kind[kind] for kind in in_kind_order(by_kind)))


def kind_of_collections(collections: tuple[str, ...]) -> str:
    """Return the kind of a saved tensor from the collections that it is in."""
    return next(iter(in_kind_order(collections)), OTHER)


def every_name(trial: Trial) -> list[str]:
    """Return the names of all tensors and scalars of a run: those that `tensor_over_steps` knows."""
    watched = (tensor.name for tensor in watched_tensors(trial))
    return list(dict.fromkeys(chain(watched, trial.observations.series_names())))


def stored_names(trial: Trial, names: Iterable[str]) -> set[str]:
    """Return the names under which the files of a run hold these tensors and scalars."""
    found = set()
    for name in names:
        kind = trial.observations.measured.kind_of(name)
        found |= {name, f"{SERIES}{name}"} | ({f"{STATISTICS}{kind}"} if kind else set())
    return found


def tensor_over_steps(
    trial: Trial,
    name: str,
    mode: ModeKeys = ModeKeys.GLOBAL,
    worker: str | None = None,
    last: int | None = None,
    *,
    wholes: bool = False,
) -> Iterator[TensorAtStep]:
    """Yield what each step has of a tensor or scalar, of the last `last` steps.

    A scalar that is kept at every step has all its values; a tensor what was saved or measured. With
    `wholes`, statistics of a sharded tensor are of the whole wherever all parts were measured, and of a part
    at other steps; without, they are of one of the two at all steps.
    """
    if has_series(trial, name):
        yield from _scalars(trial, name, mode, worker, last)
        return
    tensor = trial.tensor(name)
    measured = trial.observations.measured
    steps = set(tensor.steps(mode))
    if name in measured:
        steps.update(measured.steps(name, mode))
    for step in sorted(steps)[-(last or 0) :]:
        workers = tuple(tensor.workers(step, mode))
        part = None
        try:
            summary, part = statistics_and_part(tensor, step, mode, worker, wholes=wholes)
            problem = ""
        except DamagedFile:
            summary, problem = None, "damaged"
        except ObjectMissing:
            summary, problem = None, "its event file is missing"
        except InvalidWorker:
            summary, problem = None, f"not saved by {worker}"
        yield TensorAtStep(step, workers, None, summary, problem, part)


def statistics_and_part(
    tensor: Tensor, step: int, mode: ModeKeys, worker: str | None, *, wholes: bool
) -> tuple[TensorSummary | None, str | None]:
    """Return the statistics of a tensor at a step, and which part of it they are of."""
    observations = tensor.trial.observations
    if not observations.has_facts:
        return statistics_read(tensor, step, mode, worker), None
    measured = observations.measured.matrix(tensor.name, step, mode, worker, wholes=wholes)
    if measured is not None and tensor.name in measured.combined:
        return statistics_in_row(*measured.described(tensor.name)), None
    summary = statistics_read(tensor, step, mode, worker)
    if measured is not None:
        return summary, measured.parts.get(tensor.name)
    try:
        return summary, part_in_words(observations.facts(step, mode, worker), tensor.name)
    except SMDebugError:  # nothing was observed at this step
        return summary, None


def scalar_at(
    trial: Trial, name: str, step: int, mode: ModeKeys = ModeKeys.GLOBAL, worker: str | None = None
) -> TensorAtStep | None:
    """Return the value of a scalar that is kept at every step; None if that step has none."""
    if not has_series(trial, name):
        return None
    found = (at for at in _scalars(trial, name, mode, worker) if at.step == step)
    return next(found, None)


@dataclass(frozen=True)
class MeasuredOverview:
    """A measured tensor over the run."""

    name: str
    kind: str
    steps: int
    """At how many steps tensors of its kind were measured."""
    last_step: int | None
    latest: TensorSummary | None
    """What was measured of it at that step."""
    part: str | None = None
    """Of a sharded tensor: which part of it the worker has that measured it, such as "1 of 2 along dp"."""

    def to_dict(self) -> dict[str, Any]:
        latest = None if self.latest is None else self.latest.to_dict()
        return {**vars(self), "latest": latest}


def measured_overview(trial: Trial) -> list[MeasuredOverview]:
    """Return the measured tensors of a run, with the statistics of the last step that has their kind."""
    observations = trial.observations
    found = []
    for kind, tensors in observations.measured.by_kind().items():
        steps = observations.steps(kind=kind)
        last = steps[-1] if steps else None
        seen = None if last is None else observations.at(last)
        matrix = None if seen is None else seen.statistics(kind)
        for tensor in tensors:
            latest = None
            if matrix is not None and tensor.name in matrix:
                latest = statistics_in_row(*matrix.described(tensor.name))
            part = None if matrix is None else matrix.parts.get(tensor.name)
            found.append(MeasuredOverview(tensor.name, kind, len(steps), last, latest, part))
    return found


def _scalars(
    trial: Trial, name: str, mode: ModeKeys, worker: str | None, last: int | None = None
) -> list[TensorAtStep]:
    series = trial.series(name, worker)
    series = series if mode is ModeKeys.GLOBAL else series.of(mode)
    steps = series.steps if mode is ModeKeys.GLOBAL else series.mode_steps
    shown = slice(-(last or 0), None)
    parts = steps[shown].tolist(), series.modes[shown], series.values[shown].tolist()
    return [
        TensorAtStep(step, (), its_mode.name, statistics_of_number(value))
        for step, its_mode, value in zip(*parts, strict=True)
    ]
