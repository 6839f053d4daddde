"""The content of all index files of a run so far, for trials that list them."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter

from smdebug.mode_keys import ModeKeys
from smdebug.trials.stored.attempts import AttemptId
from smdebug.trials.stored.worker_steps import (
    ArrivedIndex,
    IndexLayout,
    Sharing,
    Workers,
    WorkerStep,
    Written,
    lists_something,
    original_name_in,
    written_by,
)

GLOBAL = ModeKeys.GLOBAL


class RunIndex:
    """`KnownSteps` from index files, growing as they arrive.

    One thread adds and any number read: what a reader receives is never changed afterwards.
    """

    def __init__(self) -> None:
        #: What each worker wrote at each global step, the workers in order of their names.
        self.at: dict[int, Workers] = {}
        self.workers_by_step: dict[int, frozenset[str]] = {}
        self.workers: frozenset[str] = frozenset()
        #: The attempts that wrote any of it.
        self.attempt_ids: dict[AttemptId, None] = {}
        #: Global steps by mode and mode step. The later one counts where two share a mode step.
        self.global_steps: dict[ModeKeys, dict[int, int]] = {GLOBAL: {}}
        self._steps: dict[ModeKeys, list[int]] = {GLOBAL: []}
        self._sharing = Sharing()
        self._layouts_by_mode: dict[ModeKeys, dict[IndexLayout, None]] = {GLOBAL: {}}
        self._names: dict[ModeKeys, tuple[int, tuple[str, ...]]] = {}

    def steps(self, mode: ModeKeys) -> Sequence[int]:
        """Return the known steps of a mode, in order. Do not modify."""
        return self._steps.get(mode, ())

    def modes(self) -> dict[ModeKeys, None]:
        """Return the modes seen, except GLOBAL, in the order of their first steps."""
        return {mode: None for mode in list(self._steps) if mode is not GLOBAL}

    def numbered(self, mode: ModeKeys) -> Iterable[tuple[int, int]]:
        """Return the known steps of a mode, in order, each with its global number."""
        of = self.global_steps.get(mode, {})
        return [(step, of[step]) for step in list(self.steps(mode))]

    def global_step(self, step: int, mode: ModeKeys) -> int | None:
        """Return the global number of a step; None if the step is not known."""
        return self.global_steps.get(mode, {}).get(step)

    def workers_at(self, step: int, mode: ModeKeys) -> Workers | None:
        """Return what was written at a step, by worker; None if the step is not known."""
        if mode is GLOBAL:
            return self.at.get(step)
        steps = self.global_steps.get(mode)
        return None if steps is None else self.at.get(steps.get(step, -1))

    def mode_of(self, step: int) -> tuple[ModeKeys, int] | None:
        """Return the mode of a global step and its number within that mode."""
        workers = self.at.get(step)
        if workers is None:
            return None
        first = next(iter(workers.values()))
        return first.mode, first.mode_step

    def written(self, name: str, step: int, mode: ModeKeys, worker: str | None = None) -> Written:
        """Return the workers that wrote a tensor at a step, in order; of a given `worker`, only that one."""
        return written_by(self.workers_at(step, mode) or {}, name, worker)

    def steps_of(self, name: str, mode: ModeKeys) -> Iterator[tuple[int, int]]:
        """Yield the steps at which a tensor was written, in order, each with its global number."""
        return self._where_written(name, mode, list(self.steps(mode)))

    def back_from(self, name: str, step: int, mode: ModeKeys) -> Iterator[tuple[int, int]]:
        """Yield the same steps backwards, from `step` on."""
        steps = self.steps(mode)
        return self._where_written(name, mode, steps[: bisect_right(steps, step)][::-1])

    def first_seen(self, name: str, mode: ModeKeys) -> int | None:
        """Return the global step at which a tensor was first written in a mode."""
        for step in list(self._steps[GLOBAL]):
            for written in self.at[step].values():
                if name in written.places and mode in (GLOBAL, written.mode):
                    return step
        return None

    def original_name(self, name: str) -> str | None:
        """Return the framework's name of a tensor, from its first shape record."""
        return next(filter(None, (original_name_in(at, name) for at in list(self.at.values()))), None)

    def _where_written(self, name: str, mode: ModeKeys, steps: Sequence[int]) -> Iterator[tuple[int, int]]:
        global_steps, at = self.global_steps.get(mode, {}), self.at
        for step in steps:
            global_step = global_steps[step]
            for written in at[global_step].values():
                if name in written.places:
                    yield step, global_step
                    break

    def tensor_names(self, mode: ModeKeys = GLOBAL) -> tuple[str, ...]:
        """Return the names of all tensors seen in a mode, sorted; of all modes for GLOBAL."""
        layouts = self._layouts_by_mode.get(mode, {})
        known, names = self._names.get(mode, (0, ()))
        if known != len(layouts):
            known = len(layouts)
            names = tuple(sorted({name for layout in list(layouts) for name in layout.of_tensor}))
            self._names[mode] = (known, names)
        return names

    def tensor_names_at(self, step: int, mode: ModeKeys) -> Sequence[str]:
        """Return the names of the tensors of a step, sorted. Do not modify."""
        layouts = {written.layout for written in (self.workers_at(step, mode) or {}).values()}
        if len(layouts) == 1:
            return layouts.pop().tensor_names
        return sorted({name for layout in layouts for name in layout.tensor_names})

    def has_tensor(self, name: str) -> bool:
        # `any` takes twice the time.
        for layout in list(self._layouts_by_mode[GLOBAL]):  # noqa: SIM110
            if name in layout.of_tensor:
                return True
        return False

    def layouts(self) -> int:
        """Return the number of different sets of tensors; new names may exist when it grows."""
        return len(self._sharing)

    def add(self, arrivals: Iterable[ArrivedIndex]) -> set[int]:
        """Add what arrived, and return the steps that changed.

        A file without entries is skipped: its worker does not count as present.
        """
        news: set[int] = set()
        with_entries = (arrival for arrival in arrivals if lists_something(arrival.file))
        worker_step = self._sharing.worker_step
        for step, of_step in groupby(with_entries, attrgetter("step")):
            self._add_to(step, {arrival.worker: worker_step(arrival) for arrival in of_step})
            news.add(step)
        return news

    def add_read(self, at: Mapping[int, Workers]) -> None:
        """Add steps that another index has read."""
        for step, workers in at.items():
            self._add_to(step, dict(workers))

    def _add_to(self, step: int, written: dict[str, WorkerStep]) -> None:
        workers: Workers = {**self.at.get(step, {}), **written}
        if len(workers) > 1:
            workers = dict(sorted(workers.items()))
        is_new = step not in self.at
        self.at[step] = workers
        names = self._sharing.share(frozenset(workers))
        self.workers_by_step[step] = names
        if not names <= self.workers:
            self.workers |= names
        if is_new:
            self.global_steps[GLOBAL][step] = step
            _insert(self._steps[GLOBAL], step)
        for by_worker in written.values():
            self.attempt_ids[by_worker.attempt] = None
            self._layouts_by_mode[GLOBAL][by_worker.layout] = None
            if by_worker.mode is not GLOBAL:
                self._add_mode_step(by_worker)

    def _add_mode_step(self, written: WorkerStep) -> None:
        steps = self.global_steps.setdefault(written.mode, {})
        known = steps.get(written.mode_step, -1)
        steps[written.mode_step] = max(written.step, known)
        if known < 0:
            _insert(self._steps.setdefault(written.mode, []), written.mode_step)
        self._layouts_by_mode.setdefault(written.mode, {})[written.layout] = None


def _insert(steps: list[int], step: int) -> None:
    if not steps or step > steps[-1]:
        steps.append(step)
    else:
        insort(steps, step)
