"""The hook: what a training tells of its tensors is saved as its configuration says.

    with hook.step(modes.TRAIN):        # where are we?       StepClock
        hook.record("loss", loss)       # is it wanted now?   SavePlan
                                        # a copy of it        OpenStep
                                        # written behind      BackgroundWriter

A hook that is used rightly never raises because of what it saves or where: when something fails it says so
once, loudly, and the training goes on. What is configured wrongly is refused: by the constructor, or when
the first step begins.
"""

from __future__ import annotations

import atexit
import os
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np

from smdebug.config.collection import Collection
from smdebug.config.collection_manager import CollectionManager
from smdebug.config.constants import (
    DEFAULT_WORKER_NAME,
    WRITE_PATIENCE_SECONDS_KEY,
    WRITE_QUEUE_MB_KEY,
)
from smdebug.config.environment import is_sagemaker_job, number_in
from smdebug.config.json_config import create_hook_from_json_config
from smdebug.config.keys import (
    NON_HISTOGRAM_COLLECTIONS,
    NON_REDUCTION_COLLECTIONS,
    CollectionKeys,
)
from smdebug.config.parsing import patterns, truth, words
from smdebug.config.reduction_config import ReductionConfig
from smdebug.config.save_config import SaveConfig
from smdebug.exceptions import (
    SMDebugError,
    SMDebugRuntimeError,
    SMDebugTypeError,
    SMDebugValueError,
    StorageError,
    TrainingStopped,
)
from smdebug.files.events import as_saved_array
from smdebug.files.framing import Checksum
from smdebug.files.names import END_MARKER, collections_key
from smdebug.logger import get_logger
from smdebug.mode_keys import ModeKeys
from smdebug.saving import claim, singleton
from smdebug.saving.attempt import Attempt
from smdebug.saving.background import MAX_BYTES, PATIENCE, BackgroundWriter
from smdebug.saving.control import LOOK_EVERY, Agree, ControlObject, StopRequest, StopWatch
from smdebug.saving.copies import CopyMemory
from smdebug.saving.error_agent import ErrorHandlingAgent
from smdebug.saving.late_tensors import LateTensors
from smdebug.saving.open_step import OpenStep
from smdebug.saving.other_workers import CLOSED, wait_for_workers
from smdebug.saving.patience import within
from smdebug.saving.places import (
    TENSORBOARD_FOLDER,
    Place,
    get_tensorboard_dir,
    place_for_a_run,
)
from smdebug.saving.process_end import ProcessEnd, is_success
from smdebug.saving.ranks import ALONE
from smdebug.saving.resume import SavedState, StateStore
from smdebug.saving.sagemaker_metrics import SageMakerMetrics
from smdebug.saving.save_plan import NOBODY, RAW_ONLY, ModePlan, SavePlan, Wanted
from smdebug.saving.step_clock import StepClock
from smdebug.saving.tensorboard_export import TensorboardExport
from smdebug.storage import open_storage

NOTHING_DUE = ModePlan(())
CLOSING_PATIENCE = 5.0
"""Seconds within which a storage that had failed must answer, to be given the end of the run."""

# Who writes where, in this process.
_writing: weakref.WeakValueDictionary[tuple[str, str], BaseHook] = weakref.WeakValueDictionary()


class ScalarCache(NamedTuple):
    """A scalar that waits for its step."""

    scalar_name: str
    scalar_val: Any
    mode: ModeKeys
    sm_metric: bool
    write_tb: bool
    write_event: bool
    timestamp: float | None = None


class BaseHook:
    """What all hooks have in common: configuration, steps, saving, closing."""

    #: TensorFlow's names end in `:0`, and there the names of reductions keep it.
    _keeps_colon_index = False
    #: Does it end another of its kind that saves to the same place, as a notebook's cell that is run again?
    _takes_over = False
    _patience = PATIENCE

    def __init__(
        self,
        collection_manager: CollectionManager,
        default_include_collections: Iterable[str],
        profiler_config_parser: Any = None,
        init_step: int = 0,
        out_dir: Place | None = None,
        export_tensorboard: bool = False,
        tensorboard_dir: str | None = None,
        dry_run: bool = False,
        reduction_config: ReductionConfig | None = None,
        save_config: SaveConfig | Mapping[ModeKeys, Any] | None = None,
        include_regex: str | Iterable[str] | None = None,
        include_collections: str | Iterable[str] | None = None,
        save_all: bool = False,
        include_workers: str = "one",
        *,
        run_id: str | None = None,
        checksum: Checksum = "constant",
        rules: Any = None,
        agree: Agree | None = None,
        on_stop: Callable[[TrainingStopped], object] | None = None,
        look_for_stop: float | None = LOOK_EVERY,
    ):
        self.logger = get_logger()
        if reduction_config is not None and not isinstance(reduction_config, ReductionConfig):
            raise SMDebugTypeError(
                f"reduction_config must be a ReductionConfig, not {reduction_config!r}"
            )
        if checksum not in ("constant", "tfrecord"):
            raise SMDebugValueError(f'checksum must be "constant" or "tfrecord", not {checksum!r}')
        self._storage = place_for_a_run(out_dir)
        self.out_dir = self._storage.location
        self.tensorboard_dir = get_tensorboard_dir(
            truth(export_tensorboard, "export_tensorboard"), tensorboard_dir, self.out_dir
        )
        self.dry_run = truth(dry_run, "dry_run")
        self.save_config = SaveConfig.parse(save_config)
        self.reduction_config = reduction_config or RAW_ONLY
        self.profiler_config_parser = profiler_config_parser
        self.collection_manager = collection_manager
        self.include_regex = (
            [include_regex]
            if isinstance(include_regex, str)
            else patterns(include_regex, "include_regex") or None
        )
        self.save_all = truth(save_all, "save_all")
        self.include_collections = self._included(
            default_include_collections, words(include_collections, "include_collections")
        )
        self.save_all_workers = str(include_workers).strip().lower() == "all"
        self.chief_worker = DEFAULT_WORKER_NAME
        self.worker: str | None = None
        self.first_process: bool | None = None
        self.prepared_collections = False
        self.last_saved_step: int | None = None
        self._default_include_collections = list(default_include_collections)
        self._checksum: Checksum = checksum
        self._given_run_id = run_id
        self._rules_file: bytes | None = None
        self.agree = agree
        self.on_stop = on_stop
        self._look_for_stop = look_for_stop
        if look_for_stop is not None and not look_for_stop >= 0:
            raise SMDebugValueError(
                f"look_for_stop is a number of seconds, or None for never, not {look_for_stop!r}"
            )
        self._stop_watch: StopWatch | None = None
        self._was_due = 0  # what the step that runs or ran last was to save

        self._patience = number_in(WRITE_PATIENCE_SECONDS_KEY, self._patience)
        self._queue_bytes = int(number_in(WRITE_QUEUE_MB_KEY, MAX_BYTES >> 20) * (1 << 20))
        self._states = StateStore()
        resumed = self._states.last_state()
        self.training_run = 0 if resumed is None else resumed.training_run + 1
        self._resumed = resumed
        self._begins_at = init_step
        self.init_step = init_step if resumed is None else resumed.step
        self._known = StepClock.resumed(
            self.init_step, resumed.mode_steps if resumed else None, untouched=init_step
        )
        self._known_to_have_run: StepClock | None = None
        self._idle = 0  # how many steps more may pass with nothing to do but count them
        self._passed = 0  # how many did, of which `_known` does not know yet
        self._plan: SavePlan | None = None
        if rules is not None:
            self.set_rules(rules)
        self._mode_plan = NOTHING_DUE
        self._due: int | None = None  # None: no step runs
        self._open: OpenStep | None = None
        self._late: LateTensors | None = None
        self._early: list[tuple[str, np.ndarray[Any, Any], float | None, bool]] = []
        self._submitted: int | None = None  # the last step that was handed over
        self._previous: int | None = None  # the last step whose index file is there
        self._background: BackgroundWriter | None = None
        self._copies: CopyMemory | None = None
        self._claim: claim.Claim | None = None
        self._attempt = Attempt("", 0)
        self._board: TensorboardExport | None = None
        self._metrics = SageMakerMetrics()
        self._exported: str | None = None  # the collections file as it was written last
        self._named: set[str] = set()
        self._complained: set[str] = set()
        self._quiet = False
        self._closed = False
        self._process = os.getpid()
        self._process_end = ProcessEnd()
        self._step_context = _StepContext(self)
        singleton.set_hook(self)
        ErrorHandlingAgent.get_error_handling_agent().set_hook(self)
        atexit.register(self._at_exit)

    @classmethod
    def create_from_json_file(cls, json_file_path: str | None = None) -> Any:
        """A hook as the JSON file says; without a path, the one `SMDEBUG_CONFIG_FILE_PATH` names."""
        return create_hook_from_json_config(cls, json_file_path)

    # Where we are

    @property
    def _clock(self) -> StepClock:
        """The step that runs, or ran last, in the mode that is set."""
        if self._passed:
            self._count_what_passed()
        return self._known

    @property
    def _ran(self) -> StepClock | None:
        """The step that runs, or ran last; None before the first."""
        if self._passed:
            self._count_what_passed()
        return self._known_to_have_run

    def _count_what_passed(self) -> None:
        self._known = self._known_to_have_run = self._known.next(self._passed)
        self._passed = 0

    @property
    def step(self) -> StepNumber:
        """The step that runs, or ran last, counted over all modes (-1 before the first); called, it begins
        the next one: `with hook.step(modes.TRAIN):`."""
        number = StepNumber(self._clock.step)
        number.hook = self
        return number

    @property
    def mode(self) -> ModeKeys:
        return self._clock.mode

    @property
    def mode_steps(self) -> dict[ModeKeys, int]:
        """How far each mode has come that was ever set."""
        return self._clock.mode_steps

    @property
    def run_id(self) -> str:
        """What every file of this run is marked with; empty until the first step begins."""
        return self._attempt.run_id

    @property
    def writer(self) -> OpenStep | None:
        """The step that is being recorded, if anything of it was."""
        return self._open

    def set_mode(self, mode: ModeKeys) -> None:
        """Let the steps from the next one on belong to that mode."""
        if not isinstance(mode, ModeKeys):
            raise SMDebugValueError(
                f"Invalid mode {mode!r}. A mode is one of {', '.join(f'modes.{m.name}' for m in ModeKeys)}"
            )
        self._known = self._clock.in_mode(mode)
        self._idle = 0
        if self._plan is not None and not self._quiet:
            self._mode_plan = self._plan.of_mode(mode)

    # A step

    def begin_step(self, mode: ModeKeys | None = None) -> None:
        """Begin the next step, of `mode` or else the mode that is set. The step before ends."""
        if self._idle and (mode is None or mode is self._known.mode):
            self._idle -= 1
            self._passed += 1
            self._due = NOBODY
            return
        if mode is not None and mode is not self._clock.mode:
            self.set_mode(mode)
        if self._open is not None or self._late is not None:
            self._hand_over()
        watch = self._stop_watch
        if watch is not None and (self._was_due or self._asks_every_step()):
            self._stop_if_asked(watch)
        if self._plan is None:
            self._prepare()
        clock = self._known = self._known_to_have_run = self._clock.next()
        self._due = self._was_due = self._mode_plan.due(clock.mode_step)
        if self._early:
            self._record_early()
        if self._states.is_active:
            self._note_checkpoint()
        elif not self._due and self._open is None and not self._asks_every_step():
            self._idle = self._mode_plan.idle_after(clock.mode_step)

    def end_step(self, *, interrupted: bool = False) -> None:
        """End the step: what was recorded of it is on its way. An interrupted one is marked so."""
        self._due = None
        if self._open is not None:
            self._open.interrupted = interrupted
            self._hand_over()

    def wants(self, tensor_name: str) -> bool:
        """Would this tensor be saved now? Ask before work that is only done for saving."""
        due = self._due
        if not due or self._plan is None:
            return False
        return self._plan.wanted(tensor_name, due) is not None

    def record(self, tensor_name: str, tensor_value: Any) -> None:
        """Offer a tensor. It is saved if a collection wants it at this step, else nothing happens to it.

        It is copied before this returns, so the training may go on changing it.
        """
        due = self._due
        if not due:
            if due is None:
                self._say_there_is_no_step(tensor_name)
            return
        assert self._plan is not None
        wanted = self._plan.wanted(tensor_name, due)
        if wanted is not None:
            self._save(tensor_name, tensor_value, wanted)

    def record_all(self, tensors: Mapping[str, Any]) -> None:
        """Offer several tensors, by name."""
        if self._due or self._due is None:
            for name, value in tensors.items():
                self.record(name, value)

    def save_scalar(
        self,
        name: str,
        value: Any,
        sm_metric: bool = False,
        timestamp: float | None = None,
    ) -> None:
        """Save a number as `scalar/<name>`, whatever the save config says, and show it in TensorBoard.

        With `sm_metric` it is a metric of the SageMaker job as well. Its step is the one that runs, or ran
        last.
        """
        array = np.array(self._one_number(name, value))
        if sm_metric:
            number = float(array.reshape(-1)[0])
            self._metrics.log(name, number, self.mode, self._clock.step, timestamp)
        self._save_at_its_step(f"scalar/{name}", array, timestamp, is_scalar=True)

    def save_tensor(
        self,
        tensor_name: str,
        tensor_value: Any,
        collections_to_write: str | Collection | Iterable[str | Collection] = "default",
    ) -> None:
        """Save a tensor of your own, whatever the save config says, as a member of those collections.

        Its step is the one that runs, or ran last. What cannot be saved is reported, and left out.
        """
        array = self._converted(tensor_name, tensor_value)
        if array is None:
            return
        if isinstance(collections_to_write, str | Collection):
            collections_to_write = [collections_to_write]
        for named in collections_to_write:
            name = named.name if isinstance(named, Collection) else named
            self.collection_manager.get(name).add_tensor_name(tensor_name)
        owned = array is not tensor_value and array.base is None
        self._save_at_its_step(tensor_name, array if owned else np.array(array), None)

    # Rules, and being asked to stop

    def set_rules(self, rules: Any) -> None:
        """Let these rules watch the run: names of rules, or what `rules.json` says of one.

        With the first step the chief worker writes `rules.json`, before anything else. Until then they
        can be set again.
        """
        if self._plan is not None:
            raise SMDebugRuntimeError(
                f"The run has begun: to change its rules, change rules.json in {self.out_dir}"
            )
        from smdebug.saving.rules_of_run import rules_file_of  # most hooks bring none

        self._rules_file = rules_file_of(rules)

    @property
    def stop_requested(self) -> StopRequest | None:
        """What the training was asked, if it was asked to stop; the next step begins with that."""
        return None if self._stop_watch is None else self._stop_watch.request

    # Collections

    def get_collection(self, name: str, create: bool = True) -> Collection:
        """The collection of that name. Configure it before the first step; later is too late."""
        return self.collection_manager.get(name, create)

    def get_collections(self) -> dict[str, Collection]:
        return self.collection_manager.get_collections()

    def add_collection(self, collection: Collection) -> None:
        if not isinstance(collection, Collection):
            raise SMDebugTypeError(f"add_collection takes a Collection, not {collection!r}")
        self.collection_manager.add(collection)

    def should_save_tensor_or_collection(self, tensor_name: str, collection_name: str) -> bool:
        """Is this tensor, or that collection, saved at the step that runs?"""
        due = self._due
        if not due or self._plan is None:
            return False
        if any(c.name == collection_name for c in self._plan.collections(due)):
            return True
        return self.wants(tensor_name)

    def has_default_hook_configuration(
        self, default_saved_collections: Iterable[str] | None = None
    ) -> bool:
        """Are just the collections saved that would be if nobody had configured anything?"""
        default = (
            self._default_include_collections
            if default_saved_collections is None
            else default_saved_collections
        )
        return set(self.include_collections) == set(default)

    def has_default_configuration(self) -> bool:
        return self.has_default_hook_configuration()

    def export_collections(self) -> None:
        """Write the collections file now. It is written by itself with the first step, and at the end."""
        if self._plan is None:
            self._prepare()
        if self._background is not None:
            self._write_last([self._export_now], self._patience)

    def record_trace_events(self, *args: Any, **kwargs: Any) -> None:
        """Does nothing: the profiler is not part of this library."""

    # The end

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until all that was saved so far is written, or known to be lost."""
        self._hand_over()
        return self._background is None or self._background.drain(timeout)

    def close(self) -> None:
        """End the run: write what is still open, the collections, and, as the chief, the end marker."""
        self._close(ended=True)

    def __enter__(self) -> Any:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        well = error is None or isinstance(error, TrainingStopped)
        well = well or (isinstance(error, SystemExit) and is_success(error.code))
        self._close(ended=well)

    # For the hooks of frameworks

    def _get_worker_name(self) -> str:
        """This process among the workers of the run."""
        return f"worker_{self._rank_and_size()[0]}"

    def _get_num_workers(self) -> int:
        return self._rank_and_size()[1]

    def _rank_and_size(self) -> tuple[int, int]:
        """This process's rank among those that train together, and how many there are."""
        return ALONE

    def _get_default_collections(self) -> Iterable[str]:
        """Collections that may stay without tensors."""
        return self.collection_manager.default_collections

    @staticmethod
    def _make_numpy_array(tensor_value: Any) -> np.ndarray[Any, Any]:
        """The array to save for a value; SMDebugTypeError if there is none."""
        if not isinstance(tensor_value, np.ndarray | np.generic) and hasattr(
            tensor_value, "__array__"
        ):
            tensor_value = np.asarray(tensor_value)
        return as_saved_array(tensor_value)

    #: Fills an array with the values of another.
    _copy: Callable[[Any, Any], object] = staticmethod(np.copyto)

    @staticmethod
    def _is_copied(value: Any, array: np.ndarray[Any, Any]) -> bool:
        """Does the array that was made of the value belong to nobody else?"""
        return array is not value and array.base is None and not hasattr(value, "__array__")

    # Preparing

    def _included(self, default: Iterable[str], asked_for: Sequence[str]) -> list[str]:
        included = [*default, *asked_for]
        if self.include_regex:
            self.collection_manager.get(CollectionKeys.DEFAULT).include(self.include_regex)
            included.append(CollectionKeys.DEFAULT)
        if self.save_all:
            self.collection_manager.get(CollectionKeys.ALL).include(".*")
            included.append(CollectionKeys.ALL)
        return list(dict.fromkeys(included))

    def _prepare(self) -> None:
        """Everything that waits for the first step, because it may be configured until then."""
        if self._closed:
            return
        self.worker = self._get_worker_name()
        num_workers = self._get_num_workers()
        collections = self.collection_manager.get_collections()
        for collection in collections.values():
            self._fill_in(collection)
        plan = SavePlan.prepared(
            collections.values(), self.include_collections, self._get_default_collections()
        )
        for name in self.include_collections:
            if name not in collections:
                self.logger.warning("There is no collection %s, so nothing is saved of it", name)
        self.collection_manager.set_num_workers(num_workers if self.save_all_workers else 1)
        self._plan = plan
        self.prepared_collections = True
        if not (self.save_all_workers or self._is_chief()) or not self._may_write(num_workers):
            self._quiet = True
            self._watch_for_stop(None)
            return
        self._attempt = Attempt.of(
            self._storage,
            self.worker,
            num_workers,
            run_id=self._given_run_id,
            resumed=self._resumed,
        )
        self.training_run = self._attempt.training_run
        self.collection_manager.update_meta(self._attempt._asdict())
        self._write_rules()
        self._background = BackgroundWriter(
            self._storage, patience=self._patience, max_bytes=self._queue_bytes
        )
        self._copies = CopyMemory(self._queue_bytes, self._copy)
        self._watch_for_stop(self._attempt if self._is_chief() else None)
        if self.dry_run:
            self._quiet = True
            return
        self._board = self._tensorboard()
        self._mode_plan = plan.of_mode(self.mode)
        saved = ", ".join(sorted(self.include_collections))
        self.logger.info("Saving to %s, of the collections: %s", self.out_dir, saved)

    def _fill_in(self, collection: Collection) -> None:
        """What the collection leaves open comes from the hook."""
        if collection.save_config is None:
            collection.save_config = SaveConfig(self.save_config.mode_save_configs)
        else:
            collection.save_config.merge_default_save_config(self.save_config)
        if collection.name in NON_REDUCTION_COLLECTIONS:
            collection.reduction_config = RAW_ONLY
        elif collection.reduction_config is None:
            collection.reduction_config = self.reduction_config
        if collection.name in NON_HISTOGRAM_COLLECTIONS:
            collection.save_histogram = False

    def _is_chief(self) -> bool:
        return self.worker == self.chief_worker

    def _may_write(self, num_workers: int) -> bool:
        """Is nobody else writing there, as far as can be told? If somebody is, that is said loudly."""
        assert self.worker is not None
        other = _writing.get((self.out_dir, self.worker))
        if self._takes_over and other is not self and type(other) is type(self):
            self.logger.warning(
                "Another hook saves to %s in this process, and ends here: its training was begun anew",
                self.out_dir,
            )
            other._close(ended=False)
            other = None
        if other is not None and other is not self:
            self.first_process = False
            self.logger.error(
                "Another hook of this process saves to %s as %s: this one saves nothing. Close the other "
                "first (hook.close()), or choose another out_dir.",
                *(self.out_dir, self.worker),
            )
            return False
        self.first_process = True
        # Claims are for places that processes of one machine share: a bucket has none.
        if num_workers == 1 and self._storage.concurrency == 1:
            self.first_process = self._claimed()
        if self.first_process:
            _writing[self.out_dir, self.worker] = self
        return self.first_process

    def _claimed(self) -> bool:
        mine = claim.Claim(self._storage)
        try:
            outcome = within(mine.take, self.out_dir)
        except StorageError as error:
            self.logger.warning("%s could not be claimed: %s", self.out_dir, error)
            return True
        if outcome is claim.Outcome.NOT_MINE and mine.owner and mine.owner.is_me():
            outcome = claim.Outcome.TAKEN_OVER  # from a hook of this process that is gone
        if outcome is claim.Outcome.NOT_MINE:
            assert mine.owner is not None
            self.logger.error(
                "Process %d on %s already saves to %s: this one saves nothing. Start one process, tell "
                "the hook of its worker, or choose another out_dir.",
                *(mine.owner.pid, mine.owner.host, self.out_dir),
            )
            return False
        if outcome is claim.Outcome.TAKEN_OVER:
            self.logger.warning("%s was claimed by a process that is gone", self.out_dir)
        self._claim = mine
        return True

    def _tensorboard(self) -> TensorboardExport | None:
        if self.tensorboard_dir is None:
            return None
        if self.tensorboard_dir == f"{self.out_dir.rstrip('/')}/{TENSORBOARD_FOLDER}":
            return TensorboardExport(self._storage, f"{TENSORBOARD_FOLDER}/")
        return TensorboardExport(open_storage(self.tensorboard_dir))

    def _write_rules(self) -> None:
        content = self._rules_file
        if content is None or self.dry_run or not self._is_chief():
            return
        from smdebug.saving.rules_of_run import RULES_FILE

        try:
            within(lambda: self._storage.write(RULES_FILE, content), self.out_dir, self._patience)
        except StorageError as error:
            self.logger.error("No rules watch this run, as they could not be written: %s", error)

    # Being asked to stop

    def _watch_for_stop(self, attempt: Attempt | None) -> None:
        """The chief looks at the control object, for its attempt of the run; the others only agree."""
        if self._look_for_stop is None:
            return
        control = None
        if attempt is not None:
            control = ControlObject(self._storage, attempt, look_every=self._look_for_stop)
        if control is not None or self.agree is not None:
            self._stop_watch = StopWatch(control, self.agree)

    def _asks_every_step(self) -> bool:
        return self._stop_watch is not None and self._stop_watch.every_step

    def _stop_if_asked(self, watch: StopWatch) -> None:
        """Between two steps: end the training if that is wanted, with all that was saved written."""
        if self._ran is None or self._plan is None:
            return
        step = self._ran.step
        # By the plan, not by what was saved: ranks that save nothing have to agree at the same steps.
        due = self._plan.of_mode(self._ran.mode).due(self._ran.mode_step)
        try:
            if not watch.is_time(step, is_save_step=bool(due)):
                return
        except Exception as error:  # noqa: BLE001 - whatever it is, the training goes on
            self._stop_watch = None
            self.logger.warning("Whether to stop cannot be agreed on any more: %r", error)
            return
        self._stop_watch = None  # said once: who catches it and goes on, goes on
        request = watch.request or StopRequest()
        stopped = TrainingStopped(request.reason, step, request.finding_id)
        self.logger.warning("%s", stopped)
        self._due = None  # no step runs: who catches this and ends gently saves nothing more
        self.flush(self._patience)
        if self.on_stop is not None:
            try:
                self.on_stop(stopped)
            except Exception as error:
                self.logger.exception("on_stop failed: %s", error)
        raise stopped

    # Saving

    def _save(self, name: str, value: Any, wanted: Wanted) -> None:
        array = self._converted(name, value)
        if array is None:
            return
        if name not in self._named:
            self._note_name(name)
        if array.size == 0:
            return
        owned = self._is_copied(value, array)
        try:
            self._current().record(name, array, wanted, owned)
            if wanted.is_metric and self._metrics.is_active and array.dtype.kind in "biuf":
                self._metrics.log(name, float(array.mean()), self.mode, self._clock.step)
        except (SMDebugTypeError, SMDebugValueError) as error:
            self._complain_once(name, error)
        except Exception as error:  # noqa: BLE001 - whatever it is, the training goes on
            self._go_quiet(error)

    def _one_number(self, name: str, value: Any) -> np.ndarray[Any, Any]:
        try:
            array = self._make_numpy_array(value)
            if array.size == 1 and array.dtype.kind not in "USOc":
                float(array.reshape(-1)[0])
                return array
        except (TypeError, ValueError):
            pass
        raise SMDebugTypeError(f"Scalar {name} must be one real number, not {value!r}")

    def _converted(self, name: str, value: Any) -> np.ndarray[Any, Any] | None:
        try:
            return self._make_numpy_array(value)
        except Exception as error:  # noqa: BLE001 - a value's own conversion may do anything
            self._complain_once(name, error)
            return None

    def _complain_once(self, name: str, error: Exception) -> None:
        if name not in self._complained:
            self._complained.add(name)
            self.logger.warning("Tensor %s is not saved: %s", name, error)

    def _note_name(self, name: str) -> None:
        assert self._plan is not None
        self._named.add(name)
        for collection in self._plan.collections(self._plan.members(name)):
            collection.add_tensor_name(name)

    def _save_at_its_step(
        self,
        name: str,
        array: np.ndarray[Any, Any],
        timestamp: float | None,
        is_scalar: bool = False,
    ) -> None:
        if self._quiet or self._closed:
            return
        if self._ran is None:  # it waits for the first step
            self._early.append((name, array, timestamp, is_scalar))
            return
        self._idle = 0  # the next step has something to hand over
        try:
            if self._due is None and self._open is None and self._ran.step == self._submitted:
                if self._late is None:
                    self._late = LateTensors(self._ran, **self._marks())
                self._late.add(name, array, timestamp)
            elif is_scalar:
                self._current().record_scalar(name, array, timestamp)
            else:
                self._current().write_tensor(name, array, timestamp, owned=True)
        except (SMDebugTypeError, SMDebugValueError) as error:
            self.logger.warning("%s is not saved: %s", name, error)
        except Exception as error:  # noqa: BLE001 - whatever it is, the training goes on
            self._go_quiet(error)

    def _record_early(self) -> None:
        early, self._early = self._early, []
        for waiting in early:
            self._save_at_its_step(*waiting)

    def _current(self) -> OpenStep:
        """The step that runs or ran last, open for recording."""
        if self._open is None:
            assert self._ran is not None
            board = self._board.step(self._ran.step, self._ran.mode) if self._board else None
            self._open = OpenStep(
                self._ran,
                keep_colon_index=self._keeps_colon_index,
                board=board,
                memory=self._copies,
                **self._marks(),
            )
        return self._open

    def _marks(self) -> dict[str, Any]:
        return {"worker": self.worker, "checksum": self._checksum, "meta_extras": self._meta_extras}

    def _meta_extras(self) -> Mapping[str, Any]:
        """What an index file says of its run; asked when the file is made, which is in order of steps."""
        return {**self._attempt._asdict(), "previous_step": self._previous}

    def _hand_over(self) -> None:
        """Give what is open to the background. It waits there only for room, never for the storage."""
        step, self._open = self._open, None
        late, self._late = self._late, None
        background = self._background
        if background is None or self._quiet:
            return
        try:
            if step is not None and step:
                job = step.job_after(background.storage, self._before_index, self._after_index)
                self._submitted = step.clock.step
                if background.submit(job):
                    self.last_saved_step = step.clock.step
            if late is not None and late:
                background.submit(late.job(background.storage))
        except Exception as error:  # noqa: BLE001 - whatever it is, the training goes on
            self._go_quiet(error)
        if background.failed:  # and has said so
            self._stop_recording()

    def _before_index(self) -> None:
        if self._exported is None:
            self._export_now()

    def _after_index(self, step: int) -> None:
        self._previous = step
        if self._claim is not None:
            self._claim.renew()

    def _export_now(self) -> None:
        """Write the collections file, if it would not be what it is already."""
        assert self.worker is not None
        content = self._collections_file()
        if content != self._exported:
            self._storage.write(collections_key(self.worker), content.encode())
            self._exported = content

    def _collections_file(self) -> str:
        while True:
            try:
                return self.collection_manager.to_json()
            except RuntimeError:  # a name was added meanwhile
                continue

    def _note_checkpoint(self) -> None:
        if self._quiet or not self._is_chief() or not self._states.is_checkpoint_updated():
            return
        state = SavedState(
            self.training_run, self._clock.step, self.mode_steps, self._attempt.run_id
        )
        try:
            self._states.update_state(state.to_record(self.last_saved_step))
        except OSError as error:
            self.logger.warning("The state beside the checkpoint could not be written: %s", error)

    # Going quiet, and closing

    def _go_quiet(self, error: Exception) -> None:
        self._open = self._late = None
        self._stop_recording()
        self.logger.exception(
            "smdebug saves nothing any more: %s: %s. The training goes on.",
            *(type(error).__name__, error),
        )

    def _stop_recording(self) -> None:
        self._quiet = True
        self._idle = 0
        self._copies = None
        self._mode_plan = NOTHING_DUE
        if self._due is not None:
            self._due = 0

    def _say_there_is_no_step(self, name: str) -> None:
        if not self._complained:
            self._complained.add(name)
            self.logger.warning(
                "Tensor %s was offered while no step runs, and is not saved. "
                "Record inside `with hook.step():`",
                name,
            )

    def _at_exit(self) -> None:
        if self._ran is not None or self._early:  # a hook that saw nothing leaves nothing
            self._close(ended=self._process_end.is_good())

    def _close(self, *, ended: bool) -> None:
        if self._closed or os.getpid() != self._process:
            return
        try:
            if self._plan is None:
                self._prepare()
            if self._early and self._ran is None and not self._quiet:
                self.begin_step()  # scalars without a step: they make one
            self._hand_over()
            self._write_the_end(ended)
        except SMDebugError as error:
            self.logger.error("The run could not be closed: %s", error)
        except Exception as error:  # noqa: BLE001 - whatever it is, the training has ended well
            self._go_quiet(error)
        finally:
            self._closed = True
            self._stop_recording()
            self._due = None
            atexit.unregister(self._at_exit)
            self._process_end.leave()
            if self.worker is not None and _writing.get((self.out_dir, self.worker)) is self:
                del _writing[self.out_dir, self.worker]

    def _write_the_end(self, ended: bool) -> None:
        background = self._background
        if background is None:
            return
        background.close()
        several = self.collection_manager.get_num_workers() > 1
        if several:
            self.collection_manager.update_meta({CLOSED: True})
        last: list[Callable[[], object]] = [self._export_now]
        if ended and self._is_chief() and not is_sagemaker_job():
            if several and not background.failed:
                self._write_last(last, self._patience)
                last = []
                wait_for_workers(self._storage, self._attempt, self._workers_elsewhere() + 1)
            last.append(lambda: self._storage.write(END_MARKER, b""))
        if self._claim is not None:
            last.append(self._claim.release)
        # A place that had failed may have recovered: without an end, readers would wait for it.
        patience = min(CLOSING_PATIENCE, self._patience) if background.failed else self._patience
        self._write_last(last, patience)

    def _write_last(self, acts: Iterable[Callable[[], object]], patience: float) -> None:
        """Do each of them, whatever becomes of the others."""
        problems: list[Exception] = []

        def do_all() -> None:
            for act in acts:
                try:
                    act()
                except Exception as error:  # noqa: BLE001 - the next may still succeed
                    problems.append(error)

        try:
            within(do_all, self.out_dir, patience)
        except StorageError as error:
            problems.append(error)
        if problems:
            self.logger.warning("The end of the run could not be written: %s", problems[0])

    def _workers_elsewhere(self) -> int:
        """How many other workers can close by themselves; those of this process may be next in line."""
        here = sum(1 for hook in _writing.values() if hook.out_dir == self.out_dir)
        return self.collection_manager.get_num_workers() - here


class StepNumber(int):
    """The number of a step, and the way to the next: called, it begins one."""

    hook: BaseHook

    def __call__(self, mode: ModeKeys | None = None) -> _StepContext:
        """Begin the next step, and end it where the `with` block ends, if there is one."""
        self.hook.begin_step(mode)
        return self.hook._step_context

    def __reduce__(self) -> tuple[type[int], tuple[int]]:
        return int, (int(self),)  # who keeps the number in a checkpoint does not keep the hook


class _StepContext:
    """Ends the step of its hook. One interrupted by an exception is written as far as it came."""

    __slots__ = ("_hook",)

    def __init__(self, hook: BaseHook):
        self._hook = hook

    def __enter__(self) -> BaseHook:
        return self._hook

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._hook.end_step(interrupted=kind is not None)
