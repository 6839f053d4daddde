"""What the index files of a run say: which worker saved which tensor at which step, and where.

Two steps mostly hold the same tensors at the same places, so what they share is kept once: the names
(`Layout`) and the spans (`Spans`). What is left of one index file is one small object; there is no
object per tensor, step and worker. Where the knowledge comes from, a listing or a step index, is not
asked here: arrivals are handed over.

`KnownSteps` is what trials and tensors ask. `RunIndex` answers from what it was given; `LazyIndex` finds
out when it is asked.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import add, attrgetter
from typing import NamedTuple, Protocol, TypeVar

from smdebug.files.index import IndexFile, ShapeRecord
from smdebug.mode_keys import ModeKeys
from smdebug.numbers.reductions import REDUCTIONS_PREFIX, reverse_reduction_tensor_name

GLOBAL = ModeKeys.GLOBAL
Reduction = tuple[str, bool]
_COLON_INDEX = re.compile(r":\d+")
T = TypeVar("T")


class Arrival(NamedTuple):
    """An index file that was read, and what its name says."""

    key: str
    step: int
    worker: str
    file: IndexFile


class Places(NamedTuple):
    """Where in an index file one tensor stands: its value, its reductions, its shape record."""

    value: int | None = None
    reductions: Mapping[Reduction, int] = {}
    shape: int | None = None


class Layout:
    """The names in one index file, and the tensors they stand for."""

    __slots__ = ("names", "of_tensor", "shape_names", "tensor_names")

    def __init__(self, names: tuple[str, ...], shape_names: tuple[str, ...]):
        self.names = names
        self.shape_names = shape_names
        self.of_tensor = _places_by_tensor(names, shape_names)
        self.tensor_names = tuple(sorted(self.of_tensor))


class Spans:
    """Where the records of one event file begin, how long they are, and where the last one ends."""

    __slots__ = ("end", "lengths", "starts")

    def __init__(self, starts: tuple[int, ...], lengths: tuple[int, ...]):
        self.starts = starts
        self.lengths = lengths
        self.end = max(map(add, starts, lengths), default=0)


class WorkerStep:
    """What one worker wrote at one step."""

    __slots__ = (
        "checksums",
        "event_file",
        "layout",
        "mode",
        "mode_step",
        "places",
        "previous_step",
        "saved_at",
        "shape_records",
        "shapes",
        "spans",
        "step",
        "worker",
    )

    def __init__(
        self,
        arrival: Arrival,
        layout: Layout,
        spans: Spans,
        shapes: tuple[tuple[int, ...] | None, ...] | None,
        shape_records: tuple[ShapeRecord, ...],
    ):
        file = arrival.file
        self.step = arrival.step
        self.worker = arrival.worker
        self.mode = file.meta.mode
        # Without modes, a step is counted by its global number.
        self.mode_step = arrival.step if file.meta.mode is GLOBAL else file.meta.mode_step
        self.event_file = file.meta.event_file_name
        self.layout = layout
        self.places = layout.of_tensor
        self.spans = spans
        self.checksums = _compact(file.crcs)
        #: The step that this worker saved before, and when it saved this one; old runs do not tell.
        self.previous_step = _whole_number(file.meta.extras.get("previous_step"))
        self.saved_at = _seconds(file.meta.extras.get("saved_at"))
        self.shapes = shapes
        self.shape_records = shape_records


def _whole_number(told: object) -> int | None:
    return told if type(told) is int and told >= 0 else None


def _seconds(told: object) -> float | None:
    return float(told) if type(told) in (int, float) and 0 < told < 1e11 else None  # type: ignore[operator, arg-type]


Workers = Mapping[str, WorkerStep]
Written = list[tuple[WorkerStep, Places]]


class KnownSteps(Protocol):
    """What trials and tensors ask of a run's steps, wherever the answers come from.

    Where a mode goes with a step, the step is counted within that mode; global ones for GLOBAL.
    """

    @property
    def at(self) -> Mapping[int, Workers]:
        """What was written at global steps, as far as it is at hand at no cost."""

    @property
    def workers(self) -> frozenset[str]:
        """The workers that have written something."""

    @property
    def workers_by_step(self) -> Mapping[int, frozenset[str]]:
        """Which workers have written each global step."""

    def steps(self, mode: ModeKeys) -> Sequence[int]:
        """The known steps of a mode, in order. Not to be changed."""

    def numbered(self, mode: ModeKeys) -> Iterable[tuple[int, int]]:
        """The known steps of a mode, in order, each with its global number."""

    def modes(self) -> dict[ModeKeys, None]:
        """The modes seen, but for GLOBAL, in the order in which they were seen."""

    def mode_of(self, step: int) -> tuple[ModeKeys, int] | None:
        """The mode of a global step and its number within that mode."""

    def global_step(self, step: int, mode: ModeKeys) -> int | None:
        """The global number of a step; None if the step is not known."""

    def workers_at(self, step: int, mode: ModeKeys) -> Workers | None:
        """What was written at a step, by worker; None if the step is not known."""

    def written(self, name: str, step: int, mode: ModeKeys, worker: str | None = None) -> Written:
        """Who wrote that tensor at a step, in order of the workers; that worker alone, if it did."""

    def steps_of(self, name: str, mode: ModeKeys) -> Iterator[tuple[int, int]]:
        """The steps at which a tensor was written, in order, each with its global number."""

    def back_from(self, name: str, step: int, mode: ModeKeys) -> Iterator[tuple[int, int]]:
        """The same from that step on backwards."""

    def first_seen(self, name: str, mode: ModeKeys) -> int | None:
        """The global step at which a tensor was first written in a mode."""

    def tensor_names(self, mode: ModeKeys = GLOBAL) -> tuple[str, ...]:
        """Names of all tensors seen in a mode, sorted; of all modes for GLOBAL."""

    def tensor_names_at(self, step: int, mode: ModeKeys) -> Sequence[str]:
        """Names of the tensors of a step, sorted. Not to be changed."""

    def has_tensor(self, name: str) -> bool:
        """Was a tensor of that name seen?"""

    def original_name(self, name: str) -> str | None:
        """What the first shape record of a tensor says it was called."""


class Sharing:
    """Makes one small object of each index file; what several have in common, they share."""

    def __init__(self) -> None:
        self._layouts: dict[tuple[tuple[str, ...], tuple[str, ...]], Layout] = {}
        self._shared: dict[object, object] = {}
        #: About how many bytes are shared.
        self.size = 0

    def __len__(self) -> int:
        """How many layouts there are."""
        return len(self._layouts)

    def worker_step(self, arrival: Arrival) -> WorkerStep:
        """What the arrival says."""
        file = arrival.file
        records = file.shape_records
        key = (file.names, tuple([record.name for record in records]) if records else ())
        layout = self._layouts.get(key)
        if layout is None:
            layout = self._layouts[key] = Layout(*key)
            self.size += 400 * (len(file.names) + len(records))
        places = (file.starts, file.lengths)
        spans = self._shared.get(places)
        if spans is None:
            spans = self._shared[places] = Spans(*places)
            self.size += 80 * len(file.starts)
        return WorkerStep(
            arrival,
            layout,
            spans,  # type: ignore[arg-type]
            self.share(file.shapes) if file.shapes else None,
            self.share(records) if records else (),
        )

    def share(self, value: T) -> T:
        """An equal value, seen before if there was one."""
        return self._shared.setdefault(value, value)  # type: ignore[return-value]


class RunIndex:
    """Everything the index files of one run have said so far, growing as they arrive.

    One thread adds, any number reads: what a reader is handed out is never changed afterwards.
    """

    def __init__(self) -> None:
        #: Per global step, what each worker wrote; workers in order of their names.
        self.at: dict[int, Workers] = {}
        self.workers_by_step: dict[int, frozenset[str]] = {}
        self.workers: frozenset[str] = frozenset()
        #: Global steps per mode and mode step. Where two share one, the later counts.
        self.global_steps: dict[ModeKeys, dict[int, int]] = {GLOBAL: {}}
        self._steps: dict[ModeKeys, list[int]] = {GLOBAL: []}
        self._sharing = Sharing()
        self._layouts_by_mode: dict[ModeKeys, dict[Layout, None]] = {GLOBAL: {}}
        self._names: dict[ModeKeys, tuple[int, tuple[str, ...]]] = {}

    def steps(self, mode: ModeKeys) -> Sequence[int]:
        """The known steps of a mode, in order; global ones for GLOBAL. Not to be changed."""
        return self._steps.get(mode, ())

    def modes(self) -> dict[ModeKeys, None]:
        """The modes seen, but for GLOBAL, in the order in which they were seen."""
        return {mode: None for mode in list(self._steps) if mode is not GLOBAL}

    def numbered(self, mode: ModeKeys) -> Iterable[tuple[int, int]]:
        """The known steps of a mode, in order, each with its global number."""
        of = self.global_steps.get(mode, {})
        return [(step, of[step]) for step in list(self.steps(mode))]

    def global_step(self, step: int, mode: ModeKeys) -> int | None:
        """The global number of a mode's step; None if it is not known."""
        return self.global_steps.get(mode, {}).get(step)

    def workers_at(self, step: int, mode: ModeKeys) -> Workers | None:
        """What was written at a step of that mode, by worker; None if the step is not known."""
        if mode is GLOBAL:
            return self.at.get(step)
        steps = self.global_steps.get(mode)
        return None if steps is None else self.at.get(steps.get(step, -1))

    def mode_of(self, step: int) -> tuple[ModeKeys, int] | None:
        """The mode of a global step and its number within that mode."""
        workers = self.at.get(step)
        if workers is None:
            return None
        first = next(iter(workers.values()))
        return first.mode, first.mode_step

    def written(self, name: str, step: int, mode: ModeKeys, worker: str | None = None) -> Written:
        """Who wrote that tensor at a step, in order of the workers; that worker alone, if it did."""
        return written_by(self.workers_at(step, mode) or {}, name, worker)

    def steps_of(self, name: str, mode: ModeKeys) -> Iterator[tuple[int, int]]:
        """The steps at which a tensor was written, in order, each with its global number."""
        return self._where_written(name, mode, list(self.steps(mode)))

    def back_from(self, name: str, step: int, mode: ModeKeys) -> Iterator[tuple[int, int]]:
        """The same from that step on backwards."""
        steps = self.steps(mode)
        return self._where_written(name, mode, steps[: bisect_right(steps, step)][::-1])

    def first_seen(self, name: str, mode: ModeKeys) -> int | None:
        """The global step at which a tensor was first written in a mode."""
        for step in list(self._steps[GLOBAL]):
            for one in self.at[step].values():
                if name in one.places and mode in (GLOBAL, one.mode):
                    return step
        return None

    def original_name(self, name: str) -> str | None:
        """What the first shape record of a tensor says it was called."""
        return next(
            filter(None, (original_name_in(at, name) for at in list(self.at.values()))), None
        )

    def _where_written(
        self, name: str, mode: ModeKeys, steps: Sequence[int]
    ) -> Iterator[tuple[int, int]]:
        global_steps, at = self.global_steps.get(mode, {}), self.at
        for step in steps:
            global_step = global_steps[step]
            for one in at[global_step].values():
                if name in one.places:
                    yield step, global_step
                    break

    def tensor_names(self, mode: ModeKeys = GLOBAL) -> tuple[str, ...]:
        """Names of all tensors seen in a mode, sorted; of all modes for GLOBAL."""
        layouts = self._layouts_by_mode.get(mode, {})
        known, names = self._names.get(mode, (0, ()))
        if known != len(layouts):
            known = len(layouts)
            names = tuple(sorted({name for layout in list(layouts) for name in layout.of_tensor}))
            self._names[mode] = (known, names)
        return names

    def tensor_names_at(self, step: int, mode: ModeKeys) -> Sequence[str]:
        """Names of the tensors of a step, sorted. Not to be changed."""
        layouts = {one.layout for one in (self.workers_at(step, mode) or {}).values()}
        if len(layouts) == 1:
            return layouts.pop().tensor_names
        return sorted({name for layout in layouts for name in layout.tensor_names})

    def has_tensor(self, name: str) -> bool:
        return any(name in layout.of_tensor for layout in list(self._layouts_by_mode[GLOBAL]))

    def layouts(self) -> int:
        """How many different sets of tensors were seen: when it grows, there may be new names."""
        return len(self._sharing)

    def add(self, arrivals: Iterable[Arrival]) -> set[int]:
        """Take in what arrived; the steps about which there is news.

        A file without a single entry says nothing, not even that its worker has been there.
        """
        news: set[int] = set()
        telling = (arrival for arrival in arrivals if says_something(arrival.file))
        made = self._sharing.worker_step
        for step, together in groupby(telling, attrgetter("step")):
            self._add_to(step, {arrival.worker: made(arrival) for arrival in together})
            news.add(step)
        return news

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
        for one in written.values():
            self._layouts_by_mode[GLOBAL][one.layout] = None
            if one.mode is not GLOBAL:
                self._add_mode_step(one)

    def _add_mode_step(self, one: WorkerStep) -> None:
        steps = self.global_steps.setdefault(one.mode, {})
        known = steps.get(one.mode_step, -1)
        steps[one.mode_step] = max(one.step, known)
        if known < 0:
            _insert(self._steps.setdefault(one.mode, []), one.mode_step)
        self._layouts_by_mode.setdefault(one.mode, {})[one.layout] = None


def written_by(workers: Workers, name: str, worker: str | None = None) -> Written:
    """Those of the workers that wrote a tensor; that one alone, if it did."""
    if worker is not None:
        one = workers.get(worker)
        if one is not None and (places := one.places.get(name)) is not None:
            return [(one, places)]
    return [
        (one, places) for one in workers.values() if (places := one.places.get(name)) is not None
    ]


def original_name_in(workers: Workers, name: str) -> str | None:
    """What a shape record of a step says a tensor was called."""
    for one in workers.values():
        places = one.places.get(name)
        if places is not None and places.shape is not None:
            return one.shape_records[places.shape].original_name
    return None


def says_something(file: IndexFile) -> bool:
    """Does it list anything? If not, its worker counts as not having been there."""
    return bool(file.names or file.shape_records)


def _insert(steps: list[int], step: int) -> None:
    if not steps or step > steps[-1]:
        steps.append(step)
    else:
        insort(steps, step)


def _compact(crcs: tuple[int | None, ...] | None) -> Sequence[int | None] | None:
    if crcs is None:
        return None
    # Some entries may have none.
    return crcs if None in crcs else array("I", crcs)  # type: ignore[type-var]


def _places_by_tensor(names: tuple[str, ...], shape_names: tuple[str, ...]) -> dict[str, Places]:
    places: dict[str, Places] = {}
    for position, name in enumerate(names):
        reduction = _reduction_in(name)
        if reduction is None:
            places[name] = places.get(name, Places())._replace(value=position)
        else:
            tensor, which = reduction
            known = places.get(tensor, Places())
            reductions = {**known.reductions, which: position}
            places[tensor] = known._replace(reductions=reductions)
    for position, name in enumerate(shape_names):
        places[name] = places.get(name, Places())._replace(shape=position)
    _share_reductions(places)
    return places


def _share_reductions(places: dict[str, Places]) -> None:
    """Reductions of `x:0` are saved as those of `x`: give them to `x:0` too, if it alone can be meant."""
    indexed = Counter(_COLON_INDEX.sub("", name) for name in places if ":" in name)
    for name in [name for name in places if ":" in name]:
        plain = _COLON_INDEX.sub("", name)
        if plain != name and plain in places and indexed[plain] == 1:
            reductions = {**places[plain].reductions, **places[name].reductions}
            places[name] = places[name]._replace(reductions=reductions)


def _reduction_in(name: str) -> tuple[str, Reduction] | None:
    """The tensor and the reduction, if the name is that of a saved reduction."""
    kind, _, tensor = name.removeprefix(REDUCTIONS_PREFIX).partition("/")
    if not name.startswith(REDUCTIONS_PREFIX) or not kind or not tensor:
        return None
    tensor, reduction, of_magnitude = reverse_reduction_tensor_name(name)
    return tensor, (reduction, of_magnitude)
