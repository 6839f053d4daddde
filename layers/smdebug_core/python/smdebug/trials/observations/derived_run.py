"""The steps of a run without observations, as rules see them: derived from the tensors that it saved."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from numpy.typing import NDArray

from smdebug.files.observations import PARAMETERS, ObservationLayout, ObservedTensor
from smdebug.mode_keys import ModeKeys
from smdebug.trials.observations.derived_step import KEPT_BYTES, DerivedStep
from smdebug.trials.observations.loss_names import likely_losses
from smdebug.trials.observations.one_step import ObservedStep, ObservedSteps
from smdebug.trials.observations.saved_kinds import SavedKinds, Sorted

Array = NDArray[Any]


class DerivedSteps(ObservedSteps):
    """Derives what rules ask of a step, and keeps what the next step needs of it."""

    def __init__(self, observations: Any, trial: Any):
        super().__init__(observations, trial)
        self._sorted: tuple[Any, SavedKinds, Sorted] | None = None
        """The names of the last layout that was sorted."""
        self._laid_out: tuple[Sorted, ObservationLayout] | None = None
        self._losses: dict[ModeKeys, str] = {}
        self._parameters: dict[str, tuple[int, Mapping[str, Array]]] = {}

    def _opened(self, step: int, worker: str | None, written: Mapping[str, Any]) -> ObservedStep:
        worker = next(iter(written), None) if worker is None else worker
        at_step = written.get(worker) if worker is not None else None
        if worker is None or at_step is None:
            return super()._opened(step, worker, written)
        mode, mode_step = self._trial.mode_modestep(step)
        at = (step, mode or ModeKeys.GLOBAL, step if mode_step is None else mode_step, worker)
        kinds, names = self._sorted_names(at_step)
        return DerivedStep(self._observations, at, names, kinds, self)

    def _sorted_names(self, at_step: Any) -> tuple[SavedKinds, Sorted]:
        """Sort the tensors of a step; most steps have those of the step before."""
        if self._sorted is None or self._sorted[0] is not at_step.layout:
            collections = self._trial.collections()
            kinds = SavedKinds({name: frozenset(of.tensor_names) for name, of in collections.items()})
            saved = [name for name, places in at_step.places.items() if places.value is not None]
            self._sorted = at_step.layout, kinds, kinds.sort(saved)
        return self._sorted[1:]

    def value(self, name: str, step: int, worker: str) -> Array:
        """Return the value that a worker saved."""
        value: Array = self._trial.tensor(name).value(step, ModeKeys.GLOBAL, worker)
        return value

    def layout_of(
        self,
        names: Sorted,
        rows: Mapping[str, tuple[ObservedTensor, ...]],
        facts: Callable[[], dict[str, Any]],
    ) -> ObservationLayout:
        """Return the layout of the step before if its tensors are the same: rules keep what they derive."""
        if self._laid_out is None or self._laid_out[0] is not names or self._laid_out[1].tensors != rows:
            self._laid_out = names, ObservationLayout(dict(rows), facts())
        return self._laid_out[1]

    def loss_among(self, names: Collection[str], kinds: SavedKinds, mode: ModeKeys) -> str | None:
        """Return which of a step's scalars is the loss: in each mode the same one at all steps."""
        if mode not in self._losses:
            for likely in likely_losses(names, kinds.losses)[:1]:
                self._losses[mode] = likely
        known = self._losses.get(mode)
        return known if known in names else None

    def parameters_before(self, step: int, worker: str) -> tuple[int, Mapping[str, Array]] | None:
        """Return the last step before this one at which the worker saved parameters, and their values."""
        kept = self._parameters.get(worker)
        if kept is None or kept[0] >= step:
            return self._read_before(step, worker)
        return kept

    def keep_parameters(self, step: int, worker: str, values: Mapping[str, Array]) -> None:
        """Keep the parameters of a step for the next one."""
        self._parameters[worker] = step, values

    def _read_before(self, step: int, worker: str) -> tuple[int, Mapping[str, Array]] | None:
        """Read the parameters of the step before, as the first step that is asked for needs them."""
        index = self._trial.index
        for name in self._sorted[2].kinds.get(PARAMETERS, ())[:1] if self._sorted else ():
            for number, _ in index.back_from(name, step - 1, ModeKeys.GLOBAL):
                return self._values_at(number, worker)
        return None

    def _values_at(self, step: int, worker: str) -> tuple[int, Mapping[str, Array]] | None:
        written = (self._trial.index.workers_at(step, ModeKeys.GLOBAL) or {}).get(worker)
        if written is None:
            return None
        names = self._sorted_names(written)[1].kinds.get(PARAMETERS, ())
        values, size = {}, 0
        for name in names:
            values[name] = self.value(name, step, worker)
            size += values[name].nbytes
            if size > KEPT_BYTES:
                return None
        return step, values
