"""What a rule can read from a run that holds observations: facts, statistics, series, histories, replicas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from smdebug.exceptions import SMDebugValueError, TensorUnavailable
from smdebug.mode_keys import ModeKeys

if TYPE_CHECKING:
    from smdebug.trials.observations.one_step import ObservedStep
    from smdebug.trials.observations.series import Series
    from smdebug.trials.observations.statistics_matrix import StatisticsMatrix

KEPT = 256
"""How many values of a history are kept."""


class History(NamedTuple):
    """A statistic of one tensor at the steps that the rule has asked for it, the newest last."""

    steps: tuple[int, ...]
    values: tuple[float, ...]


class ObservedRun:
    """The part of a rule that reads observations.

    What is read of a step is shared by all rules of the trial. Of `history`, the rule keeps what it has
    seen in its own state, so that a step costs the files of that step alone.
    """

    base_trial: Any

    def observed(self, step: int, worker: str | None = None) -> ObservedStep:
        """Return what was observed at the step, each part read once for all rules.

        Parts that are absent or damaged are None or empty; its `damaged` has the reasons.
        """
        found: ObservedStep = self.base_trial.observations.judged(step, worker)
        if found.facts or found.series_names:
            self.base_trial.note_reading()
        return found

    def facts(self, step: int, worker: str | None = None) -> Mapping[str, Any]:
        """Return what was true of the step: modes, optimizers, batch, loss. Empty without facts."""
        return self.observed(step, worker).facts

    def statistics(
        self, step: int, kind: str | None = None, worker: str | None = None
    ) -> StatisticsMatrix | None:
        """Return the statistics of the step as a matrix; None if it has none of that kind.

        `kind` is parameters, gradients, updates, inputs or outputs, or None for all tensors.
        """
        seen = self.observed(step, worker)
        return seen.statistics(kind) if kind is not None else seen.all_statistics

    def series(self, name: str, worker: str | None = None) -> Series | None:
        """Return a scalar at every step of the run so far, saved or not; None if there is none.

        The files of all earlier steps are read. `observed(step).series(name)` has the new values alone.
        """
        try:
            found: Series = self.base_trial.series(name, worker)
        except TensorUnavailable:
            return None
        return found

    def history(
        self,
        name: str,
        statistic: str,
        step: int | None = None,
        *,
        keep: int = KEPT,
        worker: str | None = None,
    ) -> History:
        """Return a statistic of one tensor at the evaluated step and those before, of the same mode.

        Call it at every step: it adds the value of the step, and the rule keeps the last `keep`.
        """
        step = self._evaluated_step(step)
        kept = self.__dict__.setdefault("_histories", {})
        mode = self.base_trial.mode(step) or ModeKeys.GLOBAL
        key = "\n".join((mode.name, worker or "", statistic, name))
        steps, values = kept.setdefault(key, ([], []))
        if not steps or steps[-1] < step:
            value = self._value_at(name, statistic, step, worker)
            if value is not None:
                steps.append(step)
                values.append(value)
                del steps[:-keep], values[:-keep]
        return History(tuple(steps), tuple(values))

    def replicas(self, name: str, step: int | None = None) -> dict[str, tuple[int, int]]:
        """Return the content digest of a tensor on each worker that has saved one.

        Equal tensors have equal digests. The files of all workers are read: to find what differs, use
        `base_trial.observations.differing(step)`, which reads the index files alone if nothing does.
        """
        step = self._evaluated_step(step)
        found: dict[str, tuple[int, int]] = {}
        for worker in sorted(self.base_trial.index.workers_at(step, ModeKeys.GLOBAL) or {}):
            observed = self.observed(step, worker)
            for kind in ("parameters", "inputs"):
                digest = observed.digests(kind).get(name)
                if digest is not None and any(digest):
                    found[worker] = digest
        return found

    def _evaluated_step(self, step: int | None) -> int:
        if step is None:
            step = self.__dict__.get("_step")
        if step is None:
            raise SMDebugValueError("Name the step: no step is being evaluated")
        return step

    def _value_at(self, name: str, statistic: str, step: int, worker: str | None) -> float | None:
        seen = self.observed(step, worker)
        for kind in () if seen.layout is None else seen.layout.tensors:
            found = seen.statistics(kind)
            if found is not None and name in found:
                value = float(found.column(statistic)[found.names.index(name)])
                return value if value == value else None
        return None
