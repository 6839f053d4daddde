"""A listing of a run without the files that a later attempt of its training hides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from functions.step_index import StepIndex
from smdebug.exceptions import SMDebugError
from smdebug.mode_keys import ModeKeys
from smdebug.service.records import RunRecord, StepLayout
from smdebug.storage import Storage
from smdebug.trials.past.history import StepSummary
from smdebug.trials.past.index_files import IndexFiles
from smdebug.trials.past.listed_history import ListedHistory
from smdebug.trials.stored.attempts import AttemptId


def attempts_of(index: StepIndex, record: RunRecord) -> dict[str, Any] | None:
    """Return what has to be known of a run's attempts, as plain data; None if there is only one."""
    if not record.training_run:
        return None
    last = str(record.training_run)
    starts = {
        attempt: start
        for attempt, start in record.attempt_starts.items()
        if attempt == last or may_have_saved(index, record, int(attempt))
    }
    first = next(iter(index.steps(record.run, record.training_run, limit=1)), None)
    if first is not None:  # its files may not say where it resumed
        starts[last] = min(first.step, starts.get(last, first.step))
    return {"run_id": record.run_id, "base": record.training_base, "starts": starts}


def may_have_saved(index: StepIndex, record: RunRecord, attempt: int) -> bool:
    """Whether an attempt has saved a step: otherwise it hides nothing.

    Of a run that is older than its steps are kept, this is not known of attempts without any: they count as
    having saved.
    """
    return bool(index.steps(record.run, attempt, limit=1)) or index.may_lack_steps(record)


class ShownListing:
    """A `ListedHistory` without hidden files.

    A listing does not name attempts. From the first step on that a later attempt may have hidden, the index
    files of a step say who wrote them; below it nothing is read.
    """

    def __init__(self, storage: Storage, through_step: int, attempts: Mapping[str, Any]):
        self._listed = ListedHistory(storage, through_step)
        self._files = IndexFiles(storage, _ignored)
        self._run_id: str | None = attempts["run_id"]
        self._base: int = attempts["base"]
        self._starts = {int(attempt): start for attempt, start in attempts["starts"].items()}
        self._lowest = min(self._starts.values(), default=through_step + 1)

    def at(self, step: int) -> StepSummary | None:
        summary = self._listed.at(step)
        return None if summary is None else self._shown(summary)

    def before(self, step: int, mode: ModeKeys | None = None) -> Iterator[StepSummary]:
        yield from filter(None, map(self._shown, self._listed.before(step, mode)))

    def first(self, mode: ModeKeys | None = None) -> StepSummary | None:
        summary = self._listed.first(mode)
        return None if summary is None else self._shown(summary)

    def layouts(self) -> Mapping[str, StepLayout]:
        return self._listed.layouts()

    def _shown(self, summary: StepSummary) -> StepSummary | None:
        if summary.step < self._lowest:
            return summary
        written = self._files.of(summary.step, summary.workers)
        workers = [name for name, of in written.items() if not self._hides(of.attempt, summary.step)]
        return StepSummary.unread(summary.step, workers) if workers else None

    def _hides(self, attempt: AttemptId, step: int) -> bool:
        is_of_this_training = attempt.run_id is None or attempt.run_id == self._run_id
        number = self._base + attempt.training_run if is_of_this_training else self._base - 1
        return any(later > number and start <= step for later, start in self._starts.items())


def _ignored(key: str, error: SMDebugError) -> None:
    """A damaged file is reported when the step is read, if it is."""
