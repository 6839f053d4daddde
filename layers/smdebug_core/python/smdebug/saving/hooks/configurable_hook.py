"""The configuration of a hook, and the run that is prepared from it when the first step begins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from smdebug.config.collection import Collection
from smdebug.config.collection_manager import CollectionManager
from smdebug.config.constants import (
    DEFAULT_WORKER_NAME,
    WRITE_PATIENCE_SECONDS_KEY,
    WRITE_QUEUE_MB_KEY,
)
from smdebug.config.environment import number_in
from smdebug.config.json_config import create_hook_from_json_config
from smdebug.config.keys import CollectionKeys
from smdebug.config.save_config import SaveConfig
from smdebug.config.unknown_names import unknown_collection
from smdebug.exceptions import SMDebugRuntimeError, SMDebugTypeError
from smdebug.files.names import OBSERVED_COLLECTION
from smdebug.files.replicas import Replicas
from smdebug.logger import get_logger
from smdebug.saving.arrays.adapter import FrameworkAdapter
from smdebug.saving.ending.closing import write_all
from smdebug.saving.hooks import singleton
from smdebug.saving.hooks.options import HookOptions
from smdebug.saving.logged.keeping import RunLogged
from smdebug.saving.place.attempt import StartedAttempt
from smdebug.saving.place.checkpoint_writing import RunCheckpoints
from smdebug.saving.place.leftovers import remove_leftovers
from smdebug.saving.place.origin_writing import RunOrigin, described
from smdebug.saving.place.places import get_tensorboard_dir, place_for_a_run
from smdebug.saving.place.resume import CheckpointNotes, StateStore
from smdebug.saving.place.write_access import WriteAccess
from smdebug.saving.planning import default_plan
from smdebug.saving.planning.chosen_plan import ChosenPlan, ChosenPlanWithUpdates, ChosenReplicaPlan
from smdebug.saving.planning.save_plan import RAW_ONLY, SavePlan, fill_in, without_tensors
from smdebug.saving.planning.step_clock import StepClock
from smdebug.saving.process.companion import Companion, refuse_unevaluable
from smdebug.saving.recording.prepared_run import PreparedRun
from smdebug.saving.recording.recorder import Recorder
from smdebug.saving.recording.run_writer import RunWriter
from smdebug.saving.requests.control import Agree, ControlObject, StopWatch
from smdebug.saving.requests.stopping import StopCheck
from smdebug.saving.requests.zooming import COLLECTION, Zoom
from smdebug.saving.writing.background import MAX_BYTES, PATIENCE


class ConfigurableHook(singleton.AnyHook):
    """What a hook saves, when and where. Collections and rules can be configured until the first step.

    It is long because every option of every hook arrives here.
    """

    adapter = FrameworkAdapter()
    takes_over = False
    """Whether it closes an earlier hook of its class at the same place: a notebook's cell runs again."""
    observes = False
    """Whether it follows the default plan (`saving.default_plan`) if no option chooses tensors."""
    observes_chosen = False
    """Whether it observes beside chosen tensors, too (`saving.planning.chosen_plan`)."""
    measures_updates = False
    """Whether it measures updates itself, under names that no training records."""
    if_no_step = "Begin each step of the training with `with hook.step(modes.TRAIN):`"
    """What to do if a run has ended without a step, in a sentence."""
    if_no_loss = 'Record one at every step with hook.record("loss", loss)'
    """What to do if a run has ended without a loss."""
    if_no_optimizer: str | None = None
    """What to do if a run has ended without an optimizer, where optimizers are looked for."""
    write_patience = PATIENCE
    """Seconds without progress after which writing is given up."""

    def __init__(
        self,
        options: HookOptions,
        collection_manager: CollectionManager,
        default_include_collections: Iterable[str],
        init_step: int,
    ):
        self.options = options
        self.logger = get_logger()
        self.collection_manager = collection_manager
        self._storage = place_for_a_run(options.out_dir)
        self.out_dir = self._storage.location
        self.tensorboard_dir = get_tensorboard_dir(
            options.export_tensorboard, options.tensorboard_dir, self.out_dir
        )
        self.dry_run = options.dry_run
        self.save_config = SaveConfig.parse(options.save_config)
        self.reduction_config = options.reduction_config or RAW_ONLY
        self.include_regex = options.include_regex
        self.save_all = options.save_all
        self.save_all_workers = options.save_all_workers
        self._default_collections = list(default_include_collections)
        self.include_collections = self._included()
        self.agree: Agree | None = options.agree
        self.on_stop = options.on_stop
        self.chief_worker = DEFAULT_WORKER_NAME
        self.worker: str | None = None
        self.first_process: bool | None = None
        self.write_patience = number_in(WRITE_PATIENCE_SECONDS_KEY, self.write_patience)
        self._queue_bytes = int(number_in(WRITE_QUEUE_MB_KEY, MAX_BYTES >> 20) * (1 << 20))
        self._states = StateStore()
        self._resumed = resumed = self._states.last_state()
        self.training_run = 0 if resumed is None else resumed.training_run + 1
        self.init_step = init_step if resumed is None else resumed.step
        clock = StepClock.resumed(
            self.init_step, resumed.mode_steps if resumed else None, untouched=init_step
        )
        self.recorder = Recorder(clock, self.adapter, self._prepare)
        self.access: WriteAccess | None = None
        self._untouched = _state_of(self)
        self.companion: Companion | None = None
        refuse_unevaluable(
            options.evaluate,
            options.alerts,
            self.out_dir,
            rule_file=options.rule_file,
            sinks=options.sinks,
        )
        description = described(
            options.config,
            options.tags,
            options.note,
            origin=options.origin,
            not_secret=options.not_secret,
        )
        self.origin = RunOrigin(description)
        self.checkpoints = RunCheckpoints()
        self.logged = RunLogged(self.recorder.warn_once, description.not_secret)
        self._rules: bytes | None = None
        if options.rules is not None:
            self.set_rules(options.rules)

    @classmethod
    def create_from_json_file(
        cls, json_file_path: str | None = None, *, beside: Mapping[str, Any] | None = None
    ) -> Any:
        """Make a hook from a JSON file, or else from the one that `SMDEBUG_CONFIG_FILE_PATH` names.

        `beside` has what the file cannot say of an evaluation beside the training: `evaluate`, `alerts`,
        `rule_file` and `sinks`.
        """
        return create_hook_from_json_config(partial(cls, **(beside or {})), json_file_path)

    @property
    def prepared_collections(self) -> bool:
        """Whether the collections are final."""
        return self.recorder.run is not None

    @property
    def run_id(self) -> str:
        """The id in every file of this run; empty until the first step begins."""
        return "" if self._writer is None else self._writer.attempt.run_id

    # Collections and rules

    def get_collection(self, name: str, create: bool = True) -> Collection:
        """Return the collection of that name. It can be configured until the first step begins."""
        return self.collection_manager.get(name, create)

    def get_collections(self) -> dict[str, Collection]:
        return self.collection_manager.get_collections()

    def add_collection(self, collection: Collection) -> None:
        if not isinstance(collection, Collection):
            raise SMDebugTypeError(f"add_collection takes a Collection, not {collection!r}")
        self.collection_manager.add(collection)

    def include_without_choosing(self, collection: Collection, pattern: str) -> None:
        """Include tensors of something that was registered."""
        with self.without_choosing():
            collection.include(pattern)

    @contextmanager
    def without_choosing(self) -> Iterator[None]:
        """Change collections for what was registered, which is no choice of tensors by the user."""
        was_untouched = self._untouched == _state_of(self)
        yield
        if was_untouched:
            self._untouched = _state_of(self)

    def has_default_hook_configuration(self, default_saved_collections: Iterable[str] | None = None) -> bool:
        """Return whether only the collections are saved that need no configuration."""
        default = default_saved_collections
        return set(self.include_collections) == set(self._default_collections if default is None else default)

    def has_default_configuration(self) -> bool:
        return self.has_default_hook_configuration()

    def export_collections(self) -> None:
        """Write the collections file now; by default it comes with the first saved step and at the end."""
        run = self.recorder.prepared()
        if run is not None and run.writer is not None:
            write_all([run.writer.export_collections], run.writer, run.writer.patience)

    def set_rules(self, rules: Any) -> None:
        """Let these rules watch the run: names of rules, or entries as in `rules.json`.

        With the first step the chief worker writes `rules.json`, before anything else. Until then they
        can be set again.
        """
        if self.prepared_collections:
            raise SMDebugRuntimeError(
                f"The run has begun: to change its rules, change rules.json in {self.out_dir}"
            )
        from smdebug.saving.recording.rules_of_run import rules_file_of  # most hooks have no rules

        self._rules = rules_file_of(rules)

    def add_config(self, config: Any) -> None:
        """Add hyperparameters to those of the run; known names keep their values."""
        self.origin.add(config)

    # Preparing

    def end_run(self, *, ended: bool) -> None:
        """End the run, with an end marker if the training `ended` well."""
        raise NotImplementedError

    def agreement(self) -> Agree | None:
        """Return how the ranks of the framework agree on their last step; None if they cannot."""
        return None

    def _get_worker_name(self) -> str:
        return f"worker_{self.adapter.rank_and_size()[0]}"

    def _get_num_workers(self) -> int:
        return self.adapter.rank_and_size()[1]

    def _get_default_collections(self) -> Iterable[str]:
        """Return the collections that may stay without tensors."""
        return self.collection_manager.default_collections

    def is_chief(self) -> bool:
        """Return whether this is the worker that writes what the run has once."""
        return self.worker == self.chief_worker

    @property
    def _writer(self) -> RunWriter | None:
        return self.recorder.run.writer if self.recorder.run is not None else None

    def _included(self) -> list[str]:
        included = [*self._default_collections, *(self.options.include_collections or ())]
        if self.include_regex:
            self.collection_manager.get(CollectionKeys.DEFAULT).include(self.include_regex)
            included.append(CollectionKeys.DEFAULT)
        if self.save_all:
            self.collection_manager.get(CollectionKeys.ALL).include(".*")
            included.append(CollectionKeys.ALL)
        return list(dict.fromkeys(included))

    def _prepare(self) -> PreparedRun:
        """Do what has to wait for the first step, because the hook may be configured until then."""
        self.worker = self._get_worker_name()
        num_workers = self._get_num_workers()
        is_chief = self.is_chief()
        replicas = self._replicas(num_workers)
        plan = self._plan(digests_only=replicas is not None and not is_chief)
        self.collection_manager.set_num_workers(num_workers if self.save_all_workers else 1)
        if replicas is not None:
            self.collection_manager.update_meta(replicas.to_meta())
        saves = self.save_all_workers or is_chief or replicas is not None
        if not saves or not self._may_write(num_workers):
            return PreparedRun(plan, None, self._stop_check(None))
        writer = self._run_writer(num_workers)
        if self._rules is not None and is_chief and not self.dry_run:
            writer.write_rules(self._rules)
            is_default = isinstance(plan, default_plan.DefaultPlan)
            warn_of_rules(self._rules, None if is_default else self.include_collections)
        if not self.dry_run:
            self.logged.begin(self._storage, writer.attempt, self.worker)
        if is_chief and not self.dry_run:
            self.origin.begin(self._storage, writer.attempt)
            self.checkpoints.begin(self._storage, writer.attempt)
            if self.options.evaluate or self.options.sinks:
                self.companion = Companion(
                    self.out_dir,
                    self.options.alerts,
                    rule_file=self.options.rule_file,
                    sinks=self.options.sinks,
                )
                writer.after_step = self.companion.check
        notes = None
        if is_chief and self._states.is_active:
            notes = CheckpointNotes(self._states, self.training_run, writer.attempt.run_id)
        if not self.dry_run and isinstance(plan, default_plan.DefaultPlan):
            self.logger.info("Saving to %s: losses, and statistics of all tensors", self.out_dir)
        elif not self.dry_run and (is_chief or self.save_all_workers):
            saved = ", ".join(sorted(self.include_collections))
            self.logger.info("Saving to %s, of the collections: %s", self.out_dir, saved)
        stopping = self._stop_check(writer.attempt if is_chief else None)
        zoom = self._zoom(writer, plan)
        measured = self.options.system_metrics
        return PreparedRun(plan, writer, stopping, zoom, notes, self.dry_run, measured)

    def _zoom(self, writer: RunWriter, plan: SavePlan) -> Zoom | None:
        if self.options.look_for_stop is None:
            return None
        return Zoom(
            self._storage,
            writer.attempt,
            plan,
            worker=writer.worker,
            is_chief=self.is_chief() or self.save_all_workers,
            note_saved=partial(writer.add_to_collection, COLLECTION),
            look_every=self.options.look_for_stop,
        )

    @property
    def follows_default_plan(self) -> bool:
        """Whether to observe, because nothing chooses tensors: no option, and no changed collection."""
        return self.observes and not self.options.chooses_tensors and self._untouched == _state_of(self)

    def _replicas(self, num_workers: int) -> Replicas | None:
        """The workers that save digests beside the chief; None if there are none."""
        beside = not self.follows_default_plan
        if num_workers < 2 or self.options.chooses_workers or (beside and not self.observes_chosen):
            return None
        return Replicas(self.chief_worker, num_workers, beside)

    def _default_plan(self, *, digests_only: bool) -> SavePlan:
        self.save_config = default_plan.save_config()
        self.collection_manager.get(OBSERVED_COLLECTION).include([default_plan.MEMBERS])
        collections = self.collection_manager.get_collections()
        for collection in collections.values():
            fill_in(collection, self.save_config, self.reduction_config)
        included = {*self.include_collections, OBSERVED_COLLECTION}
        plan = default_plan.ReplicaPlan if digests_only else default_plan.DefaultPlan
        return plan(collection for collection in collections.values() if collection.name in included)

    def _plan(self, *, digests_only: bool = False) -> SavePlan:
        if self.follows_default_plan:
            return self._default_plan(digests_only=digests_only)
        collections = self.collection_manager.get_collections()
        for collection in collections.values():
            fill_in(collection, self.save_config, self.reduction_config)
        built_in = tuple(self._get_default_collections())
        included = [name for name in self.include_collections if name not in collections]
        for name in {*included, *without_tensors(collections.values(), built_in)}:
            self.logger.warning("%s", unknown_collection(name, {*built_in, *collections} - {name}))
        plan = self._chosen_plan(digests_only)
        return plan.prepared(collections.values(), self.include_collections, built_in)

    def _chosen_plan(self, digests_only: bool) -> type[SavePlan]:
        """Return the kind of plan where tensors are chosen."""
        if not self.observes_chosen:
            return SavePlan
        if digests_only:
            return ChosenReplicaPlan
        return ChosenPlanWithUpdates if self.measures_updates else ChosenPlan

    def _may_write(self, num_workers: int) -> bool:
        assert self.worker is not None
        access = WriteAccess(self, self._storage, self.worker)
        self.first_process = access.acquire(num_workers)
        if self.first_process:
            self.access = access
        return self.first_process

    def _run_writer(self, num_workers: int) -> RunWriter:
        assert self.worker is not None
        assert self.access is not None
        attempt = StartedAttempt.of(
            self._storage,
            self.worker,
            num_workers,
            run_id=self.options.run_id,
            resumed=self._resumed,
            first_step=self.recorder.first_step,
        )
        self.training_run = attempt.training_run
        if attempt.resumed_at is not None:
            remove_leftovers(self._storage, self.worker)
        saves_scalars = not self.dry_run and (self.save_all_workers or self.is_chief())
        self.collection_manager.update_meta(attempt.to_meta())
        return RunWriter(
            self._storage,
            self.worker,
            attempt,
            self.collection_manager,
            self.access,
            self.adapter,
            checksum=self.options.checksum,
            patience=self.write_patience,
            queue_bytes=self._queue_bytes,
            tensorboard_dir=self.tensorboard_dir if saves_scalars else None,
        )

    def _stop_check(self, attempt: StartedAttempt | None) -> StopCheck | None:
        """The chief reads the control object, for its attempt of the run; the others only agree."""
        look_every = self.options.look_for_stop
        if look_every is None:
            return None
        if self.agree is None:
            self.agree = self.agreement()
        place = self._storage
        control = None if attempt is None else ControlObject(place, attempt, look_every=look_every)
        if control is None and self.agree is None:
            return None
        return StopCheck(StopWatch(control, self.agree), lambda: self.on_stop)


def warn_of_rules(rules: bytes, saved: Iterable[str] | None) -> None:
    """Log each rule that does not exist, or that will find nothing to check among the collections."""
    from smdebug.saving.recording import rules_of_run  # most hooks have no rules

    without = [] if saved is None else rules_of_run.rules_without_tensors(rules, saved)
    for sentence in [*rules_of_run.unknown_rules(rules), *without]:
        get_logger().warning("%s", sentence)


def _state_of(hook: ConfigurableHook) -> tuple[Any, ...]:
    """Return what scripts may change of a hook before its first step, to detect whether they did."""
    collections = hook.collection_manager.get_collections().values()
    return (
        tuple(sorted((collection.name, _text_of(collection)) for collection in collections)),
        repr(hook.save_config),
        repr(hook.reduction_config),
        hook.include_regex,
        tuple(hook.include_collections),
        hook.save_all,
    )


def _text_of(collection: Collection) -> str:
    return repr(
        (
            list(collection.include_regex),
            sorted(collection.tensor_names),
            collection.save_config,
            collection.reduction_config,
            collection.save_histogram,
        )
    )
