"""The steps of a run before the one that is evaluated: page by page, backwards, from the step index."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from functions.step_index import StepIndex
from smdebug.mode_keys import ModeKeys
from smdebug.service.records import Layout, RunRecord, StepRecord
from smdebug.storage import Storage
from smdebug.trials.history import StepSummary
from smdebug.trials.listed_history import ListedHistory

_PAGE = 50
_LAST_STEP = 10**12 - 1


class IndexedHistory:
    """A `History` (see `smdebug.trials.history`) over the step index.

    A resumed training overwrites the steps from its checkpoint on: steps of an earlier attempt count up
    to the first step of the later one, as for trials (`smdebug.trials.attempts`). Steps
    that have expired in the index are listed.
    """

    def __init__(self, index: StepIndex, record: RunRecord, storage: Storage):
        self._index = index
        self._record = record
        self._listed = ListedHistory(storage, _LAST_STEP)
        self._run = record.run
        self._training_run = record.training_run
        self._starts = record.attempt_starts
        self._layouts: dict[str, Layout] = {}
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

    def layouts(self) -> Mapping[str, Layout]:
        if not self._looked_up:
            self._layouts.update(self._index.layouts(self._run))
            self._looked_up = True
        return self._layouts

    def add_layout(self, layout: Layout) -> None:
        """Record a layout that was not seen before."""
        if layout.digest not in self.layouts():
            self._index.put_layout(self._run, layout)
            self._layouts[layout.digest] = layout

    def _newest_first(self, below: int, page: int) -> Iterator[StepSummary]:
        for training_run in range(self._training_run, -1, -1):
            # The current attempt has saved a step: the one that is evaluated.
            has_saved = training_run == self._training_run
            last = below - 1
            while last >= 0:
                found = self._index.steps(
                    self._run, training_run, last=last, limit=page, newest_first=True
                )
                if not found:
                    break
                for record in found:
                    has_saved, below = True, min(below, record.step)
                    if record.with_index:
                        yield summary_of(record)
                last = found[-1].step - 1
                page = _PAGE
            if has_saved:
                below = min(below, self._starts.get(str(training_run), below))
        if below > 0 and self._index.may_lack_steps(self._record):
            yield from self._listed.before(below)


_PAGE_OF_ONE = 1


def summary_of(record: StepRecord) -> StepSummary:
    """Return what the step index knows of a step, in the form that views of runs use."""
    workers = tuple(sorted(record.complete_workers))
    if record.mode is None or record.mode_step is None or record.layout is None:
        return StepSummary.unread(record.step, workers)
    return StepSummary(record.step, ModeKeys[record.mode], record.mode_step, workers, record.layout)
