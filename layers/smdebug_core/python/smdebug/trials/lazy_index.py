"""The steps of a run through one of them, found out when they are asked for.

Which steps there are, a history tells; what a step holds, the registry of layouts; where its values are,
its index files, which are read then and there. So a question about a step costs the same however long the
run is. Only who asks about all steps pays for all of them.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import chain
from json import dumps
from math import floor
from operator import index as as_int
from typing import Any

from smdebug.mode_keys import ModeKeys
from smdebug.service.records import Layout
from smdebug.trials.history import (
    UNREAD,
    History,
    RememberedHistory,
    StepSummary,
)
from smdebug.trials.index_files import IndexFiles
from smdebug.trials.worker_steps import Layout as StoredLayout
from smdebug.trials.worker_steps import (
    Workers,
    Written,
    original_name_in,
    written_by,
)

GLOBAL = ModeKeys.GLOBAL
_NEAR = 64


class LazyIndex:
    """`KnownSteps` of a run as of the step `through`, over a history."""

    def __init__(self, history: History, files: IndexFiles, num_workers: int):
        #: The last step that exists, for now.
        self.through = -1
        #: What the step looked at holds; the others are read when something in them is asked for.
        self.at: Mapping[int, Workers] = {}
        self.num_workers = num_workers
        self.layouts = Layouts(history.layouts)
        self._history = RememberedHistory(history)
        self._files = files
        self._read: dict[int, StepSummary] = {}
        self._lock = threading.RLock()

    # Moving

    def move_to(self, step: int, workers: Iterable[str]) -> StepSummary:
        """Read the index files of a step, which is the last one from now on."""
        with self._lock:
            self.limit_to(step)
            written = self._files.of(step, workers)
            summary = self._told_by(step, written)
            self._history.add(summary)
            self.at = {step: written} if written else {}
        return summary

    def limit_to(self, step: int) -> None:
        """Have nothing exist that comes after this step."""
        with self._lock:
            self.through = step
            self.at = {}
            self._history.forget_misses()
            self._files.forget_gaps()
            self.layouts.may_have_grown()

    def forget(self) -> None:
        """Ask the history anew."""
        with self._lock:
            self._history.forget()
            self.layouts.may_have_grown()
            self.layouts.ask_anew()

    def newest(self) -> StepSummary | None:
        """The last step that is there."""
        return next(self._back(GLOBAL), None)

    # Which steps

    def summary(self, step: Any) -> StepSummary | None:
        """A global step; None if it is not there, or not yet."""
        number = _whole(step)
        if number is None or not 0 <= number <= self.through:
            return None
        with self._lock:
            return self._known(self._history.at(number))

    def newest_in(self, mode: ModeKeys, step: float) -> StepSummary | None:
        """The newest step of a mode whose number in it is at most that."""
        if mode is GLOBAL:
            return next(self._back(mode, floor(min(step, self.through)) + 1), None)
        high = 0
        for count, one in enumerate(self._back(mode)):
            if one.mode_step <= step:
                return one
            high = one.step
            if count == _NEAR:
                break
        # The numbers of a mode go up with the global ones, so the place is found by halving.
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
        return [(step, one.step) for step, one in self._all(mode)]

    def modes(self) -> dict[ModeKeys, None]:
        modes = (layout.mode for layout in self.layouts.through(self.through))
        return {mode: None for mode in modes if mode is not GLOBAL}

    def mode_of(self, step: int) -> tuple[ModeKeys, int] | None:
        one = self.summary(step)
        return one and (one.mode, one.mode_step)

    def global_step(self, step: int, mode: ModeKeys) -> int | None:
        one = self._one(step, mode)
        return one and one.step

    @property
    def workers(self) -> frozenset[str]:
        found: set[str] = set()
        for one in self._back(GLOBAL):
            found.update(one.workers)
            if len(found) >= self.num_workers:
                break
        return frozenset(found)

    @property
    def workers_by_step(self) -> Mapping[int, frozenset[str]]:
        return _WorkersByStep(self)

    # What they hold

    def workers_at(self, step: int, mode: ModeKeys) -> Workers | None:
        one = self._one(step, mode)
        return one and self._written_at(one)

    def written(self, name: str, step: int, mode: ModeKeys, worker: str | None = None) -> Written:
        one = self._one(step, mode)
        if one is None or not self._holds(one, name):
            return []
        return written_by(self._written_at(one), name, worker)

    def steps_of(self, name: str, mode: ModeKeys) -> Iterator[tuple[int, int]]:
        return ((step, one.step) for step, one in self._all(mode) if self._holds(one, name))

    def back_from(self, name: str, step: int, mode: ModeKeys) -> Iterator[tuple[int, int]]:
        newest = self.newest_in(mode, step)
        if newest is None:
            return
        last = None
        for one in chain((newest,), self._back(mode, newest.step)):
            number = one.step if mode is GLOBAL else one.mode_step
            if number != last and self._holds(one, name):
                yield number, one.step
            last = number

    def first_seen(self, name: str, mode: ModeKeys) -> int | None:
        return next((one.first_step for one in self._layouts_with(name, mode)), None)

    def tensor_names(self, mode: ModeKeys = GLOBAL) -> tuple[str, ...]:
        return self.layouts.names(self.through, mode)

    def tensor_names_at(self, step: int, mode: ModeKeys) -> Sequence[str]:
        one = self._one(step, mode)
        return self.layouts[one.layout].names if one else ()

    def has_tensor(self, name: str) -> bool:
        return any(True for _ in self._layouts_with(name, GLOBAL))

    def original_name(self, name: str) -> str | None:
        # All steps of a layout have the shapes of the same tensors.
        for layout in self._layouts_with(name, GLOBAL):
            one = self.summary(layout.first_step)
            found = one and original_name_in(self._written_at(one), name)
            if found is not None:
                return found
        return None

    # Below

    def _one(self, step: Any, mode: ModeKeys) -> StepSummary | None:
        if mode is GLOBAL:
            return self.summary(step)
        number = _whole(step)
        one = None if number is None else self.newest_in(mode, number)
        return one if one is not None and one.mode_step == number else None

    def _back(self, mode: ModeKeys, below: int | None = None) -> Iterator[StepSummary]:
        """The steps of a mode, newest first."""
        below = self.through + 1 if below is None else min(below, self.through + 1)
        steps = self._history.before(below, None if mode is GLOBAL else mode)
        while True:
            with self._lock:
                one = next(steps, None)
                known = self._known(one)
            if one is None:
                return
            if known is not None and mode in (GLOBAL, known.mode):
                yield known

    def _all(self, mode: ModeKeys) -> list[tuple[int, StepSummary]]:
        """All steps of a mode, in order. Where two have the same number, the later counts."""
        numbered: dict[int, StepSummary] = {}
        for one in self._back(mode):
            numbered.setdefault(one.step if mode is GLOBAL else one.mode_step, one)
        return sorted(numbered.items())

    def _known(self, told: StepSummary | None) -> StepSummary | None:
        """What there is to know of a step, from its index files where nobody has looked at it."""
        if told is None or not told.workers:
            return None
        if told.layout not in self.layouts:
            read = self._read.get(told.step)
            if read is None:
                if len(self._read) >= RememberedHistory.KEPT:
                    self._read.clear()
                read = self._told_by(told.step, self._files.of(told.step, told.workers))
                self._read[told.step] = read
            told = read
        return told if told.workers else None

    def _told_by(self, step: int, written: Workers) -> StepSummary:
        if not written:
            return StepSummary(step, GLOBAL, step, ())
        first = next(iter(written.values()))
        digest = self.layouts.add(step, first.mode, written)
        return StepSummary(step, first.mode, first.mode_step, tuple(written), digest)

    def _written_at(self, one: StepSummary) -> Workers:
        return self.at.get(one.step) or self._files.of(one.step, one.workers)

    def _holds(self, one: StepSummary, name: str) -> bool:
        return name in self.layouts[one.layout].named

    def _layouts_with(self, name: str, mode: ModeKeys) -> Iterator[KnownLayout]:
        for layout in self.layouts.through(self.through):
            if name in layout.named and mode in (GLOBAL, layout.mode):
                yield layout


class KnownLayout:
    """What some steps of a run hold: the names of their tensors."""

    __slots__ = ("digest", "first_step", "mode", "named", "names", "workers")

    def __init__(
        self,
        digest: str,
        names: Iterable[str],
        mode: ModeKeys,
        first_step: int,
        workers: tuple[str, ...],
    ):
        self.digest = digest
        self.names = tuple(sorted(names))
        self.named = frozenset(self.names)
        self.mode = mode
        self.first_step = first_step
        self.workers = workers

    @property
    def record(self) -> Layout:
        """The same as the step index holds it."""
        return Layout(self.digest, self.names, self.mode.name, self.first_step, self.workers)


class Layouts:
    """What steps hold, by digest: from the registry of the step index, and from what was read here."""

    def __init__(self, ask: Callable[[], Mapping[str, Layout]]):
        self._ask = ask
        self._known: dict[str, KnownLayout] = {}
        self._in_order: list[KnownLayout] = []
        self._first_steps: list[int] = []
        self._names: dict[tuple[ModeKeys, int], tuple[str, ...]] = {}
        self._digests: dict[tuple[ModeKeys, frozenset[StoredLayout]], str] = {}
        self._asked = self._asked_again = False

    def __getitem__(self, digest: str) -> KnownLayout:
        return self._known[digest]

    def __contains__(self, digest: str) -> bool:
        if digest == UNREAD:
            return False
        if digest not in self._known and not self._asked_again:
            # Somebody else may have seen it first.
            self._asked_again = True
            self._take_in(self._ask())
        return digest in self._known

    def may_have_grown(self) -> None:
        """Ask again when there is one that is not known."""
        self._asked_again = False

    def ask_anew(self) -> None:
        """Ask again in any case, when something is asked for next."""
        self._asked = False

    def through(self, step: int) -> list[KnownLayout]:
        """Those seen up to a step, in the order in which they were seen first."""
        self._ask_once()
        return self._in_order[: bisect_right(self._first_steps, step)]

    def names(self, step: int, mode: ModeKeys) -> tuple[str, ...]:
        """Names of all tensors seen up to a step in a mode, sorted; of all modes for GLOBAL."""
        seen = self.through(step)
        known = self._names.get((mode, len(seen)))
        if known is None:
            if len(self._names) > 64:
                self._names.clear()
            names = {name for one in seen if mode in (GLOBAL, one.mode) for name in one.names}
            known = self._names[mode, len(seen)] = tuple(sorted(names))
        return known

    def add(self, step: int, mode: ModeKeys, written: Workers) -> str:
        """The digest of what these workers wrote at a step."""
        key = (mode, frozenset(one.layout for one in written.values()))
        if key not in self._digests:
            if len(self._digests) > 256:
                self._digests.clear()
            self._digests[key] = _digest(mode, key[1])
        digest = self._digests[key]
        known = self._known.get(digest)
        if known is None or step < known.first_step:
            names = {name for layout in key[1] for name in layout.of_tensor}
            self._keep(KnownLayout(digest, names, mode, step, tuple(written)))
            self._put_in_order()
        return digest

    def _ask_once(self) -> None:
        if not self._asked:
            self._asked = True
            self._take_in(self._ask())

    def _take_in(self, told: Mapping[str, Layout]) -> None:
        for digest, one in told.items():
            known = self._known.get(digest)
            if known is None or one.first_step < known.first_step:
                mode, workers = ModeKeys[one.mode], tuple(one.workers)
                self._keep(KnownLayout(digest, one.names, mode, one.first_step, workers))
        self._put_in_order()

    def _keep(self, layout: KnownLayout) -> None:
        self._known[layout.digest] = layout
        self._in_order = []

    def _put_in_order(self) -> None:
        if not self._in_order:
            self._in_order = sorted(self._known.values(), key=lambda one: one.first_step)
            self._first_steps = [one.first_step for one in self._in_order]
            self._names.clear()


def _digest(mode: ModeKeys, layouts: Iterable[StoredLayout]) -> str:
    """The same for steps that hold the same: of each tensor its value, these reductions, or its shape."""
    held: dict[str, set[str]] = {}
    for layout in layouts:
        for name, places in layout.of_tensor.items():
            kinds = held.setdefault(name, set())
            if places.value is not None:
                kinds.add("value")
            if places.shape is not None:
                kinds.add("shape")
            kinds.update(
                f"{'abs ' if of_abs else ''}{which}" for which, of_abs in places.reductions
            )
    told = [mode.name, [[name, sorted(held[name])] for name in sorted(held)]]
    return sha256(dumps(told, separators=(",", ":")).encode()).hexdigest()[:16]


class _WorkersByStep(Mapping[int, frozenset[str]]):
    """Which workers have written each step, looked up when asked for."""

    def __init__(self, index: LazyIndex):
        self._index = index

    def __getitem__(self, step: int) -> frozenset[str]:
        one = self._index.summary(step)
        if one is None:
            raise KeyError(step)
        return frozenset(one.workers)

    def __iter__(self) -> Iterator[int]:
        return iter(self._index.steps(GLOBAL))

    def __len__(self) -> int:
        return len(self._index.steps(GLOBAL))


def _whole(step: Any) -> int | None:
    """The step as an integer; None for what can be no step."""
    try:
        return as_int(step)
    except TypeError:
        return int(step) if isinstance(step, float) and step.is_integer() else None
