"""A run as of one of its steps, as the source of a trial."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from smdebug.exceptions import (
    ObjectMissing,
    SMDebugError,
    SMDebugNotImplementedError,
    SMDebugTypeError,
    TensorUnavailableForStep,
)
from smdebug.mode_keys import ModeKeys
from smdebug.trials.past.index_files import Together, none_together
from smdebug.trials.past.lazy_index import LazyIndex
from smdebug.trials.progress import RunProgress, StepState
from smdebug.trials.stored.event_files import SMALL_FILE, EventFiles
from smdebug.trials.stored.missing_steps import NOTHING_MISSING, MissingSteps
from smdebug.trials.stored.values import MOST_READERS, ValueReader, in_parallel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from smdebug.config.collection_manager import CollectionManager
    from smdebug.storage import Storage
    from smdebug.trials.stored.attempts import Attempt
    from smdebug.trials.stored.worker_steps import WorkerStep

GLOBAL = ModeKeys.GLOBAL
_FETCHED_AHEAD = 32 << 20
_STEPS_READ_FROM = 64


class HistoricRun:
    """A `RunSource` that ends with one step: later steps do not exist."""

    has_more = False
    last_index_token: str | None = None
    announced_workers: tuple[str, ...] = ()

    def __init__(self, index: LazyIndex, collections: CollectionManager):
        self.index = index
        self.collections = collections
        self.damaged_files: dict[str, SMDebugError] = {}
        self.settle_through(-1)

    def settle_through(self, step: int) -> None:
        """Count the steps up to that one as settled."""
        self.progress = RunProgress(
            num_workers=self.index.num_workers,
            workers_by_step=self.index.workers_by_step,
            settled_through=step,
        )

    @property
    def last_complete_step(self) -> int:
        return self.progress.settled_through

    def attempts(self) -> tuple[Attempt, ...]:
        raise SMDebugNotImplementedError(
            "A view of a run as of a step does not list its attempts: open the run with create_trial"
        )

    def missing_steps(self, refresh: Callable[[], object]) -> MissingSteps:
        return NOTHING_MISSING  # whoever provides the history knows what it lacks

    def refresh(self) -> None:
        self.index.forget()

    def follow(self) -> None:
        """Do nothing: the past does not change."""

    count_settled = follow

    def state_in_mode(self, step: int, mode: ModeKeys) -> StepState:
        try:
            if step < 0:
                return StepState.UNAVAILABLE
            if mode is GLOBAL:
                return self.progress.state_of(step)
            newest = self.index.newest_in(mode, float("inf"))
            if newest is None or step > newest.mode_step:
                return StepState.NOT_YET_AVAILABLE
        except TypeError as error:
            raise SMDebugTypeError(f"A step is a whole number, not {step!r}") from error
        known = self.index.global_step(step, mode) is not None
        return StepState.AVAILABLE if known else StepState.UNAVAILABLE

    def await_event_file(self, written: WorkerStep, file: str, name: str) -> None:
        # The step was complete: the file has been there, and was removed.
        raise TensorUnavailableForStep(name, written.mode_step, written.mode)


class FetchingReader(ValueReader):
    """A `ValueReader` that fetches the small files of all workers at the second worker's first value.

    A rule that reads the values of two workers will read those of all.
    """

    def __init__(
        self,
        run: HistoricRun,
        storage: Storage,
        event_files: EventFiles,
        together: Together = none_together,
    ):
        super().__init__(event_files, run.await_event_file)
        self._together = together
        self._index = run.index
        self._storage = storage
        # The first worker read, by step; None once the files of all workers were fetched.
        self._first_worker: OrderedDict[int, str | None] = OrderedDict()

    def read(self, written: WorkerStep, position: int) -> NDArray[Any]:
        first = self._first_worker.setdefault(written.step, written.worker)
        if first is not None and first != written.worker:
            self._first_worker[written.step] = None
            self._fetch_all_workers(written.step)
        elif len(self._first_worker) > _STEPS_READ_FROM:
            self._first_worker.popitem(last=False)
        return super().read(written, position)

    def of_last_step(self) -> Callable[[str], bool]:
        """Return which workers' values were read of the step that was read last."""
        if not self._first_worker:
            return lambda worker: False
        first = next(reversed(self._first_worker.values()))
        return lambda worker: first in (None, worker)

    def fetch(self, workers: Iterable[WorkerStep], most_bytes: int) -> None:
        """Fetch the small files of these workers, up to that size in all."""
        wanted: dict[str, WorkerStep] = {}
        size = 0
        for written in workers:
            size += written.spans.end
            if size > most_bytes:
                break
            key = written.event_file
            if key is not None and 0 < written.spans.end <= SMALL_FILE and not self._event_files.has(key):
                wanted[key] = written
        found = self._together([(key, written.spans.end) for key, written in wanted.items()])
        self._event_files.keep(found)
        alone = [written for key, written in wanted.items() if key not in found]
        in_parallel(self._fetch, alone, min(self._storage.concurrency, MOST_READERS))

    def _fetch_all_workers(self, step: int) -> None:
        if self._storage.concurrency > 1:
            self.fetch((self._index.workers_at(step, GLOBAL) or {}).values(), _FETCHED_AHEAD)

    def _fetch(self, written: WorkerStep) -> None:
        length, start = min(zip(written.spans.lengths, written.spans.starts, strict=True))
        with suppress(ObjectMissing):  # reading a value of it will report that
            self._event_files.record(written.event_file or "", start, length, written.spans.end)
