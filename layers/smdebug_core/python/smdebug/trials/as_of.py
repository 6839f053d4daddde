"""A run as of one of its steps: what a rule sees that is evaluated at that step, whenever that happens.

A listing is not needed: a history (`smdebug.trials.history`) tells of the steps before, and the index files
of a step are read when something in it is asked for. Later steps do not exist, so a step evaluated late, or
twice, or out of a backlog, looks as it looked when it was new. Nothing here ever sleeps.

    trial = AsOfTrial("mnist", storage, history=history, collections=collections, num_workers=2)
    for step in due:
        summary = trial.look_at(step, ["worker_0", "worker_1"])
        rule.invoke(step)
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from numpy.typing import NDArray

from smdebug.config.collection_manager import CollectionManager
from smdebug.exceptions import (
    ObjectMissing,
    SMDebugError,
    SMDebugNotImplementedError,
    SMDebugTypeError,
    StepNotYetAvailable,
    StepUnavailable,
    TensorUnavailableForStep,
)
from smdebug.mode_keys import ModeKeys
from smdebug.service.records import Layout
from smdebug.storage import Storage
from smdebug.trials.event_files import SMALL_FILE, EventFiles
from smdebug.trials.history import History, StepSummary
from smdebug.trials.index_files import KEPT as INDEX_KEPT
from smdebug.trials.index_files import IndexFiles
from smdebug.trials.lazy_index import LazyIndex
from smdebug.trials.progress import RunProgress, StepState
from smdebug.trials.run_index import Workers, WorkerStep
from smdebug.trials.trial import Trial

GLOBAL = ModeKeys.GLOBAL
Array = NDArray[Any]
_FETCHED_AHEAD = 32 << 20
_STEPS_READ_FROM = 64


class AsOfTrial(Trial):
    """A run through the step that was looked at last. Before `look_at`, it has no steps.

    It answers as a trial would that was opened when that step had just been written, and the run was
    going on; only that it raises `StepNotYetAvailable` where such a trial would wait. A run that starts
    anew (another `training_run`) needs another view, since it writes its steps again.
    """

    def __init__(
        self,
        name: str,
        storage: Storage,
        *,
        history: History,
        collections: CollectionManager,
        num_workers: int,
        event_files: EventFiles | None = None,
        path: str | None = None,
        index_budget: int = INDEX_KEPT,
    ):
        self._files = IndexFiles(storage, self._report_damaged, index_budget)
        self._lazy = LazyIndex(history, self._files, num_workers)
        # Per step read from, the worker whose values were read; None once those of all are on their way.
        self._read_from: OrderedDict[int, str | None] = OrderedDict()
        self._set_up(
            name,
            storage,
            path=path,
            index=self._lazy,
            event_files=event_files or EventFiles(storage),
            collections=collections,
            progress=self._progress_through(-1),
        )

    # Moving

    @property
    def as_of(self) -> int:
        """The last global step that exists; -1 at first."""
        return self._lazy.through

    def look_at(self, step: int, workers: Iterable[str]) -> StepSummary:
        """Have `step`, which these workers wrote, be the last one; what is told of it is to be recorded.

        Its index files are read, one request each. A worker whose file is damaged, empty or gone is left
        out of the answer; if that leaves none, the step has no layout, and is not there: `StepUnavailable`.
        """
        self._moving_to(step)
        summary = self._lazy.look_at(step, workers)
        self._progress = self._progress_through(step)
        return summary

    def look_up_to(self, step: int, *, passed: bool = True) -> bool:
        """Have nothing exist behind `step`, which may be there or not; is it there?

        For another run than the one that is evaluated. `passed` says whether that run has settled the step,
        by a later one or its end: if it is not there, it was skipped (`StepUnavailable`), or else it may
        come (`StepNotYetAvailable`).
        """
        self._moving_to(step)
        self._lazy.look_up_to(step)
        self._lazy.forget()  # it may have come along meanwhile
        is_there = self._lazy.summary(step) is not None
        if not is_there and not passed:
            newest = self._lazy.newest()
            step = -1 if newest is None else newest.step
        self._progress = self._progress_through(step)
        return is_there

    def written_by(self, step: int, workers: Iterable[str]) -> Workers:
        """What the index files of these workers say of a step; it need not exist in this view."""
        return self._files.of(step, workers)

    def layout(self, digest: str) -> Layout:
        """What a step holds whose summary has this digest, as it is to be recorded."""
        return self._lazy.layouts[digest].record

    def refresh_data(self) -> None:
        """Ask the history anew; what was read stays. For a view that is used again later."""
        self._lazy.forget()

    def forget_before(self, step: int) -> None:
        """Drop what was read of the index files of earlier steps."""
        self._files.forget_before(step)

    def _moving_to(self, step: int) -> None:
        if step < self.as_of:
            self._tensors.clear()  # some of them may not have been saved yet

    def _progress_through(self, step: int) -> RunProgress:
        return RunProgress(
            num_workers=self._lazy.num_workers,
            workers_by_step=self._lazy.workers_by_step,
            settled_through=step,
        )

    def _report_damaged(self, key: str, error: SMDebugError) -> None:
        if key not in self.damaged_files:
            self.logger.error(
                f"Left out an index file of {self.path}; other steps and workers can be read. {error}"
            )
        self.damaged_files[key] = error

    # Reading

    def read(self, written: WorkerStep, position: int) -> Array:
        """The value at that position of what a worker wrote at one step, checked."""
        first = self._read_from.setdefault(written.step, written.worker)
        if first is not None and first != written.worker:
            self._read_from[written.step] = None
            self._fetch_of_all_workers(written)
        elif len(self._read_from) > _STEPS_READ_FROM:
            self._read_from.popitem(last=False)
        return super().read(written, position)

    def _fetch_of_all_workers(self, written: WorkerStep) -> None:
        """Who reads of a second worker will read of all: fetch their small files side by side."""
        if self.storage.concurrency <= 1:
            return
        wanted, size = [], 0
        for one in (self._lazy.workers_at(written.step, GLOBAL) or {}).values():
            size += one.spans.end
            if size > _FETCHED_AHEAD:
                break
            if one.event_file is not None and 0 < one.spans.end <= SMALL_FILE:
                wanted.append(one)
        self.in_parallel(self._fetch, wanted)

    def _fetch(self, one: WorkerStep) -> None:
        length, start = min(zip(one.spans.lengths, one.spans.starts, strict=True))
        with suppress(ObjectMissing):  # whoever asks for a value in it will hear of that
            self.event_files.record(one.event_file or "", start, length, one.spans.end)

    # What a trial that lists does otherwise

    def maybe_refresh(self, name: str | None = None) -> None:
        """There are no news of the past."""

    def state_of(self, step: int, mode: ModeKeys) -> StepState:
        """`has_passed_step`: nothing may still arrive but what comes after the step looked at."""
        if mode is GLOBAL:
            return super().state_of(step, mode)
        try:
            newest = self._lazy.newest_in(mode, float("inf"))
            if newest is None or step > newest.mode_step:
                return StepState.NOT_YET_AVAILABLE
        except TypeError as error:
            raise SMDebugTypeError(f"A step is a whole number, not {step!r}") from error
        known = self._lazy.global_step(step, mode) is not None
        return StepState.AVAILABLE if known else StepState.UNAVAILABLE

    def _wait_for_step(self, step: int, mode: ModeKeys) -> None:
        match self.has_passed_step(step, mode):
            case StepState.NOT_YET_AVAILABLE:
                raise StepNotYetAvailable(step, mode)
            case StepState.UNAVAILABLE:
                raise StepUnavailable(step, mode)

    def _wait_for_event_file(self, written: WorkerStep, file: str, name: str) -> None:
        # The step was complete: the file has been there, and was removed.
        raise TensorUnavailableForStep(name, written.mode_step, written.mode)

    @property
    def index_reader(self) -> Any:
        raise SMDebugNotImplementedError(
            "A view of a run as of a step has no index_reader, which lists all its steps: ask "
            "trial.tensor(name) for values, shapes and steps"
        )

    def __repr__(self) -> str:
        return f"<AsOfTrial {self.name!r} at {self.path}, as of step {self.as_of}>"
