"""Opening a run for its page. One that an earlier process has read is compared with what was kept.

That process may have read 100,000 steps: they are listed in slices, while the page shows what was kept.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from smdebug.runs.opening import open_run
from smdebug.trials import Trial
from smdebug.ui.finding.glance import INDEX_FILES
from smdebug.ui.following.kept_runs import Kept

_KEPT_BYTES = 16 << 20
"""How much of the last files and steps is kept in memory, each, for the rules that follow the charts."""


class Opened(NamedTuple):
    """An open run, and how it compares with what was kept."""

    trial: Trial
    is_kept: bool
    """Whether its steps begin with those that were kept."""
    went_on: bool
    """Whether it has more steps than were kept."""


class Opening:
    """Opens one run, in as many calls of `advance` as it takes."""

    def __init__(self, path: str, trial: Trial | None, kept: Kept | None):
        self._path = path
        self._trial = trial
        self._kept = kept
        self.is_under_way = False
        """Whether the steps are being listed."""

    def advance(self) -> Opened | None:
        """Return the run; None while too few of its steps are known."""
        trial = self._trial or open_run(self._path, index_files=INDEX_FILES)
        if self.is_under_way:
            with trial.refreshing(True):
                trial.steps()
        # Requests read no files: the reader does, once for each slice.
        trial.dynamic_refresh = False
        if self._kept is None:
            return self._end(trial, is_kept=False, went_on=False)
        kept, steps = self._kept.steps, trial.steps()
        is_same = list(attempt_of(trial)) == self._kept.attempt
        is_same = is_same and steps[: len(kept)] == kept[: len(steps)]
        if is_same and len(steps) < len(kept):
            if trial.has_more_files:
                self._trial, self.is_under_way = trial, True
                return None
            if self.is_under_way:
                self._trial, self.is_under_way = None, False
                open_run(self._path, index_files=1)  # raises if the run was deleted meanwhile
        is_kept = is_same and len(steps) >= len(kept)
        return self._end(trial, is_kept=is_kept, went_on=len(steps) > len(kept))

    def _end(self, trial: Trial, *, is_kept: bool, went_on: bool) -> Opened:
        self._trial, self._kept, self.is_under_way = None, None, False
        if trial.storage.concurrency == 1:  # reading a bucket twice costs requests
            trial.event_files.limit(_KEPT_BYTES)
            trial.observations.limit(_KEPT_BYTES)
        return Opened(trial, is_kept, went_on)


def attempt_of(trial: Trial) -> tuple[Any, ...]:
    """Return a value that distinguishes the attempts of a training."""
    meta = trial.collection_manager.meta
    return meta.get("run_id"), meta.get("training_run")
