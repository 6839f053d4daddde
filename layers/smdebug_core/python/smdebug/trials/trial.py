"""Reading a run: its steps, modes, workers, collections and tensors, also while it is being written.

It is long because one class has every method of the old library's trials.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, KeysView
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, TypeVar

from smdebug.config.collection import Collection
from smdebug.exceptions import (
    NoMoreData,
    SMDebugError,
    SMDebugValueError,
    StepUnavailable,
    TensorUnavailable,
)
from smdebug.files.names import FACTS, OBSERVATIONS, SERIES
from smdebug.files.replicas import Replicas
from smdebug.logger import get_logger
from smdebug.mode_keys import ModeKeys
from smdebug.trials.arguments import StepRange, as_mode, checked_attempt, checked_range
from smdebug.trials.live.listed_run import ListedRun
from smdebug.trials.live.waiting import Clock, WaitLimits
from smdebug.trials.name_matching import (
    NameMatcher,
    asks_for_observations,
    extend_collection,
)
from smdebug.trials.observations.trial_methods import Observed
from smdebug.trials.progress import StepState
from smdebug.trials.refresh_switch import RefreshSwitch
from smdebug.trials.shown import ShownRun
from smdebug.trials.stored.event_files import EventFiles
from smdebug.trials.stored.values import MOST_READERS, ValueReader, in_parallel
from smdebug.trials.tensor import NamedTensor, Tensor

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from smdebug.config.collection_manager import CollectionManager
    from smdebug.files.collections_file import ClosingNote
    from smdebug.files.notes.checkpoints import Checkpoint
    from smdebug.files.notes.origin import Origin
    from smdebug.files.notes.stalls import Stall
    from smdebug.storage import Storage
    from smdebug.trials.known_steps import KnownSteps, RunSource
    from smdebug.trials.logged_reading import LoggedValue
    from smdebug.trials.stored.attempts import Attempt
    from smdebug.trials.stored.missing_steps import MissingSteps

    Array = NDArray[Any]

GLOBAL = ModeKeys.GLOBAL
S = TypeVar("S")
T = TypeVar("T")


class Trial(Observed, ShownRun):
    """What one run has saved so far.

    Queries refresh the trial first, unless `no_refresh` is active or the run has ended. Steps are counted
    within `mode`; without one they are global steps. Threads may share a trial.

    It is long because it has every method of the old library's trials, each of them short: `RunSource`
    provides the run, `ValueReader` its values, and `NameMatcher` selects names.
    """

    most_readers = MOST_READERS  # values read at the same time, where the storage profits from it

    def __init__(
        self,
        name: str,
        storage: Storage,
        *,
        path: str | None = None,
        range_steps: StepRange | None = None,
        wait_seconds: float | None = None,
        wait_limits: WaitLimits | None = None,
        clock: Clock | None = None,
        attempt: int | None = None,
    ):
        limits = wait_limits or WaitLimits.from_environment()
        range_steps = checked_range(range_steps)
        path = storage.location if path is None else path
        self._clock = clock or Clock()
        run = ListedRun(
            storage,
            path=path,
            wait_seconds=limits.run_seconds if wait_seconds is None else wait_seconds,
            wait_limits=limits,
            clock=self._clock,
            logger=get_logger(),
            range_steps=range_steps,
            attempt=checked_attempt(attempt),
            on_restart=self._forget_values,
        )
        event_files = EventFiles(storage)
        values = ValueReader(event_files, run.await_event_file)
        self._set_up(name, storage, path, run, event_files, values, range_steps, attempt)

    def _set_up(
        self,
        name: str,
        storage: Storage,
        path: str,
        run: RunSource,
        event_files: EventFiles,
        values: ValueReader,
        range_steps: StepRange | None = None,
        attempt: int | None = None,
    ) -> None:
        """Set what every trial has, wherever its run comes from."""
        self.name = name
        self.path = path
        self.range_steps = range_steps
        #: The number of the attempt that was asked for; None for the newest.
        self.attempt = attempt
        self.logger = get_logger()
        self.storage = storage
        self.event_files = event_files
        self.value_reader = values
        self._run = run
        self._refreshing = threading.RLock()
        self._refresh_switch = RefreshSwitch()
        self._tensors: dict[str, Tensor] = {}
        self._collections_given: dict[str, Collection] = {}
        self._names = NameMatcher()

    @property
    def index(self) -> KnownSteps:
        """The steps of the run and what they hold."""
        return self._run.index

    @property
    def values_read(self) -> int:
        """How often a value, a shape or an observation of the run was asked for: names do not count."""
        return self.value_reader.values_read

    # Steps, modes, workers, attempts

    def steps(self, mode: ModeKeys | None = GLOBAL, show_incomplete_steps: bool = False) -> list[int]:
        """Return the steps that can be read; incomplete ones too with `show_incomplete_steps`."""
        self.maybe_refresh()
        mode = as_mode(mode)
        if show_incomplete_steps or self._run.progress.has_all_settled:
            return list(self.index.steps(mode))
        settled = self._run.progress.is_settled
        return [step for step, at in self.index.numbered(mode) if settled(at)]

    def available_steps(self, mode: ModeKeys | None = GLOBAL) -> list[int]:
        """Return `steps(mode)`: its older name."""
        return self.steps(mode)

    def modes(self) -> KeysView[ModeKeys]:
        """Return the modes in which steps were saved, except GLOBAL."""
        self.maybe_refresh()
        return self.index.modes().keys()

    def mode(self, global_step: int) -> ModeKeys | None:
        """Return the mode of a global step; None if the step is not known."""
        return self.mode_modestep(global_step)[0]

    def mode_step(self, global_step: int) -> int | None:
        """Return the number of a global step within its mode; None if the step is not known."""
        return self.mode_modestep(global_step)[1]

    def mode_modestep(self, global_step: int) -> tuple[ModeKeys, int] | tuple[None, None]:
        """Return mode and number of a global step; (None, None) if the step is not known."""
        self.maybe_refresh()
        return self.index.mode_of(global_step) or (None, None)

    def saved_at(self, global_step: int) -> float | None:
        """Return when its last worker had saved a step, in seconds since 1970; None if not recorded."""
        self.maybe_refresh()
        workers = self.index.workers_at(global_step, GLOBAL) or {}
        times = [written.saved_at for written in workers.values() if written.saved_at is not None]
        return max(times, default=None)

    def global_step(self, mode: ModeKeys | None, mode_step: int) -> int | None:
        """Return the global step of a mode's step; None if it is not known."""
        self.maybe_refresh()
        mode = as_mode(mode)
        if mode is GLOBAL:
            return mode_step
        return self.index.global_step(mode_step, mode)

    def workers(self) -> list[str]:
        """Return the workers that have a collections file or have saved something, sorted.

        Where tensors were chosen, workers that save digests alone are not among them.
        """
        self.maybe_refresh()
        replicas = Replicas.of_run(self.collection_manager.meta)
        if replicas is not None and replicas.beside:
            return [replicas.chief]
        return sorted({*self.index.workers, *self._run.announced_workers})

    def attempts(self) -> tuple[Attempt, ...]:
        """Return the attempts of the training, in order: their steps, workers, times, and how each ended.

        The trial shows the newest one, and below the step at which it resumed those before it.
        `create_trial(path, attempt=0)` shows the run as the first one left it, as far as its files remain.
        """
        self.maybe_refresh()
        return self._run.attempts()

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
        """Return the sorted names of saved tensors, all or those of a step, a mode and a pattern.

        `regex` is one pattern or several, of which one must match. `collection` selects the tensors that
        it lists and those that its own patterns match. Reductions count under the name of their tensor.
        Tensors that hold observations are left out, unless a pattern or the collection asks for them by their
        `smdebug/` and they are tensors of the run; `measured_tensors` lists what they measure.
        `show_prefixed_tensors` has no effect.
        """
        mode = as_mode(mode)
        if isinstance(collection, str):
            collection = self.collection(collection)
        chosen = self.chosen_by(regex, collection)
        self.maybe_refresh()
        index = self.index
        names = index.tensor_names(mode) if step is None else index.tensor_names_at(step, mode)
        found = list(names) if chosen is None else [name for name in names if chosen(name)]
        is_observed = index.has_tensor(FACTS)
        if not asks_for_observations(regex, collection) or (is_observed and self.observations.are_beside):
            left_out = OBSERVATIONS if is_observed else SERIES
            found = [name for name in found if not name.startswith(left_out)]
        return found

    def chosen_by(
        self, regex: str | Iterable[str] | None, collection: str | Collection | None
    ) -> Callable[[str], bool] | None:
        """Return what chooses names by a pattern or a collection; None if all are chosen."""
        if regex is not None and collection is not None:
            raise SMDebugValueError("Only one of `regex` or `collection` can be passed")
        if isinstance(collection, str):
            collection = self.collection(collection)
        return self._names.chosen_by(regex, collection)

    def tensors(
        self,
        *,
        step: int | None = None,
        mode: ModeKeys | None = GLOBAL,
        regex: str | Iterable[str] | None = None,
        collection: str | Collection | None = None,
    ) -> list[str]:
        """Return `tensor_names(...)`, without moving `last_complete_step`."""
        self._follow(counted=False)
        with self.refreshing(False):
            return self.tensor_names(step=step, mode=mode, regex=regex, collection=collection)

    def tensors_matching_regex(self, regex_list: str | Iterable[str]) -> list[str]:
        """Return the names of the tensors that one of the patterns matches."""
        return self.tensor_names(regex=regex_list)

    def tensors_in_collection(self, coll_name: str | Collection) -> list[NamedTensor]:
        """Return the tensors of a collection, each a name that also has the methods of a tensor."""
        return [NamedTensor(name, self) for name in self.tensor_names(collection=coll_name)]

    def tensor(self, tname: str) -> Tensor:
        """Return the tensor of that name; `TensorUnavailable` if none was saved or measured so far."""
        known = self._tensors.get(tname)
        if known is not None:
            return known
        if not (self.has_tensor(tname) or str(tname) in self.observations.measured):
            raise TensorUnavailable(tname)
        return self._tensors.setdefault(str(tname), Tensor(str(tname), self))

    def has_tensor(self, tname: str) -> bool:
        """Return True if a tensor of that name was saved so far."""
        if self.index.has_tensor(tname):
            return True
        self.maybe_refresh()
        return self.index.has_tensor(tname)

    def inputs(self, step: int, mode: ModeKeys | None = GLOBAL) -> list[Array]:
        """Return the model's inputs at a step: the values of collection `inputs`, by number."""
        return self._values_at(step, mode, collection="inputs")

    def labels(self, step: int, mode: ModeKeys | None = GLOBAL) -> list[Array]:
        """Return the labels at a step: the values of all tensors named so, by number."""
        return self._values_at(step, mode, regex="labels*")

    def predictions(self, step: int, mode: ModeKeys | None = GLOBAL) -> list[Array]:
        """Return the predictions at a step: the values of all tensors named so, by number."""
        return self._values_at(step, mode, regex="predictions*")

    # Collections

    def collections(self) -> dict[str, Collection]:
        """Return the collections of the run, by name."""
        self.maybe_refresh()
        return self.collection_manager.get_collections()

    def collection(self, coll_name: str) -> Collection:
        """Return the collection of that name; a new empty one if the run has none.

        The caller may extend it: `tensor_names(collection=coll_name)` then selects by what was added, too.
        """
        self.maybe_refresh()
        known = self.collection_manager.get_collections().get(coll_name)
        given = self._collections_given.get(coll_name)
        if given is None:
            given = Collection(coll_name) if known is None else known
            self._collections_given[coll_name] = given
        elif known is not None and known is not given:  # read again since
            extend_collection(given, known)
        return given

    @property
    def collection_manager(self) -> CollectionManager:
        """The collections as read from the run."""
        return self._run.collections

    @property
    def origin(self) -> Origin | None:
        """Where the run comes from: command, versions, commit, hyperparameters; None if it was not kept."""
        from smdebug.trials.origin_reading import read_origin

        return read_origin(self.storage)

    def checkpoints(self) -> list[Checkpoint]:
        """Return where the training has saved its weights, as far as it was marked, in the order of steps."""
        from smdebug.trials.checkpoint_reading import read_checkpoints

        return read_checkpoints(self.storage)

    def stalls(self) -> dict[str, Stall]:
        """Return where each rank was when it last made no progress, by worker."""
        from smdebug.trials.stall_reading import read_stalls

        return read_stalls(self.storage)

    def closing_notes(self, workers: Iterable[str]) -> dict[str, ClosingNote]:
        """Return what those of these workers have said of their steps that have closed the run."""
        from smdebug.trials.closing_reading import read_closing_notes

        return read_closing_notes(self.storage, workers)

    def logged(self, name: str | None = None, *, kind: str | None = None) -> list[LoggedValue]:
        """Return what was logged to be looked at, in the order of steps; `read` returns each value.

        `kind` is image, text, table, confusion_matrix, histogram or audio.
        """
        from smdebug.trials.logged_reading import read_logged

        found = read_logged(self.storage)
        return [each for each in found if name in (None, each.name) and kind in (None, each.kind)]

    # How far the run has come

    @property
    def num_workers(self) -> int:
        """The number of workers, from the collections file."""
        return self._run.progress.num_workers

    @property
    def last_complete_step(self) -> int:
        """The global step up to which queries have settled all steps; -1 before the first query.

        Where a worker is missing, each query gives up half a window of steps.
        """
        return self._run.last_complete_step

    @property
    def loaded_all_steps(self) -> bool:
        """Whether the run has ended and all of it was read."""
        return self._run.progress.ended

    @property
    def state(self) -> str:
        """How the run stands: `ended`; `failed`, if the training raised or was terminated; or `not ended`."""
        from smdebug.trials.closing_reading import has_failed

        if self.loaded_all_steps:
            return "ended"
        return "failed" if has_failed(self.storage, self.observations.expected_workers) else "not ended"

    @property
    def workers_for_global_step(self) -> dict[int, set[str]]:
        """The workers that have written each global step."""
        return {step: set(workers) for step, workers in list(self.index.workers_by_step.items())}

    @property
    def last_index_token(self) -> str | None:
        """The path of the last index file of `last_complete_step`."""
        token = self._run.last_index_token
        return None if token is None else f"{self.path.rstrip('/')}/{token}"

    @property
    def damaged_files(self) -> dict[str, SMDebugError]:
        """Files that could not be read, with the error: index files, and event files with damaged values."""
        return self._run.damaged_files

    @property
    def missing_steps(self) -> MissingSteps:
        """The steps that were saved, or could not be written, and are not there; false if there are none.

        Its text says how many there are and which is the first. A later attempt's steps are not missing.
        """
        return self._run.missing_steps(self.maybe_refresh)

    @property
    def index_reader(self) -> Any:
        """The run's index files under the older interface."""
        from smdebug.trials.live.index_reader import IndexReader

        return IndexReader(self.storage)

    def has_passed_step(self, step: int, mode: ModeKeys | None = GLOBAL) -> StepState:
        """Return whether a step can be read, was skipped, or might still arrive."""
        self.maybe_refresh()
        return self.state_of(step, as_mode(mode))

    def wait_for_steps(self, required_steps: Iterable[int], mode: ModeKeys | None = GLOBAL) -> None:
        """Wait until all these steps can be read.

        `StepUnavailable` as soon as one of them was skipped, `NoMoreData` if the run ended before it.
        """
        mode = as_mode(mode)
        required_steps = list(required_steps)
        progress = self._run.progress
        if mode is GLOBAL and progress.ended and progress.workers_by_step.keys() >= set(required_steps):
            return  # the common case, short: all of the run is known
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

    @property
    def has_more_files(self) -> bool:
        """Whether the last refresh left index files unread, as `WaitLimits.index_files` limits it."""
        return self._run.has_more

    # Refreshing

    @property
    def dynamic_refresh(self) -> bool:
        """Whether queries refresh the trial. `no_refresh` and `refresh` change it for a block."""
        return self._refresh_switch.value

    @dynamic_refresh.setter
    def dynamic_refresh(self, value: bool) -> None:
        self._refresh_switch.set(value)

    def refreshing(self, value: bool) -> AbstractContextManager[None]:
        """Turn the refreshing by queries on or off until the block ends, however it ends."""
        return self._refresh_switch.override(value)

    def maybe_refresh(self, name: str | None = None) -> None:
        """Refresh the trial, unless the run has ended or refreshing is off.

        With the name of a tensor: only if that tensor is not known yet.
        """
        if name is None or not self.index.has_tensor(name):
            self._follow(counted=True)

    def _follow(self, *, counted: bool) -> None:
        if self._run.progress.ended or not self._refresh_switch.value:
            return
        with self._refreshing:
            if not self._run.progress.ended:
                self._run.follow()
            if counted:
                self._run.count_settled()

    def refresh_data(self) -> None:
        """Read the index files that are new, now."""
        with self._refreshing:
            self._run.refresh()
            self._run.count_settled()

    # Used by tensors and tools

    def state_of(self, step: int, mode: ModeKeys) -> StepState:
        """Return `has_passed_step` from what is known now."""
        return self._run.state_in_mode(step, mode)

    def is_settled(self, global_step: int) -> bool:
        """Return True if no later arrival can change what is known of that step."""
        return self._run.progress.is_settled(global_step)

    def in_parallel(self, read: Callable[[S], T], items: list[S]) -> list[T]:
        """Return `read(item)` for each item, as many at a time as the storage profits from."""
        return in_parallel(read, items, min(self.storage.concurrency, self.most_readers))

    def _forget_values(self) -> None:
        """Forget what was read of event files, since a later attempt may have replaced them."""
        self.event_files.forget()
        self._tensors.clear()
        self.__dict__.pop("observations", None)

    def _values_at(self, step: int, mode: ModeKeys | None, **which: Any) -> list[Array]:
        names = sorted(self.tensor_names(step=step, mode=mode, **which), key=_number_at_the_end)
        return [self.tensor(name).value(step, mode) for name in names]

    # As a value

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how to open the run again: a copy, here or in another process, reads it again."""
        opened = (type(self), self.name, self.storage, self.path, self.range_steps, self.attempt)
        return _reopened, opened, (self._collections_given, self.dynamic_refresh)

    def __setstate__(self, state: tuple[dict[str, Collection], bool]) -> None:
        self._collections_given, self.dynamic_refresh = state

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


def _reopened(
    kind: type[Trial],
    name: str,
    storage: Storage,
    path: str,
    range_steps: StepRange | None,
    attempt: int | None = None,
) -> Trial:
    trial = kind.__new__(kind)
    Trial.__init__(trial, name, storage, path=path, range_steps=range_steps, attempt=attempt)
    return trial


def _number_at_the_end(name: str) -> tuple[int, str]:
    number = name.rpartition("_")[2]
    return (int(number) if number.isdecimal() else -1, name)
