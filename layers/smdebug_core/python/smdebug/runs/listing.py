"""The runs in a folder or bucket, with their origins and results."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from smdebug.amounts import counted
from smdebug.diagnosis.wording import headline
from smdebug.exceptions import MissingCollectionFiles, SMDebugError
from smdebug.files.names import COLLECTIONS_FOLDER, LAST_STEP
from smdebug.files.notes.checkpoints import Checkpoint, last_before
from smdebug.files.notes.origin import Origin
from smdebug.runs.conditions import Condition, key_of, refuse_unknown_names
from smdebug.runs.evaluation.diagnosing import diagnose, readable_checkpoints
from smdebug.runs.metrics import last_metrics, measured_sizes, unlike_configured
from smdebug.runs.opening import no_run_below, open_run, refuse_a_file
from smdebug.runs.origins import differing
from smdebug.runs.training_loss import TrainingLoss, training_loss
from smdebug.runs.watched_places import MOST_RUNS, runs_in
from smdebug.secrets.texts import redacted_line
from smdebug.storage import open_storage

STEPS_JUDGED = 300
_DIGITS = re.compile(r"([^0-9]*)([0-9]{0,18})")


@dataclass(frozen=True)
class ListedRun:
    """One run of a list."""

    path: str
    name: str
    state: str = ""
    steps: int = 0
    last_step: int | None = None
    training_step: int | None = None
    """The last step of the training that has a loss: evaluations are not counted. None if it is not known."""
    loss: float | None = None
    """The loss of its last step of training."""
    best_loss: float | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    """The last value of each number that was logged, and of the learning rate."""
    sizes: Mapping[str, float] = field(default_factory=dict)
    """The number of parameters, the batch size and the samples a second, where they were measured."""
    differs: str = ""
    """How the measured learning rate differs from the configured one; empty if it does not."""
    saved_at: datetime | None = None
    origin: Origin = field(default_factory=Origin)
    problems: tuple[str, ...] | None = None
    """The headlines of its problems; None if it was not evaluated."""
    last_good: Checkpoint | None = None
    """Of an evaluated run: the last checkpoint before its first problem, or of all if it has no problem."""
    error: str = ""
    """Why it cannot be read, or only in part."""

    def facts(self) -> dict[str, Any]:
        """Return what conditions can be about: the configuration, and what else is known."""
        origin = self.origin
        around = {
            "name": self.name,
            "path": self.path,
            "state": self.state,
            "steps": self.steps,
            "last_step": self.last_step,
            "training_step": self.training_step,
            "loss": self.loss,
            "best_loss": self.best_loss,
            "tag": list(origin.tags),
            **vars(origin),
            "command": " ".join(origin.command),
            **origin.packages,
        }
        del around["config"], around["packages"]
        return {**self.sizes, **self.metrics, **around, **origin.config}

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            **vars(self),
            "metrics": dict(self.metrics),
            "sizes": dict(self.sizes),
            "saved_at": self.saved_at.isoformat() if self.saved_at else None,
            "origin": self.origin.to_dict(),
            "problems": None if self.problems is None else list(self.problems),
            "last_good": None if self.last_good is None else self.last_good.to_dict(),
        }


def list_runs(
    place: str,
    *,
    where: Sequence[Condition] = (),
    failing: bool = False,
    judged: bool = False,
    progress: Callable[[Iterable[str]], Iterable[str]] = iter,
) -> list[ListedRun]:
    """Return the runs at and below a place that satisfy all conditions, in the order of their names.

    With `judged`, evaluate each with its own rules and the default set; with `failing`, keep those with
    problems alone.
    """
    paths = sorted(run_paths(place), key=lambda pair: natural(pair[1]))
    found = [listed_run(path, name) for path, name in progress_over(paths, progress)]
    refuse_unknown_names(where, [run.facts() for run in found])
    found = [run for run in found if all(condition.matches(run.facts()) for condition in where)]
    if not failing and not judged:
        return found
    found = [_judged(run) for run in found]
    return [run for run in found if run.problems] if failing else found


def natural(name: str) -> list[tuple[str, int]]:
    """Return the key that sorts names as people do: `run` before `run-2` before `run-10`."""
    return [(text, int(digits or 0)) for text, digits in _DIGITS.findall(name)]


def progress_over(
    paths: list[tuple[str, str]], progress: Callable[[Iterable[str]], Iterable[str]]
) -> Iterator[tuple[str, str]]:
    """Yield the pairs while their paths pass through `progress`."""
    names = dict(paths)
    for path in progress(list(names)):
        yield path, names[path]


def sorted_by(runs: Sequence[ListedRun], name: str) -> list[ListedRun]:
    """Return the runs with the lowest value of that name first, or of `-name` the highest.

    Runs without the value come last. Raise `SMDebugValueError` if no run has it.
    """
    key = name.removeprefix("-")
    refuse_unknown_names([Condition(key, "=", "")], [run.facts() for run in runs])

    def place(run: ListedRun) -> tuple[bool, float, str]:
        facts = run.facts()
        found = key_of(key, facts)
        value = None if found is None else facts[found]
        if isinstance(value, bool) or value is None or value != value:
            return True, 0.0, ""
        if isinstance(value, int | float):
            return False, -value if name.startswith("-") else value, ""
        return False, 0.0, str(value)

    return sorted(runs, key=place)


def varying(runs: Sequence[ListedRun], most: int) -> list[str]:
    """Return the names of the configuration values that differ between the runs, at most so many."""
    return differing([run.origin.config for run in runs])[:most]


def run_paths(place: str) -> Iterator[tuple[str, str]]:
    """Yield the path and the name of each run at and below a place."""
    refuse_a_file(place)
    storage = open_storage(place)
    if next(iter(storage.list(COLLECTIONS_FOLDER)), None) is not None:
        yield place, place.rstrip("/").rpartition("/")[2]
        return
    names = list(islice(runs_in(storage), MOST_RUNS))
    if not names:
        raise MissingCollectionFiles(no_run_below(storage))
    yield from ((f"{place.rstrip('/')}/{name}", name) for name in names)


def listed_run(path: str, name: str) -> ListedRun:
    """Return what a list shows of the run; of an unreadable one, why."""
    try:
        trial = open_run(path)
        steps = trial.steps()
    except SMDebugError as error:
        return ListedRun(path, name, state="unreadable", error=redacted_line(error))
    problem, differs, origin = "", "", None
    loss: TrainingLoss | None = None
    metrics: dict[str, float] = {}
    sizes: dict[str, float] = {}
    try:
        origin = trial.origin
        loss = training_loss(trial)
        metrics = last_metrics(trial)
        sizes = measured_sizes(trial)
        differs = unlike_configured(trial)
    except SMDebugError as error:
        problem = redacted_line(error)
    if trial.damaged_files:
        unread = counted(len(trial.damaged_files), "file")
        problem = (
            f"{unread} cannot be read: {next(iter(trial.damaged_files))}; "
            f"run `smdebug verify {path}` for details"
        )
    problem = problem or str(trial.missing_steps)
    saved = trial.saved_at(steps[-1]) if steps else None
    return ListedRun(
        path,
        name,
        state=trial.state,
        steps=len(steps),
        last_step=steps[-1] if steps else None,
        training_step=None if loss is None else loss.last_training_step,
        loss=None if loss is None else loss.last,
        best_loss=None if loss is None else loss.best,
        metrics=metrics,
        sizes=sizes,
        differs=differs,
        saved_at=None if saved is None else datetime.fromtimestamp(saved, UTC),
        origin=origin or Origin(),
        error=problem,
    )


def _judged(run: ListedRun) -> ListedRun:
    if run.state == "unreadable":
        return run
    try:
        trial = open_run(run.path)
        found = diagnose(trial, jobs=1, most_steps=STEPS_JUDGED)
    except SMDebugError as error:
        return replace(run, error=redacted_line(error))
    first = min((issue.since for issue in found.issues), default=LAST_STEP + 1)
    good = last_before(readable_checkpoints(trial), first)
    return replace(run, problems=tuple(map(headline, found.issues)), last_good=good)
