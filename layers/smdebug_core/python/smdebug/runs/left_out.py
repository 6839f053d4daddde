"""The files of a run that cannot be read: damaged index files, and those that are missing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from smdebug.amounts import counted
from smdebug.exceptions import AccessDenied, ObjectMissing
from smdebug.files.names import (
    COLLECTIONS_FOLDER,
    EVENTS_FOLDER,
    collections_key,
    step_file,
)
from smdebug.mode_keys import ModeKeys
from smdebug.trials import Trial
from smdebug.trials.stored.missing_steps import Gap, MissingSteps
from smdebug.trials.stored.worker_steps import WorkerStep
from smdebug.trials.tensor import Tensor

MISSING = "this event file is missing, but its index file exists"


@dataclass(frozen=True)
class LeftOut:
    """A file of a run that cannot be read: no answer includes its part of the step."""

    run: str
    file: str
    problem: str
    step: int | None
    worker: str | None
    tensors: frozenset[str] | None = None  # in the file; None if unknown
    gap: Gap | None = None
    """The steps that are missing, if it is not one file that exists."""

    @property
    def is_missing(self) -> bool:
        return self.problem == MISSING

    @property
    def is_event_file(self) -> bool:
        """Whether the file holds tensors, not the index of such a file."""
        return self.file.startswith(EVENTS_FOLDER)

    @property
    def is_end(self) -> bool:
        """Whether what is missing is a worker's closing note, and so maybe its last steps."""
        return self.file.startswith(COLLECTIONS_FOLDER)

    def matters_to(
        self,
        *,
        steps: Collection[int] | None = None,
        worker: str | None = None,
        tensors: Iterable[str] | None = None,
    ) -> bool:
        """Whether a query for these steps, tensors and this worker would have read it; None means all."""
        return (
            (steps is None or self._is_within(steps))
            and (worker is None or self.worker in (None, worker))
            and (tensors is None or self.tensors is None or not self.tensors.isdisjoint(tensors))
        )

    def _is_within(self, steps: Collection[int]) -> bool:
        gap = self.gap
        if gap is None or not isinstance(steps, range):
            return self.step is None or self.step in steps
        return gap.first < steps.stop and (gap.last is None or steps.start <= gap.last)

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "run": self.run,
            "file": self.file,
            "problem": self.problem,
            "step": self.step,
            "worker": self.worker,
            "missing_steps": 0 if self.gap is None else self.gap.count,
        }


def left_out_of(trial: Trial) -> tuple[LeftOut, ...]:
    """Return what cannot be read of an opened run, with one listing of its event files.

    If the trial has all of them in memory, they are not listed.
    """
    return (*_unreadable(trial), *_missing(trial), *_missing_steps(trial))


def unread_in_words(trial: Trial, *, is_listed: bool = False) -> str:
    """Return which steps and files of the run no rule can have seen; "" if it is whole.

    Damaged files count once they were read, and missing event files if they `is_listed`.
    """
    files = {*trial.damaged_files, *(gap.file for gap in (_missing(trial) if is_listed else ()))}
    unread = f"{counted(len(files), 'file')} cannot be read (first: {min(files)})" if files else ""
    return "; ".join(filter(None, (str(trial.missing_steps), unread)))


def refuse_a_missing_file(
    tensor: Tensor, step: int, mode: ModeKeys = ModeKeys.GLOBAL, worker: str | None = None
) -> None:
    """Raise `ObjectMissing` if the tensor was saved at that step and its event file is missing."""
    for written, places in tensor.trial.index.written(tensor.name, step, mode, worker):
        has_record = places.value is not None or bool(places.reductions)
        file = written.event_file
        if has_record and file and not tensor.trial.storage.exists(file):
            raise ObjectMissing(file, MISSING)


def _unreadable(trial: Trial) -> Iterator[LeftOut]:
    for key, error in sorted(trial.damaged_files.items()):
        named = step_file(key)
        step, worker = (named.step, named.worker) if named else (None, None)
        yield LeftOut(trial.path, key, str(error), step, worker)


def _missing_steps(trial: Trial) -> Iterator[LeftOut]:
    missing = trial.missing_steps
    for gap in missing.gaps:
        yield LeftOut(trial.path, gap.file, gap.problem, gap.first, gap.worker, gap=gap)
    for worker in missing.not_closed:
        text = str(MissingSteps((), (worker,)))
        yield LeftOut(trial.path, collections_key(worker), text, None, worker)


def _missing(trial: Trial) -> Iterator[LeftOut]:
    unread = [
        (file, written)
        for written in _written(trial)
        if (file := written.event_file) is not None and not trial.event_files.has(file)
    ]
    if not unread:
        return
    try:
        there = set(trial.storage.list(EVENTS_FOLDER))
    except AccessDenied:  # reading there reports it
        return
    for file, written in unread:
        if file not in there and not trial.storage.exists(file):
            tensors = frozenset(written.layout.tensor_names)
            yield LeftOut(trial.path, file, MISSING, written.step, written.worker, tensors)


def _written(trial: Trial) -> Iterator[WorkerStep]:
    """What each worker has written at each step, if that includes records."""
    for _, workers in sorted(trial.index.at.items()):
        for written in workers.values():
            if written.layout.names:
                yield written
