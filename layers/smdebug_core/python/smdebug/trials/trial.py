"""A run as its reader sees it: steps, modes, workers, collections, tensors, growing as it is written."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, KeysView
from contextlib import contextmanager
from operator import index as as_int
from typing import Any, TypeVar

from numpy.typing import NDArray

from smdebug.config.collection import Collection
from smdebug.config.collection_manager import CollectionManager
from smdebug.config.patterns import searcher
from smdebug.exceptions import (
    DamagedFile,
    NoMoreData,
    ObjectMissing,
    SMDebugError,
    SMDebugTypeError,
    SMDebugValueError,
    StepUnavailable,
    TensorUnavailable,
    TensorUnavailableForStep,
)
from smdebug.files.event_reading import read_value
from smdebug.files.names import END_MARKER, EVENTS_FOLDER, file_name_of, index_key, step_file
from smdebug.logger import get_logger
from smdebug.mode_keys import ModeKeys, str_to_mode_keys
from smdebug.numbers.statistics import Statistics, statistics
from smdebug.storage import Storage
from smdebug.trials.event_files import EventFiles
from smdebug.trials.listing import Damaged, IndexListing
from smdebug.trials.opening import look, wait_for_run
from smdebug.trials.patience import EVENT_FILE_PAUSE, Clock, Patience
from smdebug.trials.progress import RunProgress, StepState
from smdebug.trials.run_index import Arrival, KnownSteps, RunIndex, WorkerStep
from smdebug.trials.tensor import NamedTensor, Tensor

GLOBAL = ModeKeys.GLOBAL
Array = NDArray[Any]
S = TypeVar("S")
T = TypeVar("T")
_STATISTICS_KEPT = 20_000


class InvalidStepRange(SMDebugValueError, AssertionError):
    """range_steps is (first, end): whole numbers from 0, either may be None, first below end."""


class Trial:
    """What was saved by one run, so far.

    Queries look for news first, unless `no_refresh` is in force or the run has ended. Steps are those of
    `mode`; without one they are global steps. Threads may share a trial.
    """

    most_readers = 64  # values that are read at the same time, where the storage is good for it

    def __init__(
        self,
        name: str,
        storage: Storage,
        *,
        path: str | None = None,
        range_steps: tuple[int | None, int | None] | None = None,
        wait_seconds: float | None = None,
        patience: Patience | None = None,
        clock: Clock | None = None,
    ):
        patience = patience or Patience.from_environment()
        clock = clock or Clock()
        if wait_seconds is None:
            wait_seconds = patience.for_the_run
        range_steps = _checked_range(range_steps)
        run = wait_for_run(storage, wait_seconds, clock, get_logger())
        self._gathered = RunIndex()
        self._set_up(
            name,
            storage,
            path=path,
            index=self._gathered,
            event_files=EventFiles(storage),
            collections=run.collections,
            progress=RunProgress(
                num_workers=run.num_workers,
                workers_by_step=self._gathered.workers_by_step,
                wait_window=patience.incomplete_steps,
            ),
            range_steps=range_steps,
        )
        self.last_index_token: str | None = None
        self._patience = patience
        self._clock = clock
        self._listing = IndexListing(storage, range_steps)
        self._read_behind_token: set[str] = set()
        self._expected_workers = run.workers
        self._open()

    def _set_up(
        self,
        name: str,
        storage: Storage,
        *,
        path: str | None,
        index: KnownSteps,
        event_files: EventFiles,
        collections: CollectionManager,
        progress: RunProgress,
        range_steps: tuple[int | None, int | None] | None = None,
    ) -> None:
        """What every trial has, whatever tells it of the run's steps."""
        self.name = name
        self.path = storage.location if path is None else path
        self.range_steps = range_steps
        self.logger = get_logger()
        self.storage = storage
        self.index = index
        self.event_files = event_files
        self.collection_manager = collections
        #: Index files that could not be understood, and why; their steps may lack a worker.
        self.damaged_files: dict[str, SMDebugError] = {}
        self._progress = progress
        self._refreshing = threading.RLock()
        self._dynamic_refresh = True
        self._refresh_overrides: list[_Override] = []
        self._tensors: dict[str, Tensor] = {}
        self._matches: dict[tuple[str, ...], dict[str, bool]] = {}
        self._statistics: dict[tuple[Any, ...], Statistics] = {}

    # Steps, modes, workers

    def steps(
        self, mode: ModeKeys | None = GLOBAL, show_incomplete_steps: bool = False
    ) -> list[int]:
        """The steps that can be read, counted within `mode`; those some workers still owe on request."""
        self.maybe_refresh()
        mode = self.mode_meant(mode)
        if show_incomplete_steps or self._progress.has_all_settled:
            return list(self.index.steps(mode))
        settled = self._progress.is_settled
        return [step for step, at in self.index.numbered(mode) if settled(at)]

    def available_steps(self, mode: ModeKeys | None = GLOBAL) -> list[int]:
        """`steps` under its older name."""
        return self.steps(mode)

    def modes(self) -> KeysView[ModeKeys]:
        """The modes in which steps were saved; GLOBAL, the mode of those without one, is not listed."""
        self.maybe_refresh()
        return self.index.modes().keys()

    def mode(self, global_step: int) -> ModeKeys | None:
        """The mode of a global step; None if the step is not known."""
        return self.mode_modestep(global_step)[0]

    def mode_step(self, global_step: int) -> int | None:
        """The number of a global step within its mode; None if the step is not known."""
        return self.mode_modestep(global_step)[1]

    def mode_modestep(self, global_step: int) -> tuple[ModeKeys, int] | tuple[None, None]:
        """Mode and number within it of a global step; (None, None) if the step is not known."""
        self.maybe_refresh()
        return self.index.mode_of(global_step) or (None, None)

    def saved_at(self, global_step: int) -> float | None:
        """When the last of its workers had saved a step, in seconds since 1970; None if nothing tells."""
        self.maybe_refresh()
        workers = self.index.workers_at(global_step, GLOBAL) or {}
        times = [one.saved_at for one in workers.values() if one.saved_at is not None]
        return max(times, default=None)

    def global_step(self, mode: ModeKeys | None, mode_step: int) -> int | None:
        """The global step of a mode's step; None if it is not known."""
        self.maybe_refresh()
        mode = self.mode_meant(mode)
        if mode is GLOBAL:
            return mode_step
        return self.index.global_step(mode_step, mode)

    def workers(self) -> list[str]:
        """The workers that have saved something, sorted."""
        self.maybe_refresh()
        return sorted(self.index.workers)

    # Tensors

    def tensor_names(
        self,
        show_prefixed_tensors: bool = False,
        *,
        step: int | None = None,
        mode: ModeKeys | None = GLOBAL,
        regex: str | Iterable[str] | None = None,
        collection: str | Collection | None = None,
    ) -> list[str]:
        """Names of the tensors saved, sorted: at that step, in that mode, and matching.

        `regex` is a pattern or several, of which one must match. A collection has the tensors it names
        and those its own patterns match. Reductions go by the name of their tensor;
        `show_prefixed_tensors` is accepted, and hides and shows nothing.
        """
        if regex is not None and collection is not None:
            raise SMDebugValueError(
                "Only one of `regex` or `collection` can be passed to this method"
            )
        mode = self.mode_meant(mode)
        chosen = self._chosen_by(regex, collection)
        self.maybe_refresh()
        names = self._names(step, mode)
        return list(names) if chosen is None else [name for name in names if chosen(name)]

    def tensors(
        self,
        *,
        step: int | None = None,
        mode: ModeKeys | None = GLOBAL,
        regex: str | Iterable[str] | None = None,
        collection: str | Collection | None = None,
    ) -> list[str]:
        """`tensor_names` under its older name."""
        return self.tensor_names(step=step, mode=mode, regex=regex, collection=collection)

    def tensors_matching_regex(self, regex_list: str | Iterable[str]) -> list[str]:
        """Names of the tensors that one of the patterns matches."""
        return self.tensor_names(regex=regex_list)

    def tensors_in_collection(self, coll_name: str | Collection) -> list[NamedTensor]:
        """The tensors of a collection: each is its name, and can be asked for its values."""
        return [NamedTensor(name, self) for name in self.tensor_names(collection=coll_name)]

    def tensor(self, tname: str) -> Tensor:
        """The tensor of that name; `TensorUnavailable` if none was saved so far."""
        known = self._tensors.get(tname)
        if known is not None:
            return known
        if not self.has_tensor(tname):
            raise TensorUnavailable(tname)
        return self._tensors.setdefault(str(tname), Tensor(str(tname), self))

    def has_tensor(self, tname: str) -> bool:
        """Has a tensor of that name been saved so far?"""
        if self.index.has_tensor(tname):
            return True
        self.maybe_refresh()
        return self.index.has_tensor(tname)

    def inputs(self, step: int, mode: ModeKeys | None = GLOBAL) -> list[Array]:
        """The model's inputs at a step: the values of collection `inputs`, in order of their numbers."""
        return self._values_at(step, mode, collection="inputs")

    def labels(self, step: int, mode: ModeKeys | None = GLOBAL) -> list[Array]:
        """The labels at a step: the values of all tensors called so, in order of their numbers."""
        return self._values_at(step, mode, regex="labels*")

    def predictions(self, step: int, mode: ModeKeys | None = GLOBAL) -> list[Array]:
        """The predictions at a step: the values of all tensors called so, in order of their numbers."""
        return self._values_at(step, mode, regex="predictions*")

    # Collections

    def collections(self) -> dict[str, Collection]:
        """The collections of the run, by name."""
        self.maybe_refresh()
        return self.collection_manager.get_collections()

    def collection(self, coll_name: str) -> Collection:
        """The collection of that name; an empty one, which is not kept, if the run has none."""
        self.maybe_refresh()
        known = self.collection_manager.get_collections().get(coll_name)
        return Collection(coll_name) if known is None else known

    # How far the run has come

    @property
    def num_workers(self) -> int:
        """How many workers the run has, as its collections file says."""
        return self._progress.num_workers

    @property
    def last_complete_step(self) -> int:
        """The highest global step that is settled, all before it included; -1 at first."""
        return self._progress.settled_through

    @property
    def loaded_all_steps(self) -> bool:
        """Has the run ended, and all of it been seen?"""
        return self._progress.ended

    @property
    def workers_for_global_step(self) -> dict[int, set[str]]:
        """Which workers have written each global step."""
        return {step: set(workers) for step, workers in list(self.index.workers_by_step.items())}

    @property
    def index_reader(self) -> Any:
        """The run's index files under the older interface."""
        from smdebug.trials.index_reader import IndexReader

        return IndexReader(self.storage)

    def has_passed_step(self, step: int, mode: ModeKeys | None = GLOBAL) -> StepState:
        """Can a step be read, was it skipped, or might it still arrive?"""
        self.maybe_refresh()
        return self.state_of(step, self.mode_meant(mode))

    def wait_for_steps(self, required_steps: Iterable[int], mode: ModeKeys | None = GLOBAL) -> None:
        """Return when all these steps can be read.

        `StepUnavailable` as soon as one of them was skipped, `NoMoreData` if the run ended before it.
        """
        mode = self.mode_meant(mode)
        with self.refreshing(True):
            for step in required_steps:
                self._wait_for_step(step, mode)

    def _wait_for_step(self, step: int, mode: ModeKeys) -> None:
        pauses = self._clock.pauses()
        while True:
            state = self.has_passed_step(step, mode)
            if state is StepState.AVAILABLE:
                return
            if state is StepState.UNAVAILABLE:
                last = max(self.index.steps(mode)[-1:], default=-1)
                if self.loaded_all_steps and step > last:
                    raise NoMoreData(step, mode, last)
                raise StepUnavailable(step, mode)
            self.logger.debug("Waiting for step %s of mode %s of %s", step, mode.name, self.name)
            next(pauses)

    # Looking for news

    @property
    def dynamic_refresh(self) -> bool:
        """Do queries look for news? `no_refresh` and `refresh` change it for a while."""
        overrides = self._refresh_overrides
        return overrides[-1].value if overrides else self._dynamic_refresh

    @dynamic_refresh.setter
    def dynamic_refresh(self, value: bool) -> None:
        with self._refreshing:
            if self._refresh_overrides:
                self._refresh_overrides[-1].value = value
            else:
                self._dynamic_refresh = value

    @contextmanager
    def refreshing(self, value: bool) -> Iterator[None]:
        """Let queries look for news, or not, until the block is left in whatever way."""
        override = _Override(value)
        with self._refreshing:
            self._refresh_overrides = [*self._refresh_overrides, override]
        try:
            yield
        finally:
            with self._refreshing:  # not the last one, if threads overlap
                self._refresh_overrides = [
                    other for other in self._refresh_overrides if other is not override
                ]

    def maybe_refresh(self, name: str | None = None) -> None:
        """Look for news, unless there can be none or nobody wants any.

        With the name of a tensor: only if that tensor is not known yet.
        """
        if self.loaded_all_steps or not self.dynamic_refresh:
            return
        if name is not None and self.index.has_tensor(name):
            return
        with self._refreshing:
            if not self.loaded_all_steps:
                self._look_for_news()

    def refresh_data(self) -> None:
        """Read the index files that are new, now."""
        with self._refreshing:
            known = self._gathered.layouts()
            news = self._gathered.add(self._arrivals())
            if news:
                self._progress = self._progress.with_news(news)
                self._move_token()
            if self._gathered.layouts() > known > 0:
                self._look_at_collections()  # new names: the hook may have told of them

    def _open(self) -> None:
        # The marker first: its writer had finished its steps before, so they are all in the listing.
        ended = self.storage.exists(END_MARKER)
        self.refresh_data()
        if ended and not self._progress.open_steps:
            self._finish()
        elif ended:
            self._finish_after_last_look()

    def _look_for_news(self) -> None:
        ended = self.storage.exists(END_MARKER)
        self.refresh_data()
        if ended:
            self._finish_after_last_look()

    def _finish_after_last_look(self) -> None:
        """One worker wrote the marker; others may be a moment behind it."""
        self._clock.sleep(self._patience.at_the_end)
        self.refresh_data()
        self._look_at_collections()
        self._finish()

    def _finish(self) -> None:
        self._progress = self._progress.at_the_end()
        self._move_token()
        if not self._gathered.at and self.range_steps is None and self._has_events():
            self.logger.warning(
                f"The run at {self.path} has event files and no index files, so none of its steps can "
                "be read. If it was copied, copy its index folder too."
            )

    def _has_events(self) -> bool:
        return next(iter(self.storage.list(EVENTS_FOLDER)), None) is not None

    def _arrivals(self) -> Iterator[Arrival]:
        for item in self._listing.news(self.last_index_token, self._read_behind_token):
            if isinstance(item, Damaged):
                self._report(item)
            else:
                self._read_behind_token.add(item.key)
                self.damaged_files.pop(item.key, None)
                yield item

    def _report(self, damaged: Damaged) -> None:
        if damaged.key not in self.damaged_files:
            self.logger.error(
                f"Left out an index file of {self.path}; other steps and workers can be read. "
                f"{damaged.error}"
            )
        self.damaged_files[damaged.key] = damaged.error

    def _move_token(self) -> None:
        if self.last_complete_step < 0:
            return
        workers = self.index.workers.union(self._expected_workers)
        last_worker = max(workers, key=file_name_of)
        self.last_index_token = token = index_key(self.last_complete_step, last_worker)
        if self._read_behind_token:
            self._read_behind_token = {key for key in self._read_behind_token if key > token}

    def _look_at_collections(self) -> None:
        run = look(self.storage)
        if run is not None:
            self.collection_manager = run.collections
            self._expected_workers = run.workers
            self._progress = self._progress.with_num_workers(run.num_workers)

    # What tensors ask

    def mode_meant(self, mode: ModeKeys | str | None) -> ModeKeys:
        """The mode that was passed: None means GLOBAL, and a name its mode."""
        if isinstance(mode, ModeKeys):
            return mode
        if mode is None:
            return GLOBAL
        if isinstance(mode, str):
            try:
                return str_to_mode_keys(mode)
            except KeyError:
                raise SMDebugValueError(
                    f"{mode!r} is no mode: use one of {', '.join(known.name for known in ModeKeys)}"
                ) from None
        raise SMDebugTypeError(f"A mode is one of smdebug.modes, not {mode!r}")

    def state_of(self, step: int, mode: ModeKeys) -> StepState:
        """`has_passed_step` for what is known now."""
        try:
            if mode is GLOBAL:
                return self._progress.state_of(step)
            steps, of = self._gathered.steps(mode), self._gathered.global_steps.get(mode, {})
            return self._progress.state_in_mode(step, steps, of)
        except TypeError as error:
            raise SMDebugTypeError(f"A step is a whole number, not {step!r}") from error

    def is_settled(self, global_step: int) -> bool:
        """Is everything known of that step that will ever be?"""
        return self._progress.is_settled(global_step)

    def read(self, written: WorkerStep, position: int) -> Array:
        """The value at that position of what a worker wrote at one step, checked."""
        spans, checksums, file = written.spans, written.checksums, written.event_file
        if file is None:
            raise DamagedFile(
                index_key(written.step, written.worker), "it names no event file", step=written.step
            )
        start, length = spans.starts[position], spans.lengths[position]
        name = written.layout.names[position]
        while True:
            try:
                record = self.event_files.record(file, start, length, spans.end)
                break
            except ObjectMissing:
                self._wait_for_event_file(written, file, name)
        return read_value(
            record,
            file=file,
            name=name,
            step=written.step,
            crc32c=None if checksums is None else checksums[position],
        )

    def statistics(self, written: WorkerStep, position: int) -> Statistics:
        """The statistics of that value, computed once for all who ask."""
        start, checksums = written.spans.starts[position], written.checksums
        checksum = None if checksums is None else checksums[position]
        key = (written.event_file, start, checksum, written.saved_at)
        known = self._statistics.get(key)
        if known is None:
            if len(self._statistics) >= _STATISTICS_KEPT:
                self._statistics.clear()
            known = self._statistics[key] = statistics(self.read(written, position))
        return known

    def in_parallel(self, read: Callable[[S], T], what: list[S]) -> list[T]:
        """`read` of each, as many at a time as the storage is good for."""
        at_a_time = min(self.storage.concurrency, self.most_readers, len(what))
        if at_a_time <= 1:
            return [read(one) for one in what]
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(at_a_time, "smdebug-values") as readers:
            return list(readers.map(read, what))

    def _wait_for_event_file(self, written: WorkerStep, file: str, name: str) -> None:
        """Return when the file is there, or say that it will not come.

        The index file is written last, so the event file it points into is there, except where somebody
        copies a run file by file.
        """
        for looks in range(self._patience.event_file_looks):
            if self.storage.exists(file):
                return
            if self.loaded_all_steps or self._was_skipped(written, file):
                break
            if looks == 0:
                self.logger.warning(
                    f"Waiting for {file} of {self.path}, which its index file names"
                )
            self._clock.sleep(EVENT_FILE_PAUSE)
        raise TensorUnavailableForStep(name, written.mode_step, written.mode)

    def _was_skipped(self, written: WorkerStep, file: str) -> bool:
        if self.storage.exists(END_MARKER):
            return True
        later = map(step_file, self.storage.list(EVENTS_FOLDER, file))
        return any(
            other.worker == written.worker and other.step > written.step for other in later if other
        )

    # Choosing names

    def _names(self, step: int | None, mode: ModeKeys) -> Iterable[str]:
        if step is None:
            return self.index.tensor_names(mode)
        return self.index.tensor_names_at(step, mode)

    def _chosen_by(
        self, regex: str | Iterable[str] | None, collection: str | Collection | None
    ) -> Callable[[str], bool] | None:
        if regex is not None:
            if not isinstance(regex, str | list | tuple | set | frozenset):
                raise SMDebugTypeError(f"regex is a pattern or a list of them, not {regex!r}")
            return self._matching((regex,) if isinstance(regex, str) else tuple(regex))
        if collection is None:
            return None
        if isinstance(collection, str):
            collection = self.collection(collection)
        elif not isinstance(collection, Collection):
            raise SMDebugTypeError(f"Invalid argument type for collection {type(collection)}")
        matching = self._matching(tuple(collection.include_regex))
        named = collection.tensor_names
        return lambda name: name in named or matching(name)

    def _matching(self, patterns: tuple[str, ...]) -> Callable[[str], bool]:
        """Does one of the patterns match? Each name is tried once, however often it is asked for."""
        searches = [searcher(pattern) for pattern in patterns]
        if len(self._matches) > 256:
            self._matches.clear()
        known = self._matches.setdefault(patterns, {})

        def matches(name: str) -> bool:
            answer = known.get(name)
            if answer is None:
                answer = known[name] = any(search(name) for search in searches)
            return answer

        return matches

    def _values_at(self, step: int, mode: ModeKeys | None, **which: Any) -> list[Array]:
        names = sorted(self.tensor_names(step=step, mode=mode, **which), key=_number_at_the_end)
        return [self.tensor(name).value(step, mode) for name in names]

    # As a value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Trial):
            return NotImplemented
        return (self.name, self.path) == (other.name, other.path)

    def __hash__(self) -> int:
        return hash((self.name, self.path))

    def __repr__(self) -> str:
        return (
            f"{object.__repr__(self)}:(\n"
            f"    name={self.name},\n"
            f"    path={self.path},\n"
            f"    steps={list(self.index.steps(GLOBAL))},\n"
            f"    collections={list(self.collection_manager.get_collections())},\n"
            f"    tensor_names={list(self.index.tensor_names())},\n"
            ")"
        )


class _Override:
    """What `no_refresh` or `refresh` asks for, while its block lasts."""

    def __init__(self, value: bool):
        self.value = value


def _number_at_the_end(name: str) -> tuple[int, str]:
    number = name.rpartition("_")[2]
    return (int(number) if number.isdecimal() else -1, name)


def _checked_range(
    range_steps: tuple[int | None, int | None] | None,
) -> tuple[int | None, int | None] | None:
    if range_steps is None:
        return None
    try:
        first, end = (None if step is None else as_int(step) for step in range_steps)
    except (TypeError, ValueError) as error:
        raise InvalidStepRange(
            f"range_steps is (first, end), each a whole number or None, not {range_steps!r}"
        ) from error
    if (first or 0) < 0 or (end is not None and end <= (first or 0)):
        raise InvalidStepRange(
            "range_steps should be of the form (begin, end) where begin is less than end, "
            f"and both are not negative; got {range_steps!r}"
        )
    return (first, end)
