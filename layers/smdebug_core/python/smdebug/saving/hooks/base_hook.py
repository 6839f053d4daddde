"""The hook: saves the tensors of a training as its configuration says.

    with hook.step(modes.TRAIN):        # which step is it?   StepClock
        hook.record("loss", loss)       # is it wanted now?   SavePlan
                                        # a copy of it        OpenStep
                                        # its files           RunWriter, BackgroundWriter

A hook that is used correctly never raises because of what it saves or where: a failure is logged once, and
the training continues. A wrong configuration is refused by the constructor, or when the first step begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np

from smdebug.config.collection import Collection
from smdebug.config.collection_manager import CollectionManager
from smdebug.exceptions import (
    SMDebugError,
    SMDebugTypeError,
    SMDebugValueError,
    TrainingStopped,
)
from smdebug.mode_keys import ModeKeys
from smdebug.saving.arrays.adapter import FrameworkAdapter
from smdebug.saving.ending.closing import EndOfRun
from smdebug.saving.hooks import singleton
from smdebug.saving.hooks.configurable_hook import ConfigurableHook
from smdebug.saving.hooks.error_agent import ErrorHandlingAgent
from smdebug.saving.hooks.options import HookOptions, with_options_of
from smdebug.saving.observations.step_observations import StepObservations
from smdebug.saving.planning.default_plan import OBSERVED, DefaultPlan
from smdebug.saving.process.process_end import is_success
from smdebug.saving.recording.open_step import OpenStep
from smdebug.saving.recording.prepared_run import PreparedRun
from smdebug.saving.recording.recorder_states import State
from smdebug.saving.requests.control import StopRequest

MODE_NAMES = ", ".join(f"modes.{mode.name}" for mode in ModeKeys)


class ScalarCache(NamedTuple):
    """A scalar that waits for its step."""

    scalar_name: str
    scalar_val: Any
    mode: ModeKeys
    sm_metric: bool
    write_tb: bool
    write_event: bool
    timestamp: float | None = None


class BaseHook(ConfigurableHook):
    """What all hooks have in common: steps, and what is saved of them until the run ends."""

    @with_options_of(HookOptions)
    def __init__(
        self,
        collection_manager: CollectionManager,
        default_include_collections: Iterable[str],
        profiler_config_parser: Any = None,
        init_step: int = 0,
        *positional: Any,
        **options: Any,
    ):
        given = HookOptions.of(*positional, **options)
        super().__init__(given, collection_manager, default_include_collections, init_step)
        self.profiler_config_parser = profiler_config_parser
        self._end_of_run = EndOfRun(self)
        self.step_context = _StepContext(self)
        singleton.set_hook(self)
        ErrorHandlingAgent.get_error_handling_agent().set_hook(self)

    def _prepare(self) -> PreparedRun:
        run = super()._prepare()
        if run.records and isinstance(run.plan, DefaultPlan):  # which keeps losses for the next saved step
            self._end_of_run.come_before_termination()
        if self.companion is not None and self.companion.uses_script_runs:
            self._end_of_run.come_before_tools()
        return run

    # Where the training is

    @property
    def step(self) -> StepNumber:
        """The current or last step, counted over all modes (-1 before the first); called, it begins
        the next one: `with hook.step(modes.TRAIN):`."""
        number = StepNumber(self.recorder.step)
        number.hook = self
        return number

    @property
    def mode(self) -> ModeKeys:
        return self.recorder.clock.mode

    @property
    def mode_steps(self) -> dict[ModeKeys, int]:
        """The last step of each mode that was ever set."""
        return self.recorder.clock.mode_steps

    @property
    def noted(self) -> StepObservations | None:
        """What is observed, whatever is saved; None if nothing is, or before the first step."""
        observer = self.recorder.capture.observer
        return None if observer is None else observer.observations

    @property
    def observations(self) -> StepObservations | None:
        """What is observed under the default plan; None if it is not active, or before the first step."""
        run = self.recorder.run
        return self.noted if run is not None and isinstance(run.plan, DefaultPlan) else None

    @property
    def last_saved_step(self) -> int | None:
        writer = self._writer
        return None if writer is None else writer.last_saved_step

    @property
    def writer(self) -> OpenStep | None:
        """The step that is being recorded, if anything of it was."""
        return self.recorder.open

    def set_mode(self, mode: ModeKeys) -> None:
        """Count the steps from the next one on for that mode."""
        if not isinstance(mode, ModeKeys):
            raise SMDebugValueError(f"Invalid mode {mode!r}. A mode is one of {MODE_NAMES}")
        self.recorder.set_mode(mode)

    # A step

    def begin_step(self, mode: ModeKeys | None = None) -> None:
        """Begin the next step, of `mode` or else the mode that is set. The previous step ends."""
        try:
            self.recorder.begin(mode)
        except Exception as error:  # noqa: BLE001 - whatever it is, the training continues
            self.contain(error)

    def end_step(self, *, interrupted: bool = False) -> None:
        """End the step: what was recorded is handed over, marked if the step was interrupted."""
        try:
            self.recorder.end(interrupted=interrupted)
        except Exception as error:  # noqa: BLE001 - whatever it is, the training continues
            self.contain(error)

    def contain(self, error: Exception) -> None:
        """Let no error end the training: log it, and save nothing from now on.

        Raised are requests to stop, and before the first step what is wrong with the configuration.
        """
        is_refused = isinstance(error, SMDebugError) and self.recorder.last_step is None
        if is_refused or isinstance(error, TrainingStopped):
            raise error
        self.recorder.fail(error)

    def wants(self, tensor_name: str) -> bool:
        """Return whether this tensor would be saved now: check before work that only saving needs."""
        wanted = self.recorder.wanted(tensor_name)
        if wanted is None or wanted.by_chief:
            return False
        return not (wanted is OBSERVED and self.recorder.observes_beside)

    def takes(self, tensor_name: str) -> bool:
        """Return whether this tensor would be saved now, or observed beside those that are."""
        return self.recorder.wanted(tensor_name) is not None

    def includes(self, tensor_name: str) -> bool:
        """Return whether this tensor is saved or observed at some steps."""
        return self.recorder.includes(tensor_name)

    def should_save_tensor_or_collection(self, tensor_name: str, collection_name: str) -> bool:
        """Return whether this tensor, or that collection, is saved at the current step."""
        due = self.recorder.collections_due()
        is_due = any(collection.name == collection_name for collection in due)
        return is_due or self.wants(tensor_name)

    def record(self, tensor_name: str, tensor_value: Any) -> None:
        """Save a tensor if a collection wants it at this step.

        It is copied before this returns, so the training may go on changing it.
        """
        self.recorder.record(tensor_name, tensor_value)

    def record_all(self, tensors: Mapping[str, Any]) -> None:
        """Record several tensors, by name."""
        recorder = self.recorder
        is_kept = recorder.due or recorder.capture.observer is not None
        if is_kept or recorder.state is not State.IN_STEP:
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
        array = np.array(_real_number(self.adapter, name, value))
        if sm_metric:
            self.recorder.log_metric(name, float(array.reshape(-1)[0]), timestamp)
        self.recorder.save(f"scalar/{name}", array, timestamp, is_scalar=True)

    def save_tensor(
        self,
        tensor_name: str,
        tensor_value: Any,
        collections_to_write: str | Collection | Iterable[str | Collection] = "default",
    ) -> None:
        """Save a tensor, whatever the save config says, as a member of those collections.

        Its step is the one that runs, or ran last. A value that cannot be saved is logged and left out.
        """
        array = self.recorder.capture.array_of(tensor_name, tensor_value)
        if array is None:
            return
        if isinstance(collections_to_write, str | Collection):
            collections_to_write = [collections_to_write]
        for named in collections_to_write:
            name = named.name if isinstance(named, Collection) else named
            self.collection_manager.get(name).add_tensor_name(tensor_name)
        owned = array is not tensor_value and array.base is None
        self.recorder.save(tensor_name, array if owned else np.array(array))

    # The end

    @property
    def stop_requested(self) -> StopRequest | None:
        """The request to stop the training, if there is one; the next step begins with it."""
        stopping = self.recorder.run.stopping if self.recorder.run is not None else None
        return None if stopping is None else stopping.request

    def record_trace_events(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing: the profiler is not part of this library."""

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until everything saved so far is written or lost; return whether `timeout` was enough."""
        return self.recorder.flush(timeout)

    def close(self) -> None:
        """End the run: write what is still open, the collections and, as the chief, the end marker."""
        self.end_run(ended=True)

    _cleanup = close  # what scripts for the old library call

    def _prepare_collections(self) -> None:
        """Do nothing, for scripts of the old library: the first step prepares the collections."""

    def __enter__(self) -> Any:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        well = error is None or isinstance(error, TrainingStopped)
        self.end_run(ended=well or (isinstance(error, SystemExit) and is_success(error.code)))

    def end_run(self, *, ended: bool) -> None:
        """End the run, with an end marker if the training `ended` well. The second time does nothing."""
        self._end_of_run.come(ended)


class StepNumber(int):
    """The number of a step. Called, it begins the next one."""

    hook: BaseHook

    def __call__(self, mode: ModeKeys | None = None) -> _StepContext:
        """Begin the next step, and end it where the `with` block ends, if there is one."""
        self.hook.begin_step(mode)
        return self.hook.step_context

    def __reduce__(self) -> tuple[type[int], tuple[int]]:
        return int, (int(self),)  # a checkpoint that keeps the number does not keep the hook


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


def _real_number(adapter: FrameworkAdapter, name: str, value: Any) -> np.ndarray[Any, Any]:
    """Return a scalar as an array; raise if it is not one real number."""
    try:
        array = adapter.to_array(value)
        if array.size == 1 and array.dtype.kind not in "USOc":
            float(array.reshape(-1)[0])
            return array
    except (TypeError, ValueError):
        pass
    raise SMDebugTypeError(f"Scalar {name} must be one real number, not {value!r}")
