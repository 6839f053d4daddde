"""Statistics, samples, digests, facts and series of a run, for its rules and readers.

They are ordinary tensors of the run (`files.observations` says which), and are read like any others: a matrix
at once, and only the requested parts of a step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smdebug.exceptions import (
    DamagedFile,
    ObjectMissing,
    TensorUnavailable,
    TensorUnavailableForStep,
)
from smdebug.files.observations import (
    COMPUTED_TWICE,
    DIGESTS,
    FACTS,
    LAYOUT,
    PARTS,
    RANK_TIMES,
    SAMPLES,
    SERIES,
    SERIES_COLUMNS,
    STATISTICS,
    ObservationLayout,
    ObservedTensor,
    json_object,
    matrix,
)
from smdebug.files.replicas import Replicas
from smdebug.mode_keys import ModeKeys
from smdebug.numbers.rank_times import WindowTimes, window_times
from smdebug.numbers.rows import COLUMNS
from smdebug.trials.observations.damaged_values import note_damage
from smdebug.trials.observations.lost_layouts import layout_content
from smdebug.trials.observations.measured_tensors import MeasuredTensors
from smdebug.trials.observations.one_step import ObservedStep, ObservedSteps
from smdebug.trials.observations.readable import Readable
from smdebug.trials.observations.replicas import Difference, Digests, absent, differences
from smdebug.trials.observations.series import Series, checked_rows, in_order
from smdebug.trials.observations.statistics_matrix import Floats, StatisticsMatrix, joined
from smdebug.trials.observations.worker_parts import WorkerParts

GLOBAL = ModeKeys.GLOBAL


class ObservationsUnavailable(TensorUnavailable):
    """The run holds no statistics: its configuration asks for tensors by name, or a file is damaged."""

    def __init__(self, name: str, path: str, damaged: str | None = None):
        super().__init__(name)
        self.args = (name, path, damaged)
        self.path = path

    def __str__(self) -> str:
        if self.args[2] is not None:
            return f"{self.path} holds no {self.args[0]} in the files that can be read: {self.args[2]} cannot"
        if self.args[0] == LAYOUT:  # written with the first facts
            return f"{self.path} has lost {LAYOUT}, the names of its statistics, with the file of that step"
        return (
            f"{self.path} holds no {self.args[0]}. A hook that gets only a path saves them; "
            "this run's hook was configured to save chosen tensors"
        )


class Observations:
    """The observations of one trial. What was read of a layout or a series is kept."""

    def __init__(self, trial: Readable):
        self._trial = trial
        self._layouts: dict[tuple[str | None, int], ObservationLayout] = {}
        self._series: dict[tuple[str, int, str], NDArray[np.float64]] = {}
        self._steps = ObservedSteps(self, trial)
        self._derived: dict[str | None, tuple[ObservationLayout, dict[str, Any]]] = {}

    @property
    def exist(self) -> bool:
        """Whether the run has observations so far that are tensors of it, and not beside chosen ones."""
        return self.has_facts and not self.are_beside

    @property
    def has_facts(self) -> bool:
        """Whether the run was observed, be it beside tensors that were chosen."""
        return self._trial.has_tensor(FACTS)

    @cached_property
    def are_beside(self) -> bool:
        """Whether tensors were chosen, and what is observed is beside them. Ask once there are any facts."""
        index = self._trial.index
        first = index.first_seen(FACTS, GLOBAL)
        written = {} if first is None else index.workers_at(first, GLOBAL) or {}
        return any(step.observes_beside for step in written.values())

    def steps(self, mode: ModeKeys = GLOBAL, kind: str | None = None) -> list[int]:
        """The steps that have facts, or statistics of that kind."""
        name = FACTS if kind is None else f"{STATISTICS}{kind}"
        return self._tensor(name).steps(mode) if self._trial.has_tensor(name) else []

    def facts(self, step: int, mode: ModeKeys = GLOBAL, worker: str | None = None) -> dict[str, Any]:
        """What was true of the step, with what its layout says of the steps around it."""
        own = self._facts(step, mode, worker)
        return {**self.layout(step, mode, worker).facts, **own}

    def facts_of_step(self, step: int, worker: str | None = None) -> dict[str, Any]:
        """What was true of the global step alone; empty if this worker kept no facts of it."""
        try:
            return self._facts(step, GLOBAL, worker)
        except TensorUnavailableForStep:
            return {}

    def layout(self, step: int, mode: ModeKeys = GLOBAL, worker: str | None = None) -> ObservationLayout:
        """The layout that holds at the step."""
        return self.layout_at(self._facts(step, mode, worker).get("layout"), worker)

    def layout_at(self, at: Any, worker: str | None = None) -> ObservationLayout:
        """The layout that was written at that step."""
        place = f"{LAYOUT} of {self._trial.path}"
        if type(at) is not int:
            raise DamagedFile(f"{FACTS} of {self._trial.path}", f"{at!r:.100} is not the step of a layout")
        known = self._layouts.get((worker, at))
        if known is None:
            content = layout_content(self._trial, self._tensor, at, worker)
            known = self._layouts[worker, at] = ObservationLayout.from_array(content, place)
        return known

    def statistics(
        self,
        step: int,
        mode: ModeKeys = GLOBAL,
        worker: str | None = None,
        kind: str | None = None,
        *,
        wholes: bool = False,
    ) -> StatisticsMatrix:
        """The statistics of every tensor of the step, or of those of one kind.

        Without a worker, rows of sharded tensors are of the whole if every worker saves what the first does;
        with `wholes`, at every step at which all parts were measured. `parts` of the matrix has the others.
        """
        layout, number = self.layout(step, mode, worker), self._trial.global_step(mode, step)
        found = [StatisticsMatrix(step, (), (), np.empty((0, len(COLUMNS)), np.float32))]
        for name, rows in layout.tensors.items():
            values = None
            if kind in (None, name):
                values = self._matrix(f"{STATISTICS}{name}", rows, step, mode, worker)
            if values is not None:
                of_kind = StatisticsMatrix(step, rows, (name,) * len(rows), values)
                if "parts" in layout.facts and number is not None:
                    of_kind = self._steps.placed(of_kind, name, number, worker, wholes=wholes)
                found.append(of_kind)
        return joined(found)

    def samples(
        self, kind: str, step: int, mode: ModeKeys = GLOBAL, worker: str | None = None
    ) -> dict[str, Floats]:
        """The sampled values of each tensor of that kind."""
        rows = self.layout(step, mode, worker).tensors.get(kind, ())
        values = self._tensor(f"{SAMPLES}{kind}").value(step, mode, worker)
        values = matrix(values, len(rows), values.shape[-1], np.float32, f"{SAMPLES}{kind}")
        return {tensor.name: sample[: tensor.size] for tensor, sample in zip(rows, values, strict=True)}

    @cached_property
    def measured(self) -> MeasuredTensors:
        """The tensors that were measured, by name."""
        return MeasuredTensors(self, self._trial)

    def digests(
        self, kind: str, step: int, mode: ModeKeys = GLOBAL, worker: str | None = None
    ) -> Mapping[str, tuple[int, int]]:
        """The content digest of each tensor of that kind."""
        rows, halves = self._halves(kind, step, mode, worker)
        return {
            tensor.name: (first, second)
            for tensor, (first, second) in zip(rows, halves.tolist(), strict=True)
        }

    def _halves(
        self, kind: str, step: int, mode: ModeKeys, worker: str | None
    ) -> tuple[tuple[ObservedTensor, ...], NDArray[np.int64]]:
        rows = self.layout(step, mode, worker).tensors.get(kind, ())
        halves = self._tensor(f"{DIGESTS}{kind}").value(step, mode, worker)
        return rows, matrix(halves, len(rows), 2, np.int64, f"{DIGESTS}{kind}")

    @property
    def expected_workers(self) -> int:
        """How many workers save digests of their copies of the model; 1 if their copies are not compared."""
        meta = self._trial.collection_manager.meta
        replicas = Replicas.of_run(meta)
        return int(meta.get("num_workers", 1)) if replicas is None else replicas.workers

    def replica_steps(self, mode: ModeKeys = GLOBAL) -> list[int]:
        """The steps at which several workers have saved digests."""
        index, found = self._trial.index, []
        for step in self._trial.steps(mode):
            number = self._trial.global_step(mode, step)
            if number is not None and len(index.workers_by_step.get(number, ())) > 1:
                found.append(step)
        return [step for step in found if len(self.roots(step, mode)) > 1]

    def roots(self, step: int, mode: ModeKeys = GLOBAL) -> dict[str, Mapping[str, str]]:
        """The root digests of each worker at the step, by kind, from index files alone.

        Equal roots mean equal tensors. Digests of other workers may arrive after the step is complete.
        """
        written = self._trial.index.workers_at(step, mode) or {}
        return {worker: step.root_digests for worker, step in written.items() if step.root_digests}

    def differing(self, step: int, mode: ModeKeys = GLOBAL, kind: str = "parameters") -> list[Difference]:
        """The tensors of that kind that differ between workers at the step, and in which workers."""
        roots = {
            worker: of_worker[kind]
            for worker, of_worker in self.roots(step, mode).items()
            if kind in of_worker
        }
        return differences(roots, lambda worker: self._present_digests(kind, step, mode, worker))

    def parts(self, step: int) -> dict[str, WorkerParts]:
        """The parts of sharded parameters that each worker holds at a global step, if any is."""
        found = {}
        for worker, roots in self.roots(step).items():
            if PARTS in roots:
                seen = self.at(step, worker)
                found[worker] = WorkerParts.of_layout(seen.facts, seen.digests(PARTS))
        return found

    def rank_times(self, step: int) -> dict[str, list[WindowTimes]]:
        """The times of steps that each worker has saved with a global step."""
        return {
            worker: [times for row in rows if (times := window_times(row)) is not None]
            for worker, rows in self._fact_of_workers(RANK_TIMES, step)
            if isinstance(rows, list)
        }

    def computed_twice(self, step: int) -> dict[str, dict[str, Any]]:
        """What passes have given that a worker has computed again at a global step, of each that has."""
        return {
            worker: given
            for worker, given in self._fact_of_workers(COMPUTED_TWICE, step)
            if isinstance(given, dict)
        }

    def _fact_of_workers(self, name: str, step: int) -> Iterator[tuple[str, Any]]:
        for worker, written in (self._trial.index.workers_at(step, GLOBAL) or {}).items():
            if FACTS in written.places:
                yield worker, self.at(step, worker).facts.get(name)

    def absent_workers(self, step: int, mode: ModeKeys = GLOBAL, *, least_present: int = 2) -> list[str]:
        """The workers `worker_<rank>` that have saved no digests at the step, where others have.

        It is empty where fewer than `least_present` have: the first worker saves more steps than the others.
        """
        present = self.roots(step, mode)
        return absent(present, self.expected_workers) if len(present) >= least_present else []

    def _present_digests(self, kind: str, step: int, mode: ModeKeys, worker: str) -> Digests:
        rows, halves = self._halves(kind, step, mode, worker)
        return Digests([tensor.name for tensor in rows], halves)

    def series(self, name: str, worker: str | None = None) -> Series:
        """The scalar at every step so far, in the order of steps, without the steps of damaged files.

        Of several workers at a saved step, the first one's values count.
        """
        return in_order(name, self.series_rows(name, worker))

    def series_rows(self, name: str, worker: str | None = None) -> NDArray[np.float64]:
        """The values of a scalar as they were saved: rows of step, mode, step of the mode, value."""
        tensor = self._tensor(f"{SERIES}{name}")
        parts = [np.empty((0, len(SERIES_COLUMNS)))]
        for step in tensor.steps():
            for source in [worker] if worker is not None else tensor.workers(step):
                key = (name, step, source)
                if key not in self._series:
                    try:
                        content = tensor.value(step, worker=source)
                        self._series[key] = checked_rows(content, f"{SERIES}{name}")
                    except (DamagedFile, ObjectMissing) as error:
                        self.note_damage(error)
                        continue
                    except TensorUnavailableForStep:  # its file is missing
                        continue
                parts.append(self._series[key])
                break
        return np.concatenate(parts)

    def at(self, step: int, worker: str | None = None) -> ObservedStep:
        """What was observed at a global step, read once for all rules that ask."""
        return self._steps.at(step, worker)

    def judged(self, step: int, worker: str | None = None) -> ObservedStep:
        """What rules see of a global step: what was observed, or else what follows from its tensors."""
        seen = self._steps.at(step, worker)
        if seen.facts or seen.series_names or self.exist:
            return seen
        return self._derived_steps.at(step, worker)

    @cached_property
    def _derived_steps(self) -> ObservedSteps:
        from smdebug.trials.observations.derived_run import DerivedSteps  # runs of the default plan need none

        return DerivedSteps(self, self._trial)

    def limit(self, budget: int) -> None:
        """Keep at most so many bytes of the last steps."""
        self._steps.limit(budget)

    def damage_at(self, step: int) -> Mapping[str, str]:
        """Why parts of the global step that was requested last could not be read, by their names."""
        return self._steps.damage_at(step)

    def note_damage(self, error: DamagedFile | ObjectMissing) -> None:
        """Count a damaged file with those of the run."""
        note_damage(self._trial, error)

    def derived_from(self, layout: ObservationLayout, worker: str | None = None) -> dict[str, Any]:
        """A cache for what rules derive from a layout, kept until the worker has another one."""
        known = self._derived.get(worker)
        if known is None or known[0] is not layout:
            known = self._derived[worker] = (layout, {})
        return known[1]

    def own_facts(self, step: int, worker: str | None = None) -> dict[str, Any]:
        """The facts of a global step, without those of its layout."""
        return self._facts(step, GLOBAL, worker)

    def value_of(self, name: str, step: int, worker: str | None = None) -> NDArray[Any]:
        """The array that one worker saved under a name of `files.observations`."""
        value: NDArray[Any] = self._tensor(name).value(step, GLOBAL, worker)
        return value

    def series_names(self) -> list[str]:
        """The names of the scalars that were kept at every step, be it beside tensors that were chosen."""
        self._trial.maybe_refresh()
        names = self._trial.index.tensor_names()
        return [name.removeprefix(SERIES) for name in names if name.startswith(SERIES)]

    def _facts(self, step: int, mode: ModeKeys, worker: str | None) -> dict[str, Any]:
        content = self._tensor(FACTS).value(step, mode, worker)
        return json_object(content, f"{FACTS} of {self._trial.path} at step {step}")

    def _matrix(
        self,
        name: str,
        rows: tuple[ObservedTensor, ...],
        step: int,
        mode: ModeKeys,
        worker: str | None,
    ) -> Floats | None:
        if not self._trial.has_tensor(name):
            return None
        try:
            values = self._tensor(name).value(step, mode, worker)
        except TensorUnavailableForStep:  # such as gradients in a step of evaluation
            return None
        return matrix(values, len(rows), len(COLUMNS), np.float32, name)

    def _tensor(self, name: str) -> Any:
        if not self._trial.has_tensor(name):
            damaged = next(iter(self._trial.damaged_files), None)
            raise ObservationsUnavailable(name, self._trial.path, damaged)
        return self._trial.tensor(name)
