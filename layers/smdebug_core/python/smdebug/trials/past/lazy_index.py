"""The steps of a run up to one of them, looked up when they are needed.

A history knows which steps exist, the registry of layouts what a step holds, and its index files where its
values are; they are read on demand. So a query about a step costs the same however long the run is. Only
queries about all steps take time for all of them.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from math import floor
from operator import index as as_int
from typing import Any

from smdebug.mode_keys import ModeKeys
from smdebug.trials.past.history import History, StepSummary
from smdebug.trials.past.index_files import IndexFiles
from smdebug.trials.past.layouts import KnownLayout, Layouts
from smdebug.trials.past.remembered_history import RememberedHistory
from smdebug.trials.stored.worker_steps import Workers, Written, original_name_in, written_by

GLOBAL = ModeKeys.GLOBAL
_NEAR = 64


class LazyIndex:
    """`KnownSteps` of a run as of the step `through`, over a history."""

    def __init__(self, history: History, files: IndexFiles, num_workers: int):
        #: The last step that exists, for now.
        self.through = -1
        #: What was written at the current step; other steps are read on demand.
        self.at: Mapping[int, Workers] = {}
        self.num_workers = num_workers
        self.layouts = Layouts(history.layouts)
        self._history = RememberedHistory(history)
        self._files = files
        self._read: dict[int, StepSummary] = {}
        self._lock = threading.RLock()

    # Moving

    def move_to(self, step: int, workers: Iterable[str]) -> StepSummary:
        """Read the index files of a step, and make it the last one."""
        with self._lock:
            self.limit_to(step)
            written = self._files.of(step, workers)
            summary = self._summary_of(step, written)
            self._history.add(summary)
            self.at = {step: written} if written else {}
        return summary

    def limit_to(self, step: int) -> None:
        """Hide all steps after this one."""
        with self._lock:
            self.through = step
            self.at = {}
            self._history.forget_misses()
            self._files.forget_gaps()
            self.layouts.may_have_grown()

    def forget(self) -> None:
        """Forget the results of the history."""
        with self._lock:
            self._history.forget()
            self.layouts.may_have_grown()
            self.layouts.fetch_again()

    def newest(self) -> StepSummary | None:
        """Return the last step that exists."""
        return next(self._back(GLOBAL), None)

    # Which steps

    def summary(self, step: Any) -> StepSummary | None:
        """Return a global step; None if it does not exist, or not yet."""
        number = _as_step(step)
        if number is None or not 0 <= number <= self.through:
            return None
        with self._lock:
            return self._known(self._history.at(number))

    def newest_in(self, mode: ModeKeys, step: float) -> StepSummary | None:
        """Return the newest step of a mode whose number in it is at most `step`."""
        if mode is GLOBAL:
            return next(self._back(mode, floor(min(step, self.through)) + 1), None)
        high = 0
        for count, summary in enumerate(self._back(mode)):
            if summary.mode_step <= step:
                return summary
            high = summary.step
            if count == _NEAR:
                break
        # The numbers of a mode rise with the global ones: bisect.
        low, best = 0, None
        while low < high:
            middle = (low + high) // 2
            found = next(self._back(mode, middle + 1), None)
            if found is None or found.mode_step <= step:
                low, best = middle + 1, found or best
            else:
                high = found.step
        return best

    def steps(self, mode: ModeKeys) -> Sequence[int]:
        return [step for step, _ in self.numbered(mode)]

    def numbered(self, mode: ModeKeys) -> list[tuple[int, int]]:
        return [(step, summary.step) for step, summary in self._all(mode)]

    def modes(self) -> dict[ModeKeys, None]:
        modes = (layout.mode for layout in self.layouts.through(self.through))
        return {mode: None for mode in modes if mode is not GLOBAL}

    def mode_of(self, step: int) -> tuple[ModeKeys, int] | None:
        summary = self.summary(step)
        return summary and (summary.mode, summary.mode_step)

    def global_step(self, step: int, mode: ModeKeys) -> int | None:
        summary = self._step_of(step, mode)
        return summary and summary.step

    @property
    def workers(self) -> frozenset[str]:
        found: set[str] = set()
        for summary in self._back(GLOBAL):
            found.update(summary.workers)
            if len(found) >= self.num_workers:
                break
        return frozenset(found)

    @property
    def workers_by_step(self) -> Mapping[int, frozenset[str]]:
        return _WorkersByStep(self)

    # What they hold

    def workers_at(self, step: int, mode: ModeKeys) -> Workers | None:
        summary = self._step_of(step, mode)
        return summary and self._written_at(summary)

    def written(self, name: str, step: int, mode: ModeKeys, worker: str | None = None) -> Written:
        if mode is GLOBAL and type(step) is int and (at := self.at.get(step)) is not None:
            return written_by(at, name, worker)  # the current step, of which rules ask for each worker
        summary = self._step_of(step, mode)
        if summary is None or not self._holds(summary, name):
            return []
        return written_by(self._written_at(summary), name, worker)

    def steps_of(self, name: str, mode: ModeKeys) -> Iterator[tuple[int, int]]:
        return ((step, summary.step) for step, summary in self._all(mode) if self._holds(summary, name))

    def back_from(self, name: str, step: int, mode: ModeKeys) -> Iterator[tuple[int, int]]:
        newest = self.newest_in(mode, step)
        if newest is None:
            return
        last = None
        for summary in chain((newest,), self._back(mode, newest.step)):
            number = summary.step if mode is GLOBAL else summary.mode_step
            if number != last and self._holds(summary, name):
                yield number, summary.step
            last = number

    def first_seen(self, name: str, mode: ModeKeys) -> int | None:
        return next((layout.first_step for layout in self._layouts_with(name, mode)), None)

    def tensor_names(self, mode: ModeKeys = GLOBAL) -> tuple[str, ...]:
        return self.layouts.names(self.through, mode)

    def tensor_names_at(self, step: int, mode: ModeKeys) -> Sequence[str]:
        summary = self._step_of(step, mode)
        return self.layouts[summary.layout].names if summary else ()

    def has_tensor(self, name: str) -> bool:
        return any(True for _ in self._layouts_with(name, GLOBAL))

    def original_name(self, name: str) -> str | None:
        # All steps of a layout have the shapes of the same tensors.
        for layout in self._layouts_with(name, GLOBAL):
            summary = self.summary(layout.first_step)
            found = summary and original_name_in(self._written_at(summary), name)
            if found is not None:
                return found
        return None

    # Steps, read where the history does not know enough

    def _step_of(self, step: Any, mode: ModeKeys) -> StepSummary | None:
        if mode is GLOBAL:
            return self.summary(step)
        number = _as_step(step)
        newest = None if number is None else self.newest_in(mode, number)
        return newest if newest is not None and newest.mode_step == number else None

    def _back(self, mode: ModeKeys, below: int | None = None) -> Iterator[StepSummary]:
        """Yield the steps of a mode, newest first."""
        below = self.through + 1 if below is None else min(below, self.through + 1)
        steps = self._history.before(below, None if mode is GLOBAL else mode)
        while True:
            with self._lock:
                summary = next(steps, None)
                known = self._known(summary)
            if summary is None:
                return
            if known is not None and mode in (GLOBAL, known.mode):
                yield known

    def _all(self, mode: ModeKeys) -> list[tuple[int, StepSummary]]:
        """Return all steps of a mode, in order. The later one counts where two have the same number."""
        numbered: dict[int, StepSummary] = {}
        for summary in self._back(mode):
            numbered.setdefault(summary.step if mode is GLOBAL else summary.mode_step, summary)
        return sorted(numbered.items())

    def _known(self, summary: StepSummary | None) -> StepSummary | None:
        """Return a step with its mode and layout, from its index files if they were not read yet."""
        if summary is None or not summary.workers:
            return None
        if summary.layout not in self.layouts:
            read = self._read.get(summary.step)
            if read is None:
                if len(self._read) >= RememberedHistory.KEPT:
                    self._read.clear()
                written = self._files.of(summary.step, summary.workers)
                read = self._read[summary.step] = self._summary_of(summary.step, written)
            summary = read
        return summary if summary.workers else None

    def _summary_of(self, step: int, written: Workers) -> StepSummary:
        if not written:
            return StepSummary(step, GLOBAL, step, ())
        first = next(iter(written.values()))
        digest = self.layouts.add(step, first.mode, written)
        return StepSummary(step, first.mode, first.mode_step, tuple(written), digest)

    def _written_at(self, summary: StepSummary) -> Workers:
        return self.at.get(summary.step) or self._files.of(summary.step, summary.workers)

    def _holds(self, summary: StepSummary, name: str) -> bool:
        return name in self.layouts[summary.layout].named

    def _layouts_with(self, name: str, mode: ModeKeys) -> Iterator[KnownLayout]:
        for layout in self.layouts.through(self.through):
            if name in layout.named and mode in (GLOBAL, layout.mode):
                yield layout


class _WorkersByStep(Mapping[int, frozenset[str]]):
    """The workers of each step, looked up on demand."""

    def __init__(self, index: LazyIndex):
        self._index = index

    def __getitem__(self, step: int) -> frozenset[str]:
        summary = self._index.summary(step)
        if summary is None:
            raise KeyError(step)
        return frozenset(summary.workers)

    def __iter__(self) -> Iterator[int]:
        return iter(self._index.steps(GLOBAL))

    def __len__(self) -> int:
        return len(self._index.steps(GLOBAL))


def _as_step(step: Any) -> int | None:
    """Return the step as an integer; None for anything that is not a step."""
    try:
        return as_int(step)
    except TypeError:
        return int(step) if isinstance(step, float) and step.is_integer() else None
