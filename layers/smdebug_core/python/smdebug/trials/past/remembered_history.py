"""A history whose results are remembered, so that walking back again needs no queries."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping

from smdebug.mode_keys import ModeKeys
from smdebug.service.records import StepLayout
from smdebug.trials.past.history import History, StepSummary, is_of


class RememberedHistory:
    """A history whose results are remembered, with added steps that it does not have yet.

    The order of steps is kept as a chain. So walking back a second time needs no queries, and a walk that
    continues an earlier one continues its page. Threads may share it.
    """

    KEPT = 50_000

    def __init__(self, history: History):
        self._history = history
        self._at: dict[int, StepSummary | None] = {}
        self._missed: list[int] = []
        self._previous: dict[tuple[ModeKeys | None, int], StepSummary | None] = {}
        self._asked_up_to = -1
        self._walks: dict[ModeKeys | None, _Walk] = {}
        self._workers: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._added: dict[int, StepSummary] = {}
        self._added_numbers: list[int] = []

    def add(self, summary: StepSummary) -> None:
        """Add a step that exists, whether or not the history has it by now."""
        step = summary.step
        if step not in self._added:
            if step <= self._asked_up_to:  # an earlier result contradicts this
                self.forget()
            self._added_numbers.insert(bisect_left(self._added_numbers, step), step)
            if len(self._added) >= self.KEPT:
                del self._added[self._added_numbers.pop(0)]
        self._added[step] = summary._replace(workers=self._shared(summary.workers))

    def forget(self) -> None:
        """Forget all results. Added steps stay."""
        self._at.clear()
        self._missed.clear()
        self._previous.clear()
        self._walks.clear()
        self._workers.clear()
        self._asked_up_to = -1

    def forget_misses(self) -> None:
        """Forget which steps were missing."""
        for step in self._missed:
            self._at.pop(step, None)
        self._missed.clear()

    def at(self, step: int) -> StepSummary | None:
        added = self._added.get(step)
        if added is not None:
            return added
        if step not in self._at and self._note(step, self._history.at(step)) is None:
            self._missed.append(step)
        return self._at.get(step)

    def before(self, step: int, mode: ModeKeys | None = None) -> Iterator[StepSummary]:
        """Yield steps as `History` does. One thread at a time may take the next."""
        while (previous := self._step_before(step, mode)) is not None:
            yield previous
            step = previous.step

    def layouts(self) -> Mapping[str, StepLayout]:
        return self._history.layouts()

    def _step_before(self, step: int, mode: ModeKeys | None) -> StepSummary | None:
        key = (mode, step)
        if key in self._previous:
            return self._previous[key]
        if len(self._previous) >= self.KEPT:
            self._previous.clear()
        found = self._previous[key] = self._found_before(step, mode)
        self._asked_up_to = max(self._asked_up_to, step - 1)
        return found

    def _found_before(self, step: int, mode: ModeKeys | None) -> StepSummary | None:
        added = self._added_before(step, mode)
        if added is not None and added.step == step - 1:  # nothing can be between them
            return added
        walk = self._walks.get(mode)
        if walk is None or walk.at != step:
            walk = self._walks[mode] = _Walk(self._history.before(step, mode))
        ahead = walk.ahead()
        if ahead is None or (added is not None and added.step > ahead.step):
            found = added
        else:
            found = self._added.get(ahead.step) or self._note(ahead.step, ahead)
            walk.advance()
        walk.at = None if found is None else found.step
        return found

    def _added_before(self, step: int, mode: ModeKeys | None) -> StepSummary | None:
        for at in range(bisect_left(self._added_numbers, step) - 1, -1, -1):
            summary = self._added[self._added_numbers[at]]
            if is_of(summary, mode):
                return summary
        return None

    def _note(self, step: int, summary: StepSummary | None) -> StepSummary | None:
        if summary is not None:
            summary = summary._replace(workers=self._shared(summary.workers))
        if len(self._at) >= self.KEPT:
            self._at.clear()
        self._at[step] = summary
        self._asked_up_to = max(self._asked_up_to, step)
        return summary

    def _shared(self, workers: tuple[str, ...]) -> tuple[str, ...]:
        if len(self._workers) > 1000:
            self._workers.clear()
        return self._workers.setdefault(workers, workers)


class _Walk:
    """A walk back through a history: where it is, and the next step if that was fetched already."""

    def __init__(self, steps: Iterator[StepSummary]):
        self._steps = steps
        self._ahead: list[StepSummary | None] = []
        self.at: int | None = None

    def ahead(self) -> StepSummary | None:
        if not self._ahead:
            self._ahead.append(next(self._steps, None))
        return self._ahead[0]

    def advance(self) -> None:
        self._ahead.clear()
