"""What one worker wrote at one step, in as little memory as possible.

Two steps mostly hold the same tensors at the same places, so what they share is kept once: the names
(`IndexLayout`) and the spans (`Spans`). The rest of an index file is one small object. There is no object per
tensor, step and worker.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from operator import add
from typing import NamedTuple, TypeVar

from smdebug.files.collections_file import LostSteps, whole_number
from smdebug.files.index import IndexFile, ShapeRecord
from smdebug.files.replicas import root_digests
from smdebug.mode_keys import ModeKeys
from smdebug.numbers.reductions import COLON_INDEX, REDUCTIONS_PREFIX, reverse_reduction_tensor_name
from smdebug.trials.stored.attempts import AttemptId

GLOBAL = ModeKeys.GLOBAL
Reduction = tuple[str, bool]
T = TypeVar("T")


class ArrivedIndex(NamedTuple):
    """An index file that was read, with the step and worker in its name."""

    key: str
    step: int
    worker: str
    file: IndexFile


class Places(NamedTuple):
    """The positions of one tensor in an index file: its value, its reductions, its shape record."""

    value: int | None = None
    reductions: Mapping[Reduction, int] = {}
    shape: int | None = None


class IndexLayout:
    """The names in one index file, by tensor."""

    __slots__ = ("names", "of_tensor", "shape_names", "tensor_names")

    def __init__(self, names: tuple[str, ...], shape_names: tuple[str, ...]):
        self.names = names
        self.shape_names = shape_names
        self.of_tensor = _places_by_tensor(names, shape_names)
        self.tensor_names = tuple(sorted(self.of_tensor))


class Spans:
    """The start and length of the records of one event file, and the end of the last one."""

    __slots__ = ("end", "lengths", "starts")

    def __init__(self, starts: tuple[int, ...], lengths: tuple[int, ...]):
        self.starts = starts
        self.lengths = lengths
        self.end = max(map(add, starts, lengths), default=0)


class WorkerStep:
    """What one worker wrote at one step."""

    __slots__ = (
        "attempt",
        "checksums",
        "event_file",
        "layout",
        "lost_steps",
        "mode",
        "mode_step",
        "observes_beside",
        "places",
        "previous_step",
        "root_digests",
        "saved_at",
        "shape_records",
        "shapes",
        "spans",
        "step",
        "steps_before",
        "worker",
    )

    def __init__(
        self,
        arrival: ArrivedIndex,
        layout: IndexLayout,
        spans: Spans,
        shapes: tuple[tuple[int, ...] | None, ...] | None,
        shape_records: tuple[ShapeRecord, ...],
        attempt: AttemptId,
    ):
        file = arrival.file
        #: The attempt that wrote it.
        self.attempt = attempt
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
        #: The step that this worker saved before, and the time of this one. Old runs have neither.
        self.previous_step = whole_number(file.meta.extras.get("previous_step"))
        #: How many steps it had saved before in this attempt, and which it could not write so far.
        self.steps_before = whole_number(file.meta.extras.get("steps_before"))
        self.lost_steps = LostSteps.named_in(file.meta.extras)
        self.saved_at = seconds(file.meta.extras.get("saved_at"))
        #: One digest over the content of all tensors of a kind, where the worker has saved digests.
        self.root_digests = root_digests(file.meta.extras)
        self.shapes = shapes
        self.shape_records = shape_records
        #: Whether its observations are beside tensors that were chosen.
        self.observes_beside = bool(file.beside)


def seconds(value: object) -> float | None:
    """Return a time in seconds since 1970, or None if `value` is none."""
    return float(value) if type(value) in (int, float) and 0 < value < 1e11 else None  # type: ignore[operator, arg-type]


Workers = Mapping[str, WorkerStep]
Written = list[tuple[WorkerStep, Places]]


class Sharing:
    """Turns index files into small objects that share what they have in common."""

    def __init__(self) -> None:
        self._layouts: dict[tuple[tuple[str, ...], tuple[str, ...]], IndexLayout] = {}
        self._shared: dict[object, object] = {}
        #: Estimated size of what is shared, in bytes.
        self.size = 0

    def __len__(self) -> int:
        """Return the number of layouts."""
        return len(self._layouts)

    def worker_step(self, arrival: ArrivedIndex) -> WorkerStep:
        """Return the small object for an arrival."""
        file = arrival.file
        records = file.shape_records
        key = (file.names, tuple([record.name for record in records]) if records else ())
        layout = self._layouts.get(key)
        if layout is None:
            layout = self._layouts[key] = IndexLayout(*key)
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
            self.share(AttemptId.named_in(file.meta.extras)),
        )

    def share(self, value: T) -> T:
        """Return an equal value that was passed before, if there is one."""
        return self._shared.setdefault(value, value)  # type: ignore[return-value]


def written_by(workers: Workers, name: str, worker: str | None = None) -> Written:
    """Return the workers that wrote a tensor; `worker` alone, if it did."""
    if worker is not None:
        written = workers.get(worker)
        if written is not None and (places := written.places.get(name)) is not None:
            return [(written, places)]
    return [
        (written, places) for written in workers.values() if (places := written.places.get(name)) is not None
    ]


def original_name_in(workers: Workers, name: str) -> str | None:
    """Return the framework's name of a tensor, from a shape record of this step."""
    for written in workers.values():
        places = written.places.get(name)
        if places is not None and places.shape is not None:
            return written.shape_records[places.shape].original_name
    return None


def lists_something(file: IndexFile) -> bool:
    """Return True if the file has entries. Without any, its worker counts as absent from the step."""
    return bool(file.names or file.shape_records)


def _compact(crcs: tuple[int | None, ...] | None) -> Sequence[int | None] | None:
    if crcs is None:
        return None
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
    """Give `x:0` the reductions of `x`, the name that they were saved under, if no other can be meant."""
    indexed = Counter(COLON_INDEX.sub("", name) for name in places if ":" in name)
    for name in [name for name in places if ":" in name]:
        plain = COLON_INDEX.sub("", name)
        if plain != name and plain in places and indexed[plain] == 1:
            reductions = {**places[plain].reductions, **places[name].reductions}
            places[name] = places[name]._replace(reductions=reductions)


def _reduction_in(name: str) -> tuple[str, Reduction] | None:
    """Return the tensor and the reduction, if this is the name of a saved reduction."""
    kind, _, tensor = name.removeprefix(REDUCTIONS_PREFIX).partition("/")
    if not name.startswith(REDUCTIONS_PREFIX) or not kind or not tensor:
        return None
    tensor, reduction, of_magnitude = reverse_reduction_tensor_name(name)
    return tensor, (reduction, of_magnitude)
