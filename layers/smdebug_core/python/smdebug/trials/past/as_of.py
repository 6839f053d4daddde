"""A run as of one of its steps: what a rule sees that is evaluated at that step, whenever that happens.

Nothing is listed. A history (`smdebug.trials.past.history`) has the earlier steps, and the index files of a
step are read when something in it is needed. Later steps do not exist, so a step that is evaluated late, or
twice, or out of a backlog, gives the same results as when it was new. Nothing here ever sleeps.

    trial = AsOfTrial("mnist", storage, history=history, collections=collections, num_workers=2)
    for step in due:
        summary = trial.move_to(step, ["worker_0", "worker_1"])
        rule.invoke(step)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from smdebug.exceptions import (
    SMDebugError,
    SMDebugNotImplementedError,
    SMDebugTypeError,
    StepNotYetAvailable,
    StepUnavailable,
)
from smdebug.mode_keys import ModeKeys
from smdebug.trials.live.listed_run import report_damaged
from smdebug.trials.live.listing import Damaged
from smdebug.trials.past.historic_run import FetchingReader, HistoricRun
from smdebug.trials.past.index_files import KEPT as INDEX_KEPT
from smdebug.trials.past.index_files import IndexFiles, Together, none_together
from smdebug.trials.past.lazy_index import LazyIndex
from smdebug.trials.progress import StepState
from smdebug.trials.stored.event_files import EventFiles
from smdebug.trials.trial import Trial

if TYPE_CHECKING:
    from smdebug.config.collection_manager import CollectionManager
    from smdebug.service.records import StepLayout
    from smdebug.storage import Storage
    from smdebug.trials.past.history import History, StepSummary
    from smdebug.trials.stored.worker_steps import Workers


class AsOfTrial(Trial):
    """A run up to the step that the view was moved to. Before `move_to`, it has no steps.

    It behaves like a trial that was opened when that step had just been written and the run was still in
    progress. Where such a trial would wait, it raises `StepNotYetAvailable`. A run that was started again
    (another `training_run`) needs another view, since it writes its steps again.
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
        together: Together = none_together,
    ):
        self._files = IndexFiles(storage, self._report_damaged, index_budget, together)
        self._lazy = LazyIndex(history, self._files, num_workers)
        self._historic = run = HistoricRun(self._lazy, collections)
        event_files = event_files or EventFiles(storage)
        path = storage.location if path is None else path
        self._reader = FetchingReader(run, storage, event_files, together)
        self._set_up(name, storage, path, run, event_files, self._reader)

    # Moving

    @property
    def as_of(self) -> int:
        """The last global step that exists; -1 at first."""
        return self._lazy.through

    def move_to(self, step: int, workers: Iterable[str]) -> StepSummary:
        """Make `step`, which these workers wrote, the last one; return its summary, to be recorded.

        Its index files are read, one request each. A worker whose file is damaged, empty or missing is
        left out of the summary. If no worker is left, the step has no layout and does not exist:
        `StepUnavailable`.
        """
        self._before_move_to(step)
        summary = self._lazy.move_to(step, workers)
        self._historic.settle_through(step)
        return summary

    def limit_to(self, step: int, *, passed: bool = True) -> bool:
        """Limit the view to `step`; return whether it exists.

        For another run than the one that is evaluated. `passed` says whether that run has settled the
        step, by a later one or its end. If so, a missing step was skipped (`StepUnavailable`); if not, it
        may still come (`StepNotYetAvailable`).
        """
        self._before_move_to(step)
        self._lazy.limit_to(step)
        self._lazy.forget()  # it may have come since
        exists = self._lazy.summary(step) is not None
        if not exists and not passed:
            newest = self._lazy.newest()
            step = -1 if newest is None else newest.step
        self._historic.settle_through(step)
        return exists

    def written_by(self, step: int, workers: Iterable[str]) -> Workers:
        """Return what these workers wrote at a step, which need not exist in this view."""
        return self._files.of(step, workers)

    def reading_ahead(self, step: int, workers: Iterable[str], most_bytes: int) -> Callable[[], None]:
        """Return a function that fetches a later step, for a thread.

        It fetches the index files, and the event files of those workers of which values were read last: a
        rule reads much the same at each step. A file that cannot be read is a problem when it is needed.
        """
        read_before = self._reader.of_last_step()

        def fetch() -> None:
            with suppress(SMDebugError):
                written = self._files.of(step, workers)
                chosen = [saved for worker, saved in written.items() if read_before(worker)]
                self._reader.fetch(chosen, most_bytes)

        return fetch

    def layout(self, digest: str) -> StepLayout:
        """Return the layout with that digest, to be recorded."""
        return self._lazy.layouts[digest].record

    def forget_before(self, step: int) -> None:
        """Drop what was read of the index files of earlier steps."""
        self._files.forget_before(step)

    def _before_move_to(self, step: int) -> None:
        if step < self.as_of:
            self._tensors.clear()  # some of them may not have been saved yet

    def _report_damaged(self, key: str, error: SMDebugError) -> None:
        report_damaged(Damaged(key, error), self.path, self.damaged_files, self.logger)

    # Where a trial that lists would wait or list

    def maybe_refresh(self, name: str | None = None) -> None:
        """Do nothing: the past does not change."""

    def _wait_for_step(self, step: int, mode: ModeKeys) -> None:
        match self.has_passed_step(step, mode):
            case StepState.NOT_YET_AVAILABLE:
                raise StepNotYetAvailable(step, mode)
            case StepState.UNAVAILABLE:
                raise StepUnavailable(step, mode)

    @property
    def index_reader(self) -> Any:
        raise SMDebugNotImplementedError(
            "A view of a run as of a step has no index_reader, which lists all its steps. Use "
            "trial.tensor(name) for values, shapes and steps."
        )

    def __reduce__(self) -> Any:
        raise SMDebugTypeError(
            "A view of a run as of a step cannot be copied or pickled: open the run with create_trial"
        )

    def __repr__(self) -> str:
        return f"<AsOfTrial {self.name!r} at {self.path}, as of step {self.as_of}>"
