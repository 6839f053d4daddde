"""Steps whose index files another process has read: what charts ask of a run, without listing it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, cast

from numpy.typing import NDArray

from smdebug.exceptions import TensorUnavailableForStep
from smdebug.mode_keys import ModeKeys
from smdebug.storage import open_storage
from smdebug.trials.live.run_index import RunIndex
from smdebug.trials.observations.readable import Readable
from smdebug.trials.observations.whole_run import Observations
from smdebug.trials.stored.event_files import EventFiles
from smdebug.trials.stored.values import ValueReader
from smdebug.trials.stored.worker_steps import Workers, WorkerStep

_KEPT_BYTES = 4 << 20


class SentSteps:
    """Some steps of a run. `show` replaces them by others."""

    def __init__(self, path: str):
        self.path = path
        self.index = RunIndex()
        self.num_workers = 1
        self.values = ValueReader(EventFiles(open_storage(path), _KEPT_BYTES), _no_event_file)

    @cached_property
    def observations(self) -> Observations:
        """What was observed at these steps. Layouts that were read are kept."""
        found = Observations(cast(Readable, self))
        found.limit(_KEPT_BYTES)
        return found

    def show(self, at: Mapping[int, Workers], num_workers: int) -> None:
        """Have these steps of a run of so many workers, and no others."""
        self.index, self.num_workers = RunIndex(), num_workers
        self.index.add_read(at)

    def mode(self, global_step: int) -> ModeKeys | None:
        """Return the mode of a step; None if it is not one of these."""
        known = self.index.mode_of(global_step)
        return None if known is None else known[0]

    def has_tensor(self, name: str) -> bool:
        """Return whether any of the steps has that tensor."""
        return self.index.has_tensor(name)

    def tensor(self, name: str) -> SentTensor:
        """Return what reads the values of a tensor."""
        return SentTensor(name, self)


class SentTensor:
    """A tensor at these steps."""

    def __init__(self, name: str, steps: SentSteps):
        self._name = name
        self._steps = steps

    def value(self, step: int, mode: ModeKeys = ModeKeys.GLOBAL, worker: str | None = None) -> NDArray[Any]:
        """Return the value at a step; raise `TensorUnavailableForStep` if it has none."""
        for written, places in self._steps.index.written(self._name, step, mode, worker):
            if places.value is not None:
                return self._steps.values.read(written, places.value)
        raise TensorUnavailableForStep(self._name, step, mode)


def _no_event_file(written: WorkerStep, file: str, name: str) -> None:
    raise TensorUnavailableForStep(name, written.mode_step, written.mode)
