"""The steps of a run that a reader sees: those that no later attempt of the training hides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from smdebug.exceptions import SMDebugValueError
from smdebug.trials.arguments import StepRange
from smdebug.trials.live.hidden_files import HiddenFiles
from smdebug.trials.live.run_index import RunIndex
from smdebug.trials.stored.attempts import AttemptId, Attempts
from smdebug.trials.stored.worker_steps import ArrivedIndex, Workers


class ShownSteps:
    """All index files that were read, and an index of those that are shown.

    While one attempt wrote them all, both are the same object.
    """

    def __init__(self, attempt: int | None = None, within: StepRange | None = None):
        self.all = RunIndex()
        self.index = self.all
        self._attempt = attempt
        self._first, self._end = within or (None, None)
        #: Files of earlier attempts that may be replaced; none if one attempt was asked for.
        self.hidden = HiddenFiles()

    def attempts(self, newest: AttemptId, *, ended: bool = False) -> Attempts:
        """Return the attempts in what was read; `newest` is the one that the collections file names."""
        return Attempts(self.all.at, newest, ended=ended)

    def has(self, attempt: AttemptId) -> bool:
        """Return True if that attempt has saved a step."""
        return any(attempt.key == known.key for known in self.all.attempt_ids)

    def add(self, arrivals: Iterable[ArrivedIndex], newest: AttemptId) -> set[int]:
        """Add what arrived, and return the steps that changed. This may replace the index."""
        before = dict(self.all.attempt_ids)
        changed = self.all.add(arrivals)
        if not changed or (len(self.all.attempt_ids) == 1 and not self._is_cut):
            return changed
        if before != self.all.attempt_ids or not self._are_of(newest, changed):
            self._show(self.attempts(newest).shown(self.all.at, self._attempt))
            if self._attempt is None:
                read = {step: workers for step, workers in self.all.at.items() if self._wants(step)}
                self.hidden.find(read, self.index.at, newest)
        else:
            wanted = {step: self.all.at[step] for step in changed if self._wants(step)}
            self.index.add_read(wanted)
            for step, workers in wanted.items():
                self.hidden.written(step, workers)
        return changed

    def show_only(self, attempt: int, newest: AttemptId, path: str) -> bool:
        """Show the run as that attempt left it; return True if another one followed."""
        attempts = self.attempts(newest)
        numbers = attempts.numbers
        if attempt not in numbers:
            known = "; ".join(map(str, attempts.all())) or "none of them has saved a step"
            raise SMDebugValueError(f"The run at {path} has no attempt {attempt}. It has: {known}")
        self._attempt = attempt
        self._show(attempts.shown(self.all.at, attempt))
        return attempt != numbers[-1]

    def _show(self, at: Mapping[int, Workers]) -> None:
        self.index = RunIndex()
        self.index.add_read({step: at[step] for step in at if self._wants(step)})

    @property
    def _is_cut(self) -> bool:
        return self._first is not None or self._end is not None

    def _wants(self, step: int) -> bool:
        return (self._first or 0) <= step and (self._end is None or step < self._end)

    def _are_of(self, newest: AttemptId, steps: Iterable[int]) -> bool:
        return all(
            written.attempt.key == newest.key for step in steps for written in self.all.at[step].values()
        )
