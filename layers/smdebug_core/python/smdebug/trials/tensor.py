"""One tensor over the steps of a run: where it was saved, and its values there."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from smdebug.exceptions import (
    InvalidWorker,
    ShapeUnavailableForStep,
    SMDebugNotImplementedError,
    StepNotYetAvailable,
    StepUnavailable,
    TensorUnavailableForStep,
)
from smdebug.mode_keys import ModeKeys
from smdebug.numbers.reductions import compute_reduction
from smdebug.trials.arguments import as_mode
from smdebug.trials.progress import StepState
from smdebug.trials.shown import ShownTensor

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from smdebug.numbers.statistics import Statistics
    from smdebug.storage import Storage
    from smdebug.trials.known_steps import KnownSteps
    from smdebug.trials.observations.whole_run import Observations
    from smdebug.trials.stored.values import ValueReader
    from smdebug.trials.stored.worker_steps import Written

    Array = NDArray[Any]

GLOBAL = ModeKeys.GLOBAL
S = TypeVar("S")
T = TypeVar("T")


class TensorHome(Protocol):
    """What a tensor needs from its trial."""

    name: str
    storage: Storage
    value_reader: ValueReader

    @property
    def index(self) -> KnownSteps:
        """The steps of the run and what they hold."""

    @property
    def observations(self) -> Observations:
        """What was measured of tensors that were not saved."""

    def global_step(self, mode: ModeKeys | None, mode_step: int) -> int | None:
        """Return the global step of a mode's step; None if it is not known."""

    def maybe_refresh(self) -> None:
        """Refresh the trial, unless the run has ended or refreshing is off."""

    def is_settled(self, global_step: int) -> bool:
        """Return True if no later arrival can change what is known of that step."""

    def state_of(self, step: int, mode: ModeKeys) -> StepState:
        """Return whether a step can be read, was skipped, or might still arrive."""

    def in_parallel(self, read: Callable[[S], T], items: list[S]) -> list[T]:
        """Return `read(item)` for each item, several at a time."""

    def tensor(self, tname: str) -> Tensor:
        """Return the tensor of that name."""


class Tensor(ShownTensor):
    """A named value across steps, from `trial.tensor(name)`."""

    def __init__(self, name: str, trial: TensorHome):
        self.name = name
        self.trial = trial

    @property
    def original_name(self) -> str | None:
        """The framework's own name; None if no shape was saved."""
        return self.trial.index.original_name(self.name)

    def steps(self, mode: ModeKeys | None = GLOBAL, show_incomplete_steps: bool = False) -> list[int]:
        """Return the steps at which it was saved, counted within `mode`.

        Steps that some workers have yet to write are left out, unless `show_incomplete_steps` is true.
        """
        self.trial.maybe_refresh()
        mode = as_mode(mode)
        if not self.trial.index.has_tensor(self.name):  # it was measured alone
            return self.trial.observations.measured.steps(self.name, mode)
        known = self.trial.index.steps_of(self.name, mode)
        settled = self.trial.is_settled
        return [step for step, at in known if show_incomplete_steps or settled(at)]

    def first_seen(self, mode: ModeKeys | None = GLOBAL) -> int | None:
        """Return the global step at which it first was in a mode, saved or measured; None if at none."""
        self.trial.maybe_refresh()
        mode = as_mode(mode)
        if self.trial.index.has_tensor(self.name):
            return self.trial.index.first_seen(self.name, mode)
        steps = (self.trial.global_step(mode, step) for step in self.steps(mode))
        return next(steps, None)

    def value(self, step_num: int, mode: ModeKeys | None = GLOBAL, worker: str | None = None) -> Array:
        """Return the value at a step, of that worker or the first one that saved it.

        `StepNotYetAvailable` if it may still arrive, `StepUnavailable` if the step was not saved,
        `TensorUnavailableForStep` if the step was, without this tensor.
        """
        index = self.trial.index
        workers = index.at.get(step_num) if mode is GLOBAL else None
        if workers is not None and worker is None:  # the common case, short
            for at_step in workers.values():
                places = at_step.places.get(self.name)
                if places is not None and places.value is not None:
                    return self.trial.value_reader.read(at_step, places.value)
        mode = as_mode(mode)
        written = self._written(step_num, mode, worker)
        for at_step, places in written:
            if places.value is not None:
                return self.trial.value_reader.read(at_step, places.value)
        raise self._unavailable(step_num, mode, written)

    def values(self, mode: ModeKeys | None = GLOBAL, worker: str | None = None) -> dict[int, Array]:
        """Return all values of a mode, by step."""
        steps = self.steps(mode)
        values = self.trial.in_parallel(lambda step: self.value(step, mode, worker), steps)
        return dict(zip(steps, values, strict=True))

    def shape(
        self, step_num: int, mode: ModeKeys | None = GLOBAL, worker: str | None = None
    ) -> tuple[int, ...]:
        """Return the shape at a step, as saved, or else of the value, or of what was measured."""
        mode = as_mode(mode)
        self.trial.value_reader.values_read += 1
        try:
            written = self._written(step_num, mode, worker)
        except TensorUnavailableForStep:
            if self._row(step_num, mode, worker) is None:
                raise
            return self.trial.observations.measured.tensor(self.name).shape
        for at_step, places in written:
            if places.shape is not None:
                return self.trial.value_reader.saved_shape(at_step, places)
        for at_step, places in written:
            if places.value is not None:
                return self.trial.value_reader.shape(at_step, places.value)
        raise ShapeUnavailableForStep(self.name, step_num, mode)

    def reduction_value(
        self,
        step_num: int,
        reduction_name: str,
        mode: ModeKeys | None = GLOBAL,
        worker: str | None = None,
        abs: bool = False,
    ) -> Any:
        """Return a reduction at a step: as saved, else computed from the value, else from statistics.

        With `abs`, the reduction of the magnitudes. `TensorUnavailableForStep` if the step has none of these.
        Of a tensor with values that are not finite, statistics give NaN.
        """
        mode = as_mode(mode)
        try:
            written = self._written(step_num, mode, worker)
        except (StepUnavailable, TensorUnavailableForStep):
            measured = self._measured(step_num, reduction_name, mode, worker, bool(abs))
            if measured is None:
                raise
            return measured
        for at_step, places in written:
            position = places.reductions.get((reduction_name, bool(abs)))
            if position is not None:
                return self.trial.value_reader.read(at_step, position)
        for at_step, places in written:
            if places.value is not None:
                value = self.trial.value_reader.read(at_step, places.value)
                return compute_reduction(reduction_name, value, abs=bool(abs))
        raise self._unavailable(step_num, mode, written)

    def reduction_values(
        self, step_num: int, mode: ModeKeys | None = GLOBAL, worker: str | None = None
    ) -> dict[tuple[str, bool], Array]:
        """Return the reductions saved at a step, by name and whether of the magnitudes."""
        written = self._written(step_num, as_mode(mode), worker)
        for at_step, places in written:
            if places.reductions:
                return {
                    which: self.trial.value_reader.read(at_step, position)
                    for which, position in places.reductions.items()
                }
        return {}

    def sample(self, step_num: int, mode: ModeKeys | None = GLOBAL, worker: str | None = None) -> Array:
        """Return at most 128 values of the tensor at a step, in their order, as float32.

        They come from all parts of the tensor, and are read from its value, or else from its saved sample.
        """
        from smdebug.numbers.rows import SAMPLE_SIZE, sample_of

        mode = as_mode(mode)
        try:
            return sample_of(self.value(step_num, mode, worker), SAMPLE_SIZE)
        except (StepUnavailable, TensorUnavailableForStep):
            if not self.trial.observations.has_facts:
                raise
            return self.trial.observations.measured.sample(self.name, step_num, mode, worker)

    def statistics(
        self, step_num: int, mode: ModeKeys | None = GLOBAL, worker: str | None = None
    ) -> Statistics:
        """Return counts, extremes, means and norms of the value, from one pass over it.

        They are kept: another rule that asks for the same value does not read it again. Of a tensor that was
        only measured, they are those of the step, and infinite values count as NaN.
        """
        mode = as_mode(mode)
        try:
            written = self._written(step_num, mode, worker)
        except (StepUnavailable, TensorUnavailableForStep):
            row = self._row(step_num, mode, worker)
            if row is None:
                raise
            from smdebug.trials.observations.measured_reductions import statistics_in

            return statistics_in(row)
        for at_step, places in written:
            if places.value is not None:
                return self.trial.value_reader.statistics(at_step, places.value)
        raise self._unavailable(step_num, mode, written)

    def workers(self, step_num: int, mode: ModeKeys | None = GLOBAL) -> list[str]:
        """Return the workers that saved it at a step, or else those that measured it, sorted."""
        mode = as_mode(mode)
        index = self.trial.index
        written = index.written(self.name, step_num, mode)
        if not written:
            self.trial.maybe_refresh()
            written = self.trial.index.written(self.name, step_num, mode)
        workers = [at_step.worker for at_step, _ in written]
        if not workers and self.trial.observations.has_facts:
            workers = self.trial.observations.measured.workers(self.name, step_num, mode)
        if not workers:
            raise TensorUnavailableForStep(self.name, step_num, mode)
        return workers

    def prev_steps(self, step: int, n: int | None = None, mode: ModeKeys | None = GLOBAL) -> list[int]:
        """Return the last `n` steps up to and including `step` at which it was saved; all without `n`."""
        self.trial.maybe_refresh()
        found: list[int] = []
        if n is not None and n < 0:
            return found
        if not self.trial.index.has_tensor(self.name):  # it was measured alone
            found = [known for known in self.steps(mode) if known <= step]
            return found[-n:] if n else found
        settled = self.trial.is_settled
        for known, at in self.trial.index.back_from(self.name, step, as_mode(mode)):
            if settled(at):
                found.append(known)
                if n and len(found) >= n:
                    break
        return found[::-1]

    def step(self, step_num: int, mode: ModeKeys = GLOBAL) -> Any:
        """Raise an error that names its successors, `value` and `reduction_value`."""
        raise SMDebugNotImplementedError("step has been removed: use tensor.value or tensor.reduction_value")

    def __repr__(self) -> str:
        return f"<Tensor {self.name!r} of trial {self.trial.name!r}>"

    def _written(self, step: int, mode: ModeKeys, worker: str | None) -> Written:
        """Return what was saved of it at a step, by that worker or all, in order of the workers."""
        index = self.trial.index
        written = index.written(self.name, step, mode, worker)
        if not written or (worker is not None and written[0][0].worker != worker):
            self.trial.maybe_refresh()
            written = self.trial.index.written(self.name, step, mode, worker)
        if not written:
            match self.trial.state_of(step, mode):
                case StepState.NOT_YET_AVAILABLE:
                    raise StepNotYetAvailable(step, mode)
                case StepState.UNAVAILABLE:
                    raise StepUnavailable(step, mode)
            raise TensorUnavailableForStep(self.name, step, mode)
        if worker is not None and written[0][0].worker != worker:
            raise InvalidWorker(worker)
        return written

    def _measured(
        self, step: int, reduction: str, mode: ModeKeys, worker: str | None, abs: bool
    ) -> Array | None:
        """Return the reduction from the tensor's row of statistics; None without such a row."""
        row = self._row(step, mode, worker)
        if row is None:
            return None
        import numpy as np

        from smdebug.trials.observations.measured_reductions import reduction_of

        found = reduction_of(row, reduction, abs=abs)
        return None if found is None else np.asarray(found, np.float32)

    def _row(self, step: int, mode: ModeKeys, worker: str | None) -> dict[str, float] | None:
        """Return the statistics of the tensor that was measured at a step; None if it was not."""
        if not self.trial.observations.has_facts:
            return None
        return self.trial.observations.measured.row(self.name, step, mode, worker)

    def _unavailable(self, step: int, mode: ModeKeys, written: Written) -> TensorUnavailableForStep:
        has_reductions = any(places.reductions for _, places in written)
        return TensorUnavailableForStep(self.name, step, mode, has_reductions)


class NamedTensor(str):
    """A tensor's name that can also be used as the tensor, from `tensors_in_collection`."""

    _trial: TensorHome

    def __new__(cls, name: str, trial: TensorHome) -> NamedTensor:
        named = super().__new__(cls, name)
        named._trial = trial
        return named

    @property
    def name(self) -> str:
        return str(self)

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("_"):
            raise AttributeError(attribute)
        return getattr(self._trial.tensor(str(self)), attribute)

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return (str, (str(self),))  # a copy elsewhere is a plain name
