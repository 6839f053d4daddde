"""The steps of a run before the one that is evaluated: page by page, backwards, from the step index."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from functions.evaluation.shown_listing import ShownListing, attempts_of, may_have_saved
from functions.step_index import StepIndex
from smdebug.files.names import LAST_STEP
from smdebug.mode_keys import ModeKeys
from smdebug.service.records import RunRecord, StepLayout, StepRecord
from smdebug.storage import Storage
from smdebug.trials.past.history import History, StepSummary
from smdebug.trials.past.listed_history import ListedHistory

_PAGE = 50


class IndexedHistory:
    """A `History` (see `smdebug.trials.past.history`) over the step index.

    A resumed training overwrites the steps from its checkpoint on: steps of an earlier attempt count up
    to the first step of the later one, as for trials (`smdebug.trials.stored.attempts`).

    The table deletes expired steps in any order, so from the first step on that is as old, the files are
    listed: those of all attempts, as their index files say who wrote them.
    """

    def __init__(self, index: StepIndex, record: RunRecord, storage: Storage):
        self._index = index
        self._record = record
        self._storage = storage
        self._run = record.run
        self._training_run = record.training_run
        self._starts = record.attempt_starts
        self._layouts: dict[str, StepLayout] = {}
        self._looked_up = False

    def at(self, step: int) -> StepSummary | None:
        newest = next(self._newest_first(step + 1, _PAGE_OF_ONE), None)
        return newest if newest is not None and newest.step == step else None

    def before(self, step: int, mode: ModeKeys | None = None) -> Iterator[StepSummary]:
        for summary in self._newest_first(step, _PAGE):
            if mode in (None, ModeKeys.GLOBAL) or not summary.layout or summary.mode is mode:
                yield summary

    def first(self, mode: ModeKeys | None = None) -> StepSummary | None:
        return None

    def layouts(self) -> Mapping[str, StepLayout]:
        if not self._looked_up:
            self._layouts.update(self._index.layouts(self._run))
            self._looked_up = True
        return self._layouts

    def add_layout(self, layout: StepLayout) -> None:
        """Record a layout that was not seen before."""
        if layout.digest not in self.layouts():
            self._index.put_layout(self._run, layout)
            self._layouts[layout.digest] = layout

    def _newest_first(self, below: int, page: int) -> Iterator[StepSummary]:
        for attempt in range(self._training_run, -1, -1):
            last = below - 1
            while last >= 0:
                found = self._index.steps(self._run, attempt, last=last, limit=page, newest_first=True)
                if not found:
                    break
                for record in found:
                    if self._index.has_expired(record):
                        yield from self._listed.before(below)
                        return
                    below = min(below, record.step)
                    if record.with_index:
                        yield summary_of(record)
                last = found[-1].step - 1
                page = _PAGE
            if self._may_lack_steps_of(attempt):
                yield from self._listed.before(below)
                return
            start = self._starts.get(str(attempt), below)
            if start < below and self._has_saved(attempt):
                below = start

    def _has_saved(self, attempt: int) -> bool:
        # The current attempt has saved a step: the one that is evaluated.
        return attempt == self._training_run or may_have_saved(self._index, self._record, attempt)

    def _may_lack_steps_of(self, attempt: int) -> bool:
        """Whether the attempt's first steps may have expired; when earlier ones began is not known."""
        is_current = attempt == self._training_run
        began = self._record.attempt_noted if is_current and attempt else 0.0
        return self._index.may_lack_steps(self._record, since=began)

    @cached_property
    def _listed(self) -> History:
        attempts = attempts_of(self._index, self._record)
        if attempts is None:
            return ListedHistory(self._storage, LAST_STEP)
        return ShownListing(self._storage, LAST_STEP, attempts)


_PAGE_OF_ONE = 1


def summary_of(record: StepRecord) -> StepSummary:
    """Return what the step index knows of a step, in the form that views of runs use."""
    workers = tuple(sorted(record.complete_workers))
    if record.mode is None or record.mode_step is None or record.layout is None:
        return StepSummary.unread(record.step, workers)
    return StepSummary(record.step, ModeKeys[record.mode], record.mode_step, workers, record.layout)
