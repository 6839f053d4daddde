"""What of a run cannot be read: index files that make no sense, and event files that are gone."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from smdebug.exceptions import AccessDenied, ObjectMissing
from smdebug.files.names import EVENTS_FOLDER, step_file
from smdebug.mode_keys import ModeKeys
from smdebug.trials import Trial
from smdebug.trials.tensor import Tensor
from smdebug.trials.worker_steps import WorkerStep

MISSING = "this event file is missing, and its index file is there"


@dataclass(frozen=True)
class LeftOut:
    """A file of a run that cannot be read, and whose step and worker therefore are in no answer."""

    run: str
    file: str
    problem: str
    step: int | None
    worker: str | None
    tensors: frozenset[str] | None = None  # that it holds; None if nobody knows

    @property
    def is_missing(self) -> bool:
        return self.problem == MISSING

    def matters_to(
        self,
        *,
        steps: Collection[int] | None = None,
        worker: str | None = None,
        tensors: Iterable[str] | None = None,
    ) -> bool:
        """Would it have been read by who asks for these alone? None: for all."""
        return (
            (steps is None or self.step is None or self.step in steps)
            and (worker is None or self.worker in (None, worker))
            and (tensors is None or self.tensors is None or not self.tensors.isdisjoint(tensors))
        )

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        told = {"run": self.run, "file": self.file, "problem": self.problem}
        return {**told, "step": self.step, "worker": self.worker}


def left_out_of(trial: Trial) -> tuple[LeftOut, ...]:
    """All that an opened run has to leave out. It lists the run's event files once."""
    return (*_unreadable(trial), *_missing(trial))


def refuse_a_missing_file(
    tensor: Tensor, step: int, mode: ModeKeys = ModeKeys.GLOBAL, worker: str | None = None
) -> None:
    """`ObjectMissing` if the tensor was saved at that step, and its event file is gone."""
    for one, places in tensor.trial.index.written(tensor.name, step, mode, worker):
        has_record = places.value is not None or bool(places.reductions)
        if has_record and one.event_file and not tensor.trial.storage.exists(one.event_file):
            raise ObjectMissing(one.event_file, MISSING)


def _unreadable(trial: Trial) -> Iterator[LeftOut]:
    for key, error in sorted(trial.damaged_files.items()):
        named = step_file(key)
        told = (named.step, named.worker) if named else (None, None)
        yield LeftOut(trial.path, key, str(error), *told)


def _missing(trial: Trial) -> Iterator[LeftOut]:
    try:
        there = set(trial.storage.list(EVENTS_FOLDER))
    except AccessDenied:  # whoever reads there will say so
        return
    for one in _written(trial):
        file = one.event_file
        if file is None or file in there or trial.storage.exists(file):
            continue
        held = frozenset(one.layout.tensor_names)
        yield LeftOut(trial.path, file, MISSING, one.step, one.worker, held)


def _written(trial: Trial) -> Iterator[WorkerStep]:
    """What each worker has written, by steps, as far as it has written records."""
    for _, workers in sorted(trial.index.at.items()):
        for one in workers.values():
            if one.layout.names:
                yield one
