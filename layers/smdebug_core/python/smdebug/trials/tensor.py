"""One tensor over the steps of a run: where it was saved, and its values there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

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
from smdebug.numbers.statistics import Statistics
from smdebug.trials.progress import StepState
from smdebug.trials.run_index import Written

if TYPE_CHECKING:
    from smdebug.trials.trial import Trial

GLOBAL = ModeKeys.GLOBAL
Array = NDArray[Any]


class Tensor:
    """A named value across steps. `trial.tensor(name)` gives it."""

    def __init__(self, name: str, trial: Trial):
        self.name = name
        self.trial = trial

    @property
    def original_name(self) -> str | None:
        """The name before the framework's was made presentable; None if no shape was saved with it."""
        return self.trial.index.original_name(self.name)

    def steps(
        self, mode: ModeKeys | None = GLOBAL, show_incomplete_steps: bool = False
    ) -> list[int]:
        """The steps at which it was saved, counted within `mode`.

        Steps that not all workers have written yet are left out, unless asked for.
        """
        self.trial.maybe_refresh()
        known = self.trial.index.steps_of(self.name, self.trial.mode_meant(mode))
        settled = self.trial.is_settled
        return [step for step, at in known if show_incomplete_steps or settled(at)]

    def first_seen(self, mode: ModeKeys | None = GLOBAL) -> int | None:
        """The global step at which it was first saved in a mode; None if it was not yet."""
        self.trial.maybe_refresh()
        return self.trial.index.first_seen(self.name, self.trial.mode_meant(mode))

    def value(
        self, step_num: int, mode: ModeKeys | None = GLOBAL, worker: str | None = None
    ) -> Array:
        """The value at a step, by the worker of that name or the first that saved it.

        `StepNotYetAvailable` if it may still arrive, `StepUnavailable` if the step was not saved,
        `TensorUnavailableForStep` if the step was, without this tensor.
        """
        index = self.trial.index
        workers = index.at.get(step_num) if mode is GLOBAL else None
        if workers is not None and worker is None:  # the common case, short
            for one in workers.values():
                places = one.places.get(self.name)
                if places is not None and places.value is not None:
                    return self.trial.read(one, places.value)
        mode = self.trial.mode_meant(mode)
        written = self._written(step_num, mode, worker)
        for one, places in written:
            if places.value is not None:
                return self.trial.read(one, places.value)
        raise self._unavailable(step_num, mode, written)

    def values(self, mode: ModeKeys | None = GLOBAL, worker: str | None = None) -> dict[int, Array]:
        """All values of a mode, by step."""
        steps = self.steps(mode)
        values = self.trial.in_parallel(lambda step: self.value(step, mode, worker), steps)
        return dict(zip(steps, values, strict=True))

    def shape(
        self, step_num: int, mode: ModeKeys | None = GLOBAL, worker: str | None = None
    ) -> tuple[int, ...]:
        """The shape at a step, from what was saved of it or else from the value."""
        mode = self.trial.mode_meant(mode)
        written = self._written(step_num, mode, worker)
        for one, places in written:
            if places.shape is not None:
                return tuple(one.shape_records[places.shape].shape)
        for one, places in written:
            if places.value is not None:
                known = one.shapes[places.value] if one.shapes else None
                return self.trial.read(one, places.value).shape if known is None else known
        raise ShapeUnavailableForStep(self.name, step_num, mode)

    def reduction_value(
        self,
        step_num: int,
        reduction_name: str,
        mode: ModeKeys | None = GLOBAL,
        worker: str | None = None,
        abs: bool = False,
    ) -> Any:
        """A reduction at a step: as it was saved, or else computed from the value.

        With `abs` it is that of the magnitudes. `TensorUnavailableForStep` if neither was saved.
        """
        mode = self.trial.mode_meant(mode)
        written = self._written(step_num, mode, worker)
        for one, places in written:
            position = places.reductions.get((reduction_name, bool(abs)))
            if position is not None:
                return self.trial.read(one, position)
        for one, places in written:
            if places.value is not None:
                value = self.trial.read(one, places.value)
                return compute_reduction(reduction_name, value, abs=bool(abs))
        raise self._unavailable(step_num, mode, written)

    def reduction_values(
        self, step_num: int, mode: ModeKeys | None = GLOBAL, worker: str | None = None
    ) -> dict[tuple[str, bool], Array]:
        """The reductions that were saved at a step, by name and whether of the magnitudes."""
        written = self._written(step_num, self.trial.mode_meant(mode), worker)
        for one, places in written:
            if places.reductions:
                return {
                    which: self.trial.read(one, position)
                    for which, position in places.reductions.items()
                }
        return {}

    def statistics(
        self, step_num: int, mode: ModeKeys | None = GLOBAL, worker: str | None = None
    ) -> Statistics:
        """All that can be said of the value in numbers: counts, extremes, means, norms, in one pass.

        Whoever asks for the same value again, such as another rule, gets them without reading it.
        """
        mode = self.trial.mode_meant(mode)
        written = self._written(step_num, mode, worker)
        for one, places in written:
            if places.value is not None:
                return self.trial.statistics(one, places.value)
        raise self._unavailable(step_num, mode, written)

    def workers(self, step_num: int, mode: ModeKeys | None = GLOBAL) -> list[str]:
        """The workers that saved it at a step, sorted."""
        mode = self.trial.mode_meant(mode)
        index = self.trial.index
        written = index.written(self.name, step_num, mode)
        if not written:
            self.trial.maybe_refresh()
            written = index.written(self.name, step_num, mode)
        if not written:
            raise TensorUnavailableForStep(self.name, step_num, mode)
        return [one.worker for one, _ in written]

    def prev_steps(
        self, step: int, n: int | None = None, mode: ModeKeys | None = GLOBAL
    ) -> list[int]:
        """The last `n` steps up to and including `step` at which it was saved; all without `n`."""
        self.trial.maybe_refresh()
        found: list[int] = []
        if n is not None and n < 0:
            return found
        settled = self.trial.is_settled
        for known, at in self.trial.index.back_from(self.name, step, self.trial.mode_meant(mode)):
            if settled(at):
                found.append(known)
                if n and len(found) >= n:
                    break
        return found[::-1]

    def step(self, step_num: int, mode: ModeKeys = GLOBAL) -> Any:
        raise SMDebugNotImplementedError(
            "step has been removed: ask tensor.value or tensor.reduction_value for the step"
        )

    def __repr__(self) -> str:
        return f"<Tensor {self.name!r} of trial {self.trial.name!r}>"

    # Below: what the index knows of this tensor

    def _written(self, step: int, mode: ModeKeys, worker: str | None) -> Written:
        """What was saved of it at that step, by that worker or any, in order of the workers."""
        index = self.trial.index
        written = index.written(self.name, step, mode, worker)
        if not written or (worker is not None and written[0][0].worker != worker):
            self.trial.maybe_refresh()
            written = index.written(self.name, step, mode, worker)
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

    def _unavailable(self, step: int, mode: ModeKeys, written: Written) -> TensorUnavailableForStep:
        has_reductions = any(places.reductions for _, places in written)
        return TensorUnavailableForStep(self.name, step, mode, has_reductions)


class NamedTensor(str):
    """A tensor's name that can also be used as the tensor: what `tensors_in_collection` gives."""

    _trial: Trial

    def __new__(cls, name: str, trial: Trial) -> NamedTensor:
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
