"""Hooks that are driven by callbacks: what those of frameworks build on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from smdebug.config.collection import Collection
from smdebug.config.collection_manager import CollectionManager
from smdebug.files.framing import Checksum
from smdebug.mode_keys import ModeKeys
from smdebug.numbers.batches import batch_facts
from smdebug.saving.arrays.adapter import NamedTensors
from smdebug.saving.hooks.base_hook import BaseHook, ScalarCache
from smdebug.saving.hooks.logged import checked_names, checked_numbers, checked_step, hand_over
from smdebug.saving.hooks.options import HookOptions, takes, with_options_of
from smdebug.saving.logged.keeping import split
from smdebug.saving.logged.values import Value
from smdebug.saving.planning.default_plan import ObservingPlan
from smdebug.saving.planning.save_plan import Members
from smdebug.saving.planning.step_clock import BEFORE_THE_FIRST, StepClock
from smdebug.saving.recording.recorder_states import State

__all__ = [
    "BaseHook",
    "CallbackHook",
    "Checksum",
    "FrameworkHook",
    "ScalarCache",
]


class CallbackHook(BaseHook):
    """A hook that a framework calls while it runs: its first step is 0, and layers name their tensors.

    What the hook of a framework builds on, besides the calls of every hook:

    - it sets `adapter`, and overrides `agreement`, `begin_step`, `end_step` and `end_run` where it has to;
    - it asks `due`, `saves_now`, `next_is_due`, `collections_due`, `last_step`, `has_closed`,
      `names_with_outputs` and `count_outputs`;
    - it calls `record_inputs`, `record_outputs`, `assign`, `mark_interrupted`, `warn_once` and `guarded`.
    """

    own_series: frozenset[str] = frozenset({"loss"})
    """The series that the hook makes of every batch: what is logged under these names is `logged/<name>`."""

    @with_options_of(HookOptions)
    def __init__(
        self,
        collection_manager: CollectionManager,
        default_include_collections: Iterable[str],
        profiler_config_parser: Any = None,
        data_type_name: str | None = None,
        *positional: Any,
        **options: Any,
    ):
        self.data_type_name = data_type_name
        if data_type_name is not None:
            self.adapter = NamedTensors(data_type_name)
        self._uses: dict[str, int] = {}  # how often each name was used within the step
        self._uses_of: StepClock | None = None
        super().__init__(
            collection_manager,
            default_include_collections,
            profiler_config_parser,
            BEFORE_THE_FIRST,
            *positional,
            **options,
        )
        hand_over(self)

    @property
    def last_step(self) -> StepClock | None:
        """The current or last step, in its own mode; None before the first."""
        return self.recorder.last_step

    def mark_interrupted(self) -> None:
        """Mark the step that is open as written only as far as it came."""
        if self.recorder.open is not None:
            self.recorder.open.interrupted = True

    @property
    def due(self) -> Members:
        """The collections that are due at the current step, as a set of bits; 0 for none."""
        return self.recorder.due

    @property
    def saves_now(self) -> bool:
        """Whether something is saved at the current step."""
        return bool(self.recorder.due)

    @property
    def next_is_due(self) -> bool:
        """Whether something is saved at the next step, if it is of the same mode."""
        run = self.recorder.run
        if run is None:
            return False
        mode = self.mode
        return run.plan.of_mode(mode).idle_after(self.mode_steps[mode]) == 0

    def collections_due(self) -> list[Collection]:
        """Return the collections that are due at the current step."""
        return self.recorder.collections_due()

    def assign(self, tensor_name: str, collection_name: str) -> None:
        """Add the tensor to a collection that no pattern would find it for."""
        if self.recorder.run is not None:
            self.recorder.run.plan.assign(tensor_name, collection_name)

    @property
    def has_closed(self) -> bool:
        """Whether the run has ended."""
        return self.recorder.state is State.CLOSED

    def record_tensor_value(self, tensor_name: str, tensor_value: Any) -> None:
        """Record the result of a function that is not a layer, as `<name>_output_0`, `_1` and so on."""
        if isinstance(tensor_value, list | tuple | Mapping):
            self.record_outputs(tensor_name, tensor_value)
        else:
            self.record_numbered(f"{tensor_name}_output_", [tensor_value])

    def record_inputs(self, name: str, values: Any) -> None:
        """Record the inputs of a layer: every tensor in them, however nested, as `<name>_input_<i>`."""
        if self.recorder.due:
            self.record_numbered(f"{name}_input_", self.tensors_in(values))

    def record_batch(self, batch: Any) -> None:
        """Record the tensors of a batch, however nested, as `batch_input_<i>`.

        The shapes and the number of distinct rows are facts of the step.
        """
        if not self.recorder.due:
            return
        self.record_inputs("batch", batch)
        observations = self.noted
        if observations is not None:
            arrays = [self.adapter.to_array(tensor) for tensor in self.tensors_in(batch)]
            self.guarded(lambda: observations.note(**batch_facts(arrays)))

    def record_outputs(self, name: str, values: Any) -> None:
        """Record the outputs of a layer: every tensor in them, however nested, as `<name>_output_<i>`."""
        if self.recorder.due:
            self.record_numbered(f"{name}_output_", self.tensors_in(values))

    def log(
        self, given: Mapping[str, Any] | None = None, /, *, step: int | None = None, **named: Any
    ) -> None:
        """Keep numbers of your own, such as `hook.log(accuracy=0.9)` or `hook.log({"val/accuracy": 0.9})`.

        They belong to the step that runs, or ran last, unless `step` names another. Under the default plan
        each is a series, like the loss; else it is saved as `scalar/<name>`.

        Images, texts, tables, and what `smdebug.Audio` and others wrap are kept to be looked at.
        """
        at = checked_step(step)
        numbers, values = split(checked_names({**(given or {}), **named}))
        for name, number in checked_numbers(self.adapter.number, numbers).items():
            series = f"logged/{name}" if name in self.own_series else name
            self.recorder.log(name, number, at, series=series)
            if self.observations is not None and self.tensorboard_dir is not None:
                self.save_scalar(name, number)
        for name, value in values.items():
            self._keep_to_be_looked_at(name, value, at)

    def _keep_to_be_looked_at(self, name: str, value: Value, step: int | None) -> None:
        recorder, last = self.recorder, self.recorder.last_step
        is_written = recorder.run is None or (recorder.run.writer is not None and not self.dry_run)
        if recorder.state >= State.QUIET or not is_written:
            return
        at = step if step is not None else 0 if last is None else last.step
        mode = ModeKeys.TRAIN if last is None else last.mode
        self.guarded(lambda: self.logged.add(name, value, at, mode.name))

    def mark_checkpoint(self, path: Any, *, step: int | None = None) -> None:
        """Note that the weights were saved at `path`, after the step that runs or ran last, or after `step`.

        What is found later names the last checkpoint before the problem began.
        """
        at = checked_step(step)
        last = self.recorder.last_step
        self.checkpoints.mark(path, at if at is not None else -1 if last is None else last.step)

    def carry(self, name: str, value: Any) -> None:
        """Keep one number of this step for the series of that name, if the default plan is active."""
        self.recorder.carry(name, value)

    def number_training_steps(self) -> None:
        """Number steps of training under the default plan; an evaluation has that of the one before."""
        self.recorder.numbers_training = True

    def observe_inputs_of(self, layer: str) -> None:
        """Observe the inputs of this layer, too, if the default plan is active: they are the batch."""
        run = self.recorder.run
        if run is not None and isinstance(run.plan, ObservingPlan):
            run.plan.observe_inputs_of(layer)

    def observe_parts(self) -> None:
        """Observe this worker's parts of sharded tensors, if the default plan is active."""
        run = self.recorder.run
        if run is not None and isinstance(run.plan, ObservingPlan):
            run.plan.observe_parts()

    def observe_as(self, tensor_name: str, kind: str) -> None:
        """Observe this tensor as one of that kind, if the default plan is active."""
        observer = self.recorder.capture.observer
        if observer is not None:
            observer.kinds[tensor_name] = kind

    def names_with_outputs(self) -> list[str]:
        """Return the names under which outputs were recorded at the current step."""
        if self._uses_of is not self.last_step:
            return []
        suffix = "_output_"
        return [name.removesuffix(suffix) for name in self._uses if name.endswith(suffix)]

    def count_outputs(self, name: str) -> int:
        """Return how many outputs were recorded under that name at the current step."""
        return self._uses.get(f"{name}_output_", 0) if self._uses_of is self.last_step else 0

    def tensors_in(self, values: Any) -> Iterator[Any]:
        """Find every tensor in values that may be nested."""
        if self.adapter.is_tensor(values):
            yield values
        elif isinstance(values, Mapping):
            for value in values.values():
                yield from self.tensors_in(value)
        elif isinstance(values, list | tuple):
            for value in values:
                yield from self.tensors_in(value)

    def warn_once(self, message: str, kind: str = "") -> None:
        """Warn of what cannot be done, and continue. Of several warnings of a `kind` the first is logged."""
        self.recorder.warn_once(message, kind)

    def guarded(self, capture: Callable[[], object]) -> None:
        """Capture something. If that goes wrong it is left out, and all else goes on."""
        try:
            capture()
        except Exception as error:  # noqa: BLE001
            self.leave_out(error)

    def leave_out(self, error: Exception) -> None:
        """Log, once for each place in the code, what went wrong; the rest is saved."""
        self.recorder.leave_out(error)

    def fail(self, error: Exception) -> None:
        """Log what went wrong, and save nothing from now on."""
        self.recorder.fail(error)

    def record_numbered(self, prefix: str, tensors: Iterable[Any]) -> None:
        """Record tensors as `<prefix>0`, `<prefix>1` and so on, after those recorded at this step."""
        for tensor in tensors:
            self.record(self.numbered(prefix), tensor)

    def numbered(self, prefix: str) -> str:
        """Return `<prefix>0`, or with the number after those that were used at this step."""
        step = self.recorder.last_step
        if self._uses_of is not step:  # another step: numbers start again
            self._uses_of = step
            self._uses.clear()
        number = self._uses.get(prefix, 0)
        self._uses[prefix] = number + 1
        return f"{prefix}{number}"


class FrameworkHook(CallbackHook):
    """The hook of a framework, which names its collections and has an `adapter` for its tensors."""

    saved_by_default: Iterable[str] = ()

    @takes(HookOptions)
    def __init__(self, options: HookOptions):
        self.set_up(options)

    def set_up(self, options: HookOptions) -> None:
        """Set the hook up with these options; all constructors call this."""
        CallbackHook.__init__(self, self.make_collections(), self.saved_by_default, options=options)

    def make_collections(self) -> CollectionManager:
        """Return the framework's collections."""
        raise NotImplementedError
