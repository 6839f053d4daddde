"""What one worker observed at one step: each part is read once, when a rule first asks for it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from itertools import chain, islice
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from smdebug.exceptions import (
    DamagedFile,
    InvalidWorker,
    ObjectMissing,
    StepUnavailable,
    TensorUnavailable,
    TensorUnavailableForStep,
)
from smdebug.files.names import OBSERVATIONS
from smdebug.files.observations import (
    DIGESTS,
    FACTS,
    MEASURED_PARTS,
    PARAMETERS,
    PARTS,
    SAMPLES,
    SERIES,
    SERIES_COLUMNS,
    STATISTICS,
    ObservationLayout,
    ObservedTensor,
    matrix,
)
from smdebug.mode_keys import TRAINING, ModeKeys
from smdebug.numbers.batches import MOST_DIGESTS, digests_of
from smdebug.numbers.rows import COLUMNS, MEASURED
from smdebug.trials.observations.damaged_values import DAMAGED
from smdebug.trials.observations.fact_forms import of_their_forms
from smdebug.trials.observations.statistics_matrix import StatisticsMatrix, joined
from smdebug.trials.observations.wholes import own_parts, with_wholes
from smdebug.trials.observations.worker_parts import Share, shares_of

#: The part does not exist at the step, which is not a defect.
_ABSENT = (TensorUnavailable, TensorUnavailableForStep, StepUnavailable, InvalidWorker)
_NO_ROWS: NDArray[np.float64] = np.empty((0, len(SERIES_COLUMNS)))
_TRAINING = [mode.value for mode in TRAINING]
KEPT_BYTES = 64 << 20
"""How many bytes of the last steps are kept for the next rule."""
_LEAST_KEPT = 4


class StepSource(Protocol):
    """What the observations of one step are read from."""

    def own_facts(self, step: int, worker: str | None = None) -> dict[str, Any]: ...
    def layout_at(self, at: Any, worker: str | None = None) -> ObservationLayout: ...
    def value_of(self, name: str, step: int, worker: str | None = None) -> NDArray[Any]: ...
    def derived_from(self, layout: ObservationLayout, worker: str | None = None) -> dict[str, Any]: ...
    def note_damage(self, error: DamagedFile | ObjectMissing) -> None: ...


class ObservedStep:
    """The facts, statistics, samples, digests and new scalars of one worker at one step.

    A part that the step lacks is None or empty. A damaged part is absent as well, and `damaged` names it
    with the reason, so that a rule continues with the others.
    """

    def __init__(
        self,
        observations: StepSource,
        step: int,
        mode: ModeKeys,
        worker: str | None,
        names: frozenset[str],
        others: Callable[[], Mapping[str, ObservedStep]] | None = None,
    ):
        self.step = step
        self.mode = mode
        self.worker = worker
        self.damaged: dict[str, str] = {}
        """Why a part could not be read, by its name."""
        self.shared: dict[str, Any] = {}
        """What rules derive from the step, for the next rule that needs the same."""
        self._observations = observations
        self._names = names
        self._others = others
        self._wholes: dict[str, StatisticsMatrix] = {}
        self._parts: dict[tuple[str, str], Any] = {}

    @cached_property
    def facts(self) -> Mapping[str, Any]:
        """What was true of the step, with what holds since its layout; empty if it has no facts."""
        own, layout = self._own_facts, self.layout
        return own if layout is None else {**self._facts_of(layout), **own}

    @cached_property
    def layout(self) -> ObservationLayout | None:
        """The tensors that the rows of this step belong to."""
        own = self._own_facts
        return self._read("layout", lambda: self._layout(own)) if own else None

    @cached_property
    def shared_by_layout(self) -> dict[str, Any]:
        """What rules derive from the layout alone, for all steps that have the same."""
        return {} if self.layout is None else self._observations.derived_from(self.layout, self.worker)

    def statistics(self, kind: str) -> StatisticsMatrix | None:
        """The statistics of one kind of tensors: a row per tensor.

        Those of sharded tensors are of the whole if every worker saves its part and this is the step of no
        single worker; otherwise `parts` of the matrix names them.
        """
        own = self.own_statistics(kind)
        if own is None or self._others is None or not self.has_parts:
            return own
        if kind not in self._wholes:
            self._wholes[kind] = with_wholes(own, kind, self, self._others())
        return self._wholes[kind]

    def own_statistics(self, kind: str) -> StatisticsMatrix | None:
        """The same, of sharded tensors in any case those of the worker's own part, which has quantiles."""
        found: StatisticsMatrix | None = self._part("statistics", kind, self._statistics)
        return found

    @property
    def has_parts(self) -> bool:
        """Whether the worker holds parts of sharded tensors."""
        return "parts" in self.facts

    @cached_property
    def all_statistics(self) -> StatisticsMatrix | None:
        """The statistics of all kinds of tensors, one kind after the other; None if there are none."""
        kinds = () if self.layout is None else self.layout.tensors
        parts = [found for kind in kinds if (found := self.statistics(kind)) is not None]
        return joined(parts) if parts else None

    @cached_property
    def shares(self) -> Mapping[str, Share]:
        """Which parts of sharded parameters the worker holds."""
        known = self.shared_by_layout
        if "shares" not in known:
            known["shares"] = shares_of(self.facts)
        found: Mapping[str, Share] = known["shares"]
        return found

    def measured_parts(self, kind: str) -> tuple[tuple[ObservedTensor, ...], NDArray[np.float64]] | None:
        """What the worker has measured of its parts of these tensors, NaN for others; None of no part."""
        found: NDArray[np.float64] | None = self._part("parts", kind, self._measured_parts)
        return None if found is None else (self._rows_of(kind), found)

    def samples(self, kind: str) -> Mapping[str, NDArray[np.float32]]:
        """The sampled values of each tensor of one kind."""
        return self._part("samples", kind, self._samples) or {}

    def digests(self, kind: str) -> Mapping[str, tuple[int, int]]:
        """The content digest of each tensor of one kind."""
        return self._part("digests", kind, self._digests) or {}

    def series(self, name: str) -> NDArray[np.float64]:
        """The values of a scalar since the previous saved step: rows of step, mode, mode step, value."""
        found = self._part("series", name, self._series)
        return _NO_ROWS if found is None else found

    @cached_property
    def row_digests(self) -> tuple[list[int], bool]:
        """The digests of rows of the first input, the smallest first, and whether those are of all rows."""
        digests = digests_of(self.facts.get("row_digests"))
        return digests, len(digests) < MOST_DIGESTS

    @cached_property
    def series_names(self) -> list[str]:
        """The scalars that have values at this step."""
        return sorted(n.removeprefix(SERIES) for n in self._names if n.startswith(SERIES))

    @cached_property
    def scalars_of_training(self) -> ObservedStep | None:
        """The scalars of training steps that were saved with a step of another mode; None without any."""
        every = ((name, self.series(name)) for name in self.series_names)
        found = {name: rows[np.isin(rows[:, 1], _TRAINING)] for name, rows in every}
        kept = {name: rows for name, rows in found.items() if len(rows)}
        return _ScalarsAlone(self, kept) if kept else None

    @property
    def nbytes(self) -> int:
        """About how much memory the parts take that were read."""
        matrices = [part for (kind, _), part in self._parts.items() if kind == "statistics"]
        return 4096 + sum(int(part.values.nbytes) for part in matrices if part is not None)

    @cached_property
    def _own_facts(self) -> Mapping[str, Any]:
        if FACTS not in self._names:
            return {}
        read = self._read("facts", lambda: self._observations.own_facts(self.step, self.worker))
        own, wrong = of_their_forms(read or {})
        self.damaged.update(wrong)
        return own

    def _facts_of(self, layout: ObservationLayout) -> Mapping[str, Any]:
        found: Mapping[str, Any]
        known = self.shared_by_layout
        if "facts" not in known:
            known["facts"] = of_their_forms(layout.facts)
        found, wrong = known["facts"]
        self.damaged.update(wrong)
        return found

    def _layout(self, own: Mapping[str, Any]) -> ObservationLayout:
        return self._observations.layout_at(own.get("layout"), self.worker)

    def _rows_of(self, kind: str) -> tuple[ObservedTensor, ...]:
        if kind == PARTS:
            kind = PARAMETERS
        return () if self.layout is None else self.layout.tensors.get(kind, ())

    def _value(self, name: str) -> NDArray[Any]:
        return self._observations.value_of(name, self.step, self.worker)

    def _statistics(self, kind: str) -> StatisticsMatrix | None:
        rows = self._rows_of(kind)
        if not rows:
            return None
        name = f"{STATISTICS}{kind}"
        values = matrix(self._value(name), len(rows), len(COLUMNS), np.float32, name)
        found = StatisticsMatrix(self.step, rows, (kind,) * len(rows), values)
        return own_parts(found, self.shares) if self.has_parts else found

    def _measured_parts(self, kind: str) -> NDArray[np.float64]:
        rows, name = self._rows_of(kind), f"{MEASURED_PARTS}{kind}"
        return matrix(self._value(name), len(rows), len(MEASURED), np.float64, name)

    def _samples(self, kind: str) -> Mapping[str, NDArray[np.float32]]:
        rows, values = self._rows_of(kind), self._value(f"{SAMPLES}{kind}")
        values = matrix(values, len(rows), values.shape[-1], np.float32, f"{SAMPLES}{kind}")
        return {row.name: value[: row.size] for row, value in zip(rows, values, strict=True)}

    def _digests(self, kind: str) -> Mapping[str, tuple[int, int]]:
        rows, name = self._rows_of(kind), f"{DIGESTS}{kind}"
        halves = matrix(self._value(name), len(rows), 2, np.int64, name).tolist()
        return {row.name: (first, second) for row, (first, second) in zip(rows, halves, strict=True)}

    def _series(self, name: str) -> NDArray[np.float64]:
        content = self._value(f"{SERIES}{name}")
        rows = matrix(content, len(content), len(SERIES_COLUMNS), np.float64, f"{SERIES}{name}")
        if not np.isfinite(rows[:, :3]).all():
            raise DamagedFile(f"{SERIES}{name}", "it has steps that are not numbers")
        return rows

    def _part(self, what: str, name: str, read: Callable[[str], Any]) -> Any:
        key = (what, name)
        if key not in self._parts:
            present = f"{OBSERVATIONS}{what}/{name}" in self._names
            found = self._read(f"{what} of {name}", lambda: read(name)) if present else None
            self._parts[key] = found
        return self._parts[key]

    def _read(self, what: str, read: Callable[[], Any]) -> Any:
        try:
            return read()
        except _ABSENT:
            return None
        except DAMAGED as error:
            self.damaged[what] = str(error)
            self._observations.note_damage(error)
            return None


class _ScalarsAlone(ObservedStep):
    """A step of the training of which there are scalars and nothing else."""

    def __init__(self, written_with: ObservedStep, series: Mapping[str, NDArray[np.float64]]):
        seen = written_with
        super().__init__(seen._observations, seen.step, ModeKeys.TRAIN, seen.worker, frozenset())
        self.damaged = seen.damaged
        self.series_names = list(series)
        self._kept = series

    def series(self, name: str) -> NDArray[np.float64]:
        """The values of a scalar since the previous saved step: rows of step, mode, mode step, value."""
        return self._kept.get(name, _NO_ROWS)


class ObservedSteps:
    """The steps that were requested last, so that all rules of a step share what was read of it."""

    def __init__(self, observations: StepSource, trial: Any):
        self._observations = observations
        self._trial = trial
        self._kept: OrderedDict[tuple[int, str | None], tuple[Any, ObservedStep]] = OrderedDict()
        self._newest: tuple[int, str | None, Any, ObservedStep] | None = None
        self._budget = KEPT_BYTES

    def limit(self, budget: int) -> None:
        """Keep at most so many bytes of the last steps."""
        self._budget = min(self._budget, budget)

    def at(self, step: int, worker: str | None = None) -> ObservedStep:
        """The step as that worker observed it, or the first worker that has facts of it, or scalars."""
        written = self._trial.index.workers_at(step, ModeKeys.GLOBAL) or {}
        newest = self._newest
        if newest is not None and newest[:2] == (step, worker) and newest[2] is written:
            return newest[3]
        found = self._found(step, worker, written)
        self._newest = (step, worker, written, found)
        return found

    def damage_at(self, step: int) -> Mapping[str, str]:
        """The damaged parts of the step, if it is the one that was asked for last."""
        newest = self._newest
        return newest[3].damaged if newest is not None and newest[0] == step else {}

    def _found(self, step: int, worker: str | None, written: Mapping[str, Any]) -> ObservedStep:
        key = (step, worker)
        known = self._kept.get(key)
        if known is not None and (known[0] is written or known[0] == written):
            return known[1]
        found = self._opened(step, worker, written)
        self._kept[key] = (written, found)
        self._kept.move_to_end(key)
        if len(self._kept) > _LEAST_KEPT:
            oldest = islice(self._kept.values(), _LEAST_KEPT)
            size = max(seen.nbytes for _, seen in oldest)
            while len(self._kept) > max(_LEAST_KEPT, self._budget // size):
                self._kept.popitem(last=False)
        return found

    def _opened(self, step: int, worker: str | None, written: Mapping[str, Any]) -> ObservedStep:
        mode = self._trial.mode(step) or ModeKeys.GLOBAL
        is_of_all = worker is None
        if worker is None:
            worker = _observer_among(written)
        at_step = written.get(worker) if worker is not None else None
        names = frozenset(at_step.places) if at_step is not None else frozenset()
        others = partial(self.beside, step, worker) if is_of_all and self._trial.num_workers > 1 else None
        return ObservedStep(self._observations, step, mode, worker, names, others)

    def placed(
        self, matrix: StatisticsMatrix, kind: str, step: int, worker: str | None, *, wholes: bool
    ) -> StatisticsMatrix:
        """Return the statistics of a worker's tensors with what is known of the parts that they are of."""
        seen = self.at(step, worker)
        if worker is None and (wholes or self._trial.num_workers > 1):
            return with_wholes(matrix, kind, seen, self.beside(step, seen.worker))
        return own_parts(matrix, seen.shares)

    def beside(self, step: int, worker: str | None) -> dict[str, ObservedStep]:
        """The step as each worker but that one observed it."""
        written = self._trial.index.workers_at(step, ModeKeys.GLOBAL) or {}
        others = [other for other in written if other != worker]
        return {other: self._opened(step, other, written) for other in others}


def _observer_among(written: Mapping[str, Any]) -> str | None:
    """Return the first worker that has facts, else that has scalars, such as those after the last facts."""
    with_facts = (worker for worker, at_step in written.items() if FACTS in at_step.places)
    with_scalars = (
        worker
        for worker, at_step in written.items()
        if any(name.startswith(SERIES) for name in at_step.places)
    )
    return next(chain(with_facts, with_scalars), None)
