"""The tensors that a run has measured, by name: their kinds, and what each step has of them."""

from __future__ import annotations

from typing import Any, Protocol

from smdebug.exceptions import (
    InvalidWorker,
    StepUnavailable,
    TensorUnavailable,
    TensorUnavailableForStep,
)
from smdebug.files.observations import STATISTICS, ObservationLayout, ObservedTensor
from smdebug.mode_keys import ModeKeys
from smdebug.trials.kinds import in_kind_order
from smdebug.trials.observations.statistics_matrix import Floats, StatisticsMatrix

GLOBAL = ModeKeys.GLOBAL


class MeasurementSource(Protocol):
    """What the measured tensors of a run are read from."""

    def steps(self, mode: ModeKeys = ..., kind: str | None = ...) -> list[int]: ...
    def layout(self, step: int, mode: ModeKeys = ..., worker: str | None = ...) -> ObservationLayout: ...
    def statistics(
        self,
        step: int,
        mode: ModeKeys = ...,
        worker: str | None = ...,
        kind: str | None = ...,
        *,
        wholes: bool = ...,
    ) -> StatisticsMatrix: ...
    def samples(
        self, kind: str, step: int, mode: ModeKeys = ..., worker: str | None = ...
    ) -> dict[str, Floats]: ...


class MeasuredTensors:
    """The tensors that were measured so far. Each keeps its kind."""

    def __init__(self, observations: MeasurementSource, trial: Any):
        self._observations = observations
        self._trial = trial
        self._known: dict[str, tuple[str, ObservedTensor]] = {}

    def by_kind(self) -> dict[str, tuple[ObservedTensor, ...]]:
        """Return all tensors: the kinds as they are shown, the tensors of each as in the model."""
        steps = self._observations.steps()
        tensors = self._observations.layout(steps[-1]).tensors if steps else {}
        return {kind: tensors[kind] for kind in in_kind_order(tensors)}

    def __contains__(self, name: object) -> bool:
        return self._find(str(name)) is not None

    def kind_of(self, name: str) -> str | None:
        """Return the kind of a tensor; None if it was not measured."""
        found = self._find(name)
        return None if found is None else found[0]

    def tensor(self, name: str) -> ObservedTensor:
        """Return the shape and type of a tensor."""
        found = self._find(name)
        if found is None:
            raise TensorUnavailable(name)
        return found[1]

    def steps(self, name: str, mode: ModeKeys = GLOBAL) -> list[int]:
        """Return the steps at which a tensor was measured."""
        kind = self.kind_of(name)
        steps = [] if kind is None else self._observations.steps(mode, kind)
        return [step for step in steps if self.row(name, step, mode) is not None]

    def row(
        self, name: str, step: int, mode: ModeKeys = GLOBAL, worker: str | None = None
    ) -> dict[str, float] | None:
        """Return the statistics of a tensor at a step; None if it was not measured there."""
        measured = self.matrix(name, step, mode, worker)
        return None if measured is None else measured.row(name)

    def matrix(
        self,
        name: str,
        step: int,
        mode: ModeKeys = GLOBAL,
        worker: str | None = None,
        *,
        wholes: bool = False,
    ) -> StatisticsMatrix | None:
        """Return the statistics that have a row of the tensor, with which part it is of; None without one."""
        kind = self.kind_of(name)
        if kind is None:
            return None
        try:
            matrix = self._observations.statistics(step, mode, worker, kind, wholes=wholes)
        except (StepUnavailable, TensorUnavailableForStep, InvalidWorker):
            return None
        return matrix if name in matrix and matrix.row(name)["count"] > 0 else None

    def sample(self, name: str, step: int, mode: ModeKeys = GLOBAL, worker: str | None = None) -> Floats:
        """Return the sampled values of a tensor."""
        kind = self.kind_of(name)
        if kind is None or self.row(name, step, mode, worker) is None:
            raise TensorUnavailableForStep(name, step, mode)
        return self._observations.samples(kind, step, mode, worker)[name]

    def workers(self, name: str, step: int, mode: ModeKeys = GLOBAL) -> list[str]:
        """Return the workers that have measured a tensor at a step, sorted."""
        written = self._trial.index.workers_at(step, mode) or {}
        matrix = f"{STATISTICS}{self.kind_of(name)}"
        candidates = (worker for worker, at in sorted(written.items()) if matrix in at.places)
        return [w for w in candidates if self.row(name, step, mode, w) is not None]

    def _find(self, name: str) -> tuple[str, ObservedTensor] | None:
        """Return kind and form of a tensor by the last layout, which names all that were measured."""
        if name not in self._known:
            self._known |= {
                tensor.name: (kind, tensor) for kind, tensors in self.by_kind().items() for tensor in tensors
            }
        return self._known.get(name)
