"""A run that is followed by listing its index folder."""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from smdebug.exceptions import (
    SMDebugError,
    SMDebugTypeError,
    TensorUnavailableForStep,
)
from smdebug.files.names import END_MARKER, EVENTS_FOLDER, file_name_of, index_key, step_file
from smdebug.mode_keys import ModeKeys
from smdebug.storage.base import S3_SCHEME
from smdebug.trials.arguments import StepRange
from smdebug.trials.live.finding_run import read_collections, read_workers, wait_for_run
from smdebug.trials.live.listing import Damaged, IndexListing
from smdebug.trials.live.run_index import RunIndex
from smdebug.trials.live.shown_steps import ShownSteps
from smdebug.trials.live.waiting import EVENT_FILE_PAUSE, Clock, WaitLimits
from smdebug.trials.progress import NOTHING_SETTLED, RunProgress, StepState
from smdebug.trials.stored.attempts import Attempt, AttemptId
from smdebug.trials.stored.missing_steps import Known, MissingSteps, missing_in, without_late
from smdebug.trials.stored.worker_steps import ArrivedIndex, WorkerStep

if TYPE_CHECKING:
    from smdebug.config.collection_manager import CollectionManager
    from smdebug.storage import Storage

GLOBAL = ModeKeys.GLOBAL
_IDLE = 4
"""After how many refreshes without new files to check for another attempt, and again after twice as many."""
_REPLICA_STEPS_LATE = 24
"""By how many of the chief's steps the digests of other workers may be late and still be found."""


class ListedRun:
    """A `RunSource` that lists. One thread at a time may refresh it."""

    def __init__(
        self,
        storage: Storage,
        *,
        path: str,
        wait_seconds: float,
        wait_limits: WaitLimits,
        clock: Clock,
        logger: logging.Logger,
        range_steps: StepRange | None = None,
        attempt: int | None = None,
        on_restart: Callable[[], None] = lambda: None,
    ):
        self._opened = wait_for_run(storage, wait_seconds, clock, logger)
        self.clock = clock
        self._storage = storage
        self._path = path
        self._limits = wait_limits
        self._logger = logger
        self._range = range_steps
        self._attempt = attempt
        self._on_restart = on_restart
        self._idle = 0
        self._begin()
        self._open()
        self._select()

    def _begin(self) -> None:
        """Forget everything about the run except its collections."""
        self.collections: CollectionManager = self._opened.collections
        self.announced_workers = self._opened.workers
        # Which steps of earlier attempts are hidden depends on later steps, and on earlier ones.
        is_first = self._newest.training_run == 0
        self._listing = IndexListing(self._storage, self._range if is_first else None)
        self._shown = ShownSteps(within=None if is_first else self._range)
        self.progress = self._new_progress()
        self.damaged_files: dict[str, SMDebugError] = {}
        #: The key after which the next listing begins.
        self._listed_through: str | None = None
        self._counted = NOTHING_SETTLED
        self._read_behind_token: set[str] = set()

    @property
    def index(self) -> RunIndex:
        """The shown steps: those that were read, without those that a later attempt hides."""
        return self._shown.index

    @property
    def has_more(self) -> bool:
        """Whether `WaitLimits.index_files` kept the last refresh from reading all files."""
        return self._listing.has_more

    # Attempts

    def attempts(self) -> tuple[Attempt, ...]:
        ended = self._storage.exists(END_MARKER)
        return self._shown.attempts(self._newest, ended=ended).all()

    def missing_steps(self, refresh: Callable[[], object]) -> MissingSteps:
        workers = read_workers(self._storage)  # first: what they name is in a later listing
        refresh()
        first, end = self._range or (None, None)
        missing = missing_in(
            self._shown.all.at,
            self._shown.attempts(self._newest).borders(self._attempt),
            Known(
                workers={} if self.has_more else workers,  # else not all is read that they name
                newest=self._newest,
                ended=self.progress.ended and self._attempt is None,
                unreadable=frozenset(filter(None, map(step_file, self.damaged_files))),
                first=first or 0,
                end=end,
                may_expire=self._storage.location.startswith(S3_SCHEME),
            ),
        )
        return without_late(missing, self._storage.exists)

    def _select(self) -> None:
        """Show the requested attempt, if one was requested."""
        if self._attempt is None:
            return
        was_followed = self._shown.show_only(self._attempt, self._newest, self._path)
        self._show_anew()
        if was_followed:
            self._finish()  # it can get no more steps

    @property
    def _newest(self) -> AttemptId:
        return AttemptId.named_in(self.collections.meta)

    def _new_progress(self) -> RunProgress:
        return RunProgress(
            num_workers=self._opened.num_workers,
            chief=self._opened.chief,
            workers_by_step=self.index.workers_by_step,
            wait_window=self._limits.incomplete_steps,
        )

    def _show_anew(self) -> None:
        ended = self.progress.ended
        self.progress = self._new_progress().with_news(self.index.workers_by_step)
        if ended:
            self.progress = self.progress.at_the_end()

    def _read_again(self) -> None:
        """Read everything again, because a later attempt may have replaced what was read."""
        self._begin()
        self._read_news()
        self._select()
        self._on_restart()

    def _was_started_again(self) -> bool:
        """Return True if a later attempt exists of which no step was read."""
        newest = self._newest
        self._refresh_collections()
        if self._newest.key != newest.key:
            self._logger.warning(f"The training at {self._path} was started again: its steps are read again")
        return bool(self._shown.all.at) and not self._shown.has(self._newest)

    # Following

    def refresh(self) -> None:
        known = self._shown.all.layouts()
        is_news = self._read_news()
        if self._shown.all.layouts() > known > 0:
            self._refresh_collections()  # new names: the hook may have written collections again
        if is_news:
            self._idle = 0
            return
        self._idle += 1
        # A training that is started again writes below the steps that are listed.
        if self._idle >= _IDLE and self._idle.bit_count() == 1:
            self._look_everywhere()

    def _look_everywhere(self) -> None:
        """Check for another attempt, and all files that the newest one may have replaced."""
        if self._was_started_again():
            self._read_again()
        elif self._shown.hidden:
            self._read_news(everywhere=True)

    def _read_news(self, *, everywhere: bool = False) -> bool:
        shown, attempts = self._shown.index, len(self._shown.all.attempt_ids)
        changed = self._shown.add(self._arrivals(), self._newest)
        while replaced := self._replaced(everywhere=everywhere):
            changed |= self._shown.add(replaced, self._newest)
        if not changed:
            return False
        if 0 < attempts < len(self._shown.all.attempt_ids):
            self._refresh_collections()
            self._read_again()
            return True
        if self._shown.index is not shown:
            self._show_anew()
        else:
            self.progress = self.progress.with_news(changed)
        self._move_token()
        return True

    def count_settled(self) -> None:
        self._counted = self.progress.counted_after(self._counted)

    @property
    def last_complete_step(self) -> int:
        return self.progress.settled_through if self.progress.ended else self._counted

    @property
    def last_index_token(self) -> str | None:
        step = self.last_complete_step
        return None if step < 0 else index_key(step, self._last_worker())

    def follow(self) -> None:
        # The marker first: its writer had finished its steps before, so they are all in the listing.
        ended = self._storage.exists(END_MARKER)
        self.refresh()
        if ended and not self.has_more:
            self._finish_after_delay()

    def _open(self) -> None:
        ended = self._storage.exists(END_MARKER)
        self.refresh()
        if self.has_more or not ended:
            return
        if not self.progress.open_steps:
            self._finish()
        else:
            self._finish_after_delay()

    def _finish_after_delay(self) -> None:
        """Refresh once more: one worker wrote the marker, and others may be a moment behind it."""
        self.clock.sleep(self._limits.end_seconds)
        self.refresh()
        self._look_everywhere()
        self._finish()

    def _finish(self) -> None:
        self.progress = self.progress.at_the_end()
        self._move_token()
        if not self.index.at and self._range is None and self._has_events():
            self._logger.warning(
                f"The run at {self._path} has event files but no index files, so none of its steps can "
                "be read. If it was copied, copy its index folder too."
            )

    def _has_events(self) -> bool:
        return next(iter(self._storage.list(EVENTS_FOLDER)), None) is not None

    def _arrivals(self) -> Iterator[ArrivedIndex]:
        most = self._limits.index_files
        for item in self._listing.news(self._listed_through, self._read_behind_token, most):
            if isinstance(item, Damaged):
                report_damaged(item, self._path, self.damaged_files, self._logger)
            else:
                self._read_behind_token.add(item.key)
                self.damaged_files.pop(item.key, None)
                yield item

    def _replaced(self, *, everywhere: bool) -> list[ArrivedIndex]:
        """Return files of earlier attempts that the newest one has written again since they were read."""
        candidates = self._shown.hidden.worth_a_look(self.progress.num_workers, everywhere=everywhere)
        known = self._shown.all.at
        return [
            arrival
            for arrival in self._listing.read([index_key(*candidate) for candidate in candidates])
            if AttemptId.named_in(arrival.file.meta.extras) != known[arrival.step][arrival.worker].attempt
        ]

    def _move_token(self) -> None:
        settled = self.progress.settled_through
        if settled < 0:
            return
        if self.progress.chief is not None:
            settled = self._late_replicas_may_follow(settled)
            if settled < 0:
                return
        self._listed_through = token = index_key(settled, self._last_worker())
        if self._read_behind_token:
            self._read_behind_token = {key for key in self._read_behind_token if key > token}

    def _last_worker(self) -> str:
        return max(self.index.workers.union(self.announced_workers), key=file_name_of)

    def _late_replicas_may_follow(self, settled: int) -> int:
        """Return the step up to which files are not listed again: digests may come after the chief's step."""
        steps = self.index.steps(GLOBAL)
        at = bisect_right(steps, settled) - _REPLICA_STEPS_LATE
        return steps[at] if at >= 0 else -1

    def _refresh_collections(self) -> None:
        opened = read_collections(self._storage)
        if opened is not None:
            self._opened = opened
            self.collections = opened.collections
            self.announced_workers = opened.workers
            self.progress = self.progress.with_num_workers(opened.num_workers)

    # Steps and files that may be missing

    def state_in_mode(self, step: int, mode: ModeKeys) -> StepState:
        try:
            if step < 0:
                return StepState.UNAVAILABLE
            if mode is GLOBAL:
                return self.progress.state_of(step)
            global_steps = self.index.global_steps.get(mode, {})
            return self.progress.state_in_mode(step, self.index.steps(mode), global_steps)
        except TypeError as error:
            raise SMDebugTypeError(f"A step is a whole number, not {step!r}") from error

    def await_event_file(self, written: WorkerStep, file: str, name: str) -> None:
        # The index file is written last, so the event file is there, except while a run is being copied
        # file by file.
        for attempt in range(self._limits.event_file_attempts):
            if self._storage.exists(file):
                return
            if self.progress.ended or self._was_skipped(written, file):
                break
            if attempt == 0:
                self._logger.warning(f"Waiting for {file} of {self._path}, which its index file names")
            self.clock.sleep(EVENT_FILE_PAUSE)
        raise TensorUnavailableForStep(name, written.mode_step, written.mode)

    def _was_skipped(self, written: WorkerStep, file: str) -> bool:
        """Return True if the run has ended, or the worker has written a later event file."""
        if self._storage.exists(END_MARKER):
            return True
        later = map(step_file, self._storage.list(EVENTS_FOLDER, file))
        return any(other.worker == written.worker and other.step > written.step for other in later if other)


def report_damaged(
    damaged: Damaged, path: str, known: dict[str, SMDebugError], logger: logging.Logger
) -> None:
    """Log a damaged index file the first time, and add it to the known ones."""
    if damaged.key not in known:
        logger.error(
            f"Skipped a damaged index file of {path}; other steps and workers can be read. {damaged.error}"
        )
    known[damaged.key] = damaged.error
