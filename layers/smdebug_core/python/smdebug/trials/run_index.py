"""What the index files of a run say: which worker saved which tensor at which step, and where.

Two steps mostly hold the same tensors at the same places, so what they share is kept once: the names
(`Layout`) and the spans (`Spans`). What is left of one index file is one small object; there is no
object per tensor, step and worker. Where the knowledge comes from, a listing or a step index, is not
asked here: arrivals are handed over.
"""

from __future__ import annotations

import re
from array import array
from bisect import insort
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import add, attrgetter
from typing import NamedTuple, TypeVar

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
        self.shapes = shapes
        self.shape_records = shape_records


Workers = Mapping[str, WorkerStep]


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
        self._layouts: dict[tuple[tuple[str, ...], tuple[str, ...]], Layout] = {}
        self._layouts_by_mode: dict[ModeKeys, dict[Layout, None]] = {GLOBAL: {}}
        self._shared: dict[object, object] = {}
        self._names: dict[ModeKeys, tuple[int, tuple[str, ...]]] = {}

    def steps(self, mode: ModeKeys) -> Sequence[int]:
        """The known steps of a mode, in order; global ones for GLOBAL. Not to be changed."""
        return self._steps.get(mode, ())

    def modes(self) -> dict[ModeKeys, None]:
        """The modes seen, but for GLOBAL, in the order in which they were seen."""
        return {mode: None for mode in list(self._steps) if mode is not GLOBAL}

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

    def tensor_names(self, mode: ModeKeys = GLOBAL) -> tuple[str, ...]:
        """Names of all tensors seen in a mode, sorted; of all modes for GLOBAL."""
        layouts = self._layouts_by_mode.get(mode, {})
        known, names = self._names.get(mode, (0, ()))
        if known != len(layouts):
            known = len(layouts)
            names = tuple(sorted({name for layout in list(layouts) for name in layout.of_tensor}))
            self._names[mode] = (known, names)
        return names

    def has_tensor(self, name: str) -> bool:
        return any(name in layout.of_tensor for layout in list(self._layouts_by_mode[GLOBAL]))

    def layouts(self) -> int:
        """How many different sets of tensors were seen: when it grows, there may be new names."""
        return len(self._layouts)

    def add(self, arrivals: Iterable[Arrival]) -> set[int]:
        """Take in what arrived; the steps about which there is news.

        A file without a single entry says nothing, not even that its worker has been there.
        """
        news: set[int] = set()
        said_something = (arrival for arrival in arrivals if _says_something(arrival.file))
        for step, together in groupby(said_something, attrgetter("step")):
            self._add_to(step, {arrival.worker: self._worker_step(arrival) for arrival in together})
            news.add(step)
        return news

    def _add_to(self, step: int, written: dict[str, WorkerStep]) -> None:
        workers: Workers = {**self.at.get(step, {}), **written}
        if len(workers) > 1:
            workers = dict(sorted(workers.items()))
        is_new = step not in self.at
        self.at[step] = workers
        names = self._share(frozenset(workers))
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

    def _worker_step(self, arrival: Arrival) -> WorkerStep:
        file = arrival.file
        records = file.shape_records
        key = (file.names, tuple([record.name for record in records]) if records else ())
        layout = self._layouts.get(key)
        if layout is None:
            layout = self._layouts[key] = Layout(*key)
        places = (file.starts, file.lengths)
        spans = self._shared.get(places)
        if spans is None:
            spans = self._shared[places] = Spans(*places)
        return WorkerStep(
            arrival,
            layout,
            spans,  # type: ignore[arg-type]
            self._share(file.shapes) if file.shapes else None,
            self._share(records) if records else (),
        )

    def _share(self, value: T) -> T:
        return self._shared.setdefault(value, value)  # type: ignore[return-value]


def _says_something(file: IndexFile) -> bool:
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
