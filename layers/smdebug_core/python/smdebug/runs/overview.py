"""A run at a glance: steps, modes, workers, collections, tensors, sizes, statistics."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from smdebug.exceptions import DamagedFile, ObjectMissing
from smdebug.files.names import LOGGED_CATALOGS, ORIGIN
from smdebug.files.notes.origin import Origin
from smdebug.files.replicas import Replicas
from smdebug.mode_keys import ModeKeys
from smdebug.runs.curves.lines import Line, lines_of
from smdebug.runs.left_out import left_out_of
from smdebug.runs.statistics import TensorSummary, statistics_of_number, statistics_read
from smdebug.runs.thinned_steps import thinned as thinned
from smdebug.runs.training_loss import TrainingLoss, has_series, loss_names, of_rows, training_loss
from smdebug.trials import Trial
from smdebug.trials.logged_names import LoggedName, logged_names
from smdebug.trials.stored.attempts import Attempt
from smdebug.trials.stored.missing_steps import NOTHING_MISSING, MissingSteps
from smdebug.trials.stored.worker_steps import IndexLayout, Spans

_LOSS_POINTS = 60
_MOST_LOSSES = 20


@dataclass(frozen=True)
class StepsOf:
    """The steps of one mode."""

    mode: str
    count: int
    first: int
    last: int
    interval: int | None  # the most frequent one

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))


@dataclass(frozen=True)
class TensorOverview:
    """One tensor over the run."""

    name: str
    collections: tuple[str, ...]
    steps: int
    saved: tuple[str, ...]  # value, reductions, shape
    bytes: int
    last_step: int | None = None  # the global step of `latest`
    latest: TensorSummary | None = None

    def to_dict(self) -> dict[str, Any]:
        content = {**vars(self), "collections": list(self.collections), "saved": list(self.saved)}
        content["latest"] = self.latest.to_dict() if self.latest else None
        return content


@dataclass(frozen=True)
class Overview:
    """A run at a glance."""

    path: str
    state: str
    """`ended`, `failed` or `not ended`."""
    num_workers: int
    workers: tuple[str, ...]
    steps: tuple[StepsOf, ...]
    incomplete_steps: tuple[int, ...]
    collections: Mapping[str, int]  # the number of tensors in each
    tensors: tuple[TensorOverview, ...]
    bytes: int
    index_files: int
    first_saved: datetime | None
    last_saved: datetime | None
    losses: tuple[TrainingLoss, ...] = ()
    """The losses of the training, the most likely one first."""
    lines: tuple[Line, ...] = ()
    """The first of them, training and validation apart; empty if it was computed in training alone."""
    damaged: Mapping[str, str] = field(default_factory=dict)
    attempts: tuple[Attempt, ...] = ()
    attempt: int = 0
    """The number of the attempt that is shown."""
    origin: Origin | None = None
    """Where the run comes from, if that was kept."""
    missing_steps: MissingSteps = NOTHING_MISSING
    """The steps that were saved or could not be written, and are not there."""
    logged: tuple[LoggedName, ...] = ()
    """What was logged to be looked at, by name."""
    digest_workers: int = 0
    """The workers besides `num_workers` that save digests of their copies of the model alone."""

    @property
    def num_steps(self) -> int:
        """The number of steps in all modes."""
        return sum(steps.count for steps in self.steps)

    @property
    def ended(self) -> bool:
        """Whether the training came to its end."""
        return self.state == "ended"

    @property
    def loss(self) -> TrainingLoss | None:
        """The loss of the training; None if there is none, or it was not read."""
        return self.losses[0] if self.losses else None

    @property
    def seconds_per_step(self) -> float | None:
        """The average time between two saved steps."""
        if self.first_saved is None or self.last_saved is None or self.num_steps < 2:
            return None
        return (self.last_saved - self.first_saved).total_seconds() / (self.num_steps - 1)

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "path": self.path,
            "state": self.state,
            "ended": self.ended,
            "num_workers": self.num_workers,
            "workers": list(self.workers),
            "digest_workers": self.digest_workers,
            "attempt": self.attempt,
            "attempts": [attempt.to_dict() for attempt in self.attempts],
            "steps": [steps.to_dict() for steps in self.steps],
            "incomplete_steps": list(self.incomplete_steps),
            "collections": dict(self.collections),
            "tensors": [tensor.to_dict() for tensor in self.tensors],
            "bytes": self.bytes,
            "index_files": self.index_files,
            "first_saved": self.first_saved.isoformat() if self.first_saved else None,
            "last_saved": self.last_saved.isoformat() if self.last_saved else None,
            "seconds_per_step": self.seconds_per_step,
            "loss": self.loss.to_dict() if self.loss else None,
            "losses": {
                loss.name: [list(point) for point in loss.points(_LOSS_POINTS)] for loss in self.losses
            },
            "damaged": dict(self.damaged),
            "missing_steps": self.missing_steps.to_dict(),
            "origin": self.origin.to_dict() if self.origin else None,
            "logged": [named.to_dict() for named in self.logged],
        }


def overview_of(
    trial: Trial,
    *,
    with_values: bool = True,
    progress: Callable[[Iterable[str]], Iterable[str]] = iter,
) -> Overview:
    """Return an overview of the run; `with_values` reads the latest value of each tensor and the losses."""
    usage = _Usage(trial)
    replicas = Replicas.of_run(trial.collection_manager.meta)
    members = collections_of(trial)
    complete = set(trial.steps())
    known = trial.steps(show_incomplete_steps=True)
    damaged = {key: str(error) for key, error in trial.damaged_files.items()}
    if with_values:
        damaged.update((left.file, left.problem) for left in left_out_of(trial) if left.is_missing)
    origin = None
    try:
        origin = trial.origin
    except DamagedFile as error:
        damaged[ORIGIN] = error.problem
    tensors = tuple(
        _tensor(name, trial, usage, members, with_values, damaged) for name in progress(trial.tensor_names())
    )
    logged: tuple[LoggedName, ...] = ()
    try:
        logged = logged_names(trial.logged())
    except DamagedFile as error:
        damaged[LOGGED_CATALOGS] = error.problem
    losses = _losses(trial) if with_values else ()
    attempts = trial.attempts()
    newest = attempts[-1].number if attempts else 0
    attempt = newest if trial.attempt is None else trial.attempt
    counts = Counter(name for collections in members.values() for name in collections)
    return Overview(
        path=trial.path,
        state=trial.state if attempt == newest else "not ended",
        num_workers=trial.num_workers,
        workers=tuple(trial.workers()),
        steps=_steps(trial),
        incomplete_steps=tuple(step for step in known if step not in complete),
        collections={name: counts[name] for name in trial.collections()},
        tensors=tensors,
        bytes=usage.bytes.total(),
        index_files=usage.files,
        first_saved=_moment(usage.first_saved),
        last_saved=_moment(usage.last_saved),
        losses=losses,
        lines=_lines(trial, losses),
        logged=logged,
        digest_workers=0 if replicas is None else replicas.workers - trial.num_workers,
        damaged=damaged,
        missing_steps=trial.missing_steps,
        attempts=attempts,
        attempt=attempt,
        origin=origin,
    )


def collections_of(trial: Trial) -> dict[str, tuple[str, ...]]:
    """Return the collections of each tensor, except `all` and `default`, which every tensor is in."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for collection in trial.collections():
        if collection not in ("all", "default"):
            for name in trial.tensor_names(collection=collection):
                found[name].append(collection)
    return {name: tuple(collections) for name, collections in found.items()}


class _Usage:
    """The number of steps and bytes of each tensor, from one pass over the index files."""

    def __init__(self, trial: Trial):
        self.files = 0
        self.steps: Counter[str] = Counter()
        self.bytes: Counter[str] = Counter()
        self.saved: defaultdict[str, set[str]] = defaultdict(set)
        self.last_step: dict[str, int] = {}
        self.first_saved: float | None = None
        self.last_saved: float | None = None
        written: Counter[tuple[IndexLayout, Spans]] = Counter()
        layouts: Counter[frozenset[IndexLayout]] = Counter()
        last_step: dict[IndexLayout, int] = {}
        for step, workers in sorted(trial.index.at.items()):
            here = set()
            for part in workers.values():
                self.files += 1
                written[part.layout, part.spans] += 1
                here.add(part.layout)
                if part.saved_at is not None:
                    self.first_saved = min(self.first_saved or part.saved_at, part.saved_at)
                    self.last_saved = max(self.last_saved or part.saved_at, part.saved_at)
            layouts[frozenset(here)] += 1
            for layout in here:
                last_step[layout] = step
        for (layout, spans), times in written.items():
            self._add(layout, spans, times)
        for together, times in layouts.items():
            names = {name for layout in together for name in layout.tensor_names}
            self.steps.update(dict.fromkeys(names, times))
        for layout, step in last_step.items():
            for name in layout.tensor_names:
                self.last_step[name] = max(step, self.last_step.get(name, step))

    def _add(self, layout: IndexLayout, spans: Spans, times: int) -> None:
        for name, places in layout.of_tensor.items():
            saved = self.saved[name]
            positions = list(places.reductions.values())
            if places.value is not None:
                saved.add("value")
                positions.append(places.value)
            if places.reductions:
                saved.add("reductions")
            if places.shape is not None:
                saved.add("shape")
            self.bytes[name] += times * sum(spans.lengths[at] for at in positions)


def _tensor(
    name: str,
    trial: Trial,
    usage: _Usage,
    members: Mapping[str, tuple[str, ...]],
    with_values: bool,
    damaged: dict[str, str],
) -> TensorOverview:
    last = usage.last_step.get(name)
    latest = None
    if with_values and last is not None:
        try:
            latest = statistics_read(trial.tensor(name), last)
        except DamagedFile as error:
            damaged.setdefault(error.file, str(error))
        except ObjectMissing:
            pass  # already in `damaged`
        last, latest = _last_of_scalar(trial, name, last, latest)
    order = ("value", "reductions", "shape")
    return TensorOverview(
        name=name,
        collections=members.get(name, ()),
        steps=usage.steps[name],
        saved=tuple(kind for kind in order if kind in usage.saved[name]),
        bytes=usage.bytes[name],
        last_step=last,
        latest=latest,
    )


def _last_of_scalar(
    trial: Trial, name: str, last: int, latest: TensorSummary | None
) -> tuple[int, TensorSummary | None]:
    """Return the last value of a scalar that was kept at every step, and not only where it was saved.

    Values of evaluations do not count, as in the loss of the training.
    """
    kept = None
    if latest is not None and has_series(trial, name):
        kept = of_rows(name, trial.observations.series_rows(name))
    if latest is None or kept is None:
        return last, latest
    return kept.last_step, replace(statistics_of_number(kept.last), dtype=latest.dtype, shape=latest.shape)


def _steps(trial: Trial) -> tuple[StepsOf, ...]:
    found = []
    in_modes = 0
    for mode in trial.modes():
        steps = trial.steps(mode)
        in_modes += len(steps)
        if steps:
            found.append(_steps_of(mode.name, steps))
    everything = trial.steps()
    if len(everything) > in_modes:
        without = [step for step in everything if trial.mode(step) is ModeKeys.GLOBAL]
        if without:
            found.append(_steps_of("GLOBAL", without))
    return tuple(found)


def _steps_of(mode: str, steps: list[int]) -> StepsOf:
    distances = Counter(after - before for before, after in pairwise(steps))
    interval = distances.most_common(1)[0][0] if distances else None
    return StepsOf(mode, len(steps), steps[0], steps[-1], interval)


def _lines(trial: Trial, losses: Sequence[TrainingLoss]) -> tuple[Line, ...]:
    """The lines of the loss, if the run keeps one at every step and has computed it in evaluations, too."""
    if not losses or not has_series(trial, losses[0].name):
        return ()
    lines = lines_of(trial.observations.series_rows(losses[0].name))
    return tuple(lines) if len(lines) > 1 else ()


def _losses(trial: Trial) -> tuple[TrainingLoss, ...]:
    """The losses of the training that have values."""
    found = (training_loss(trial, name) for name in loss_names(trial)[:_MOST_LOSSES])
    return tuple(loss for loss in found if loss is not None)


def _moment(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
