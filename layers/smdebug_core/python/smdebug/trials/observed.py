"""What trials offer of a run's observations. Most readers need none, so nothing is imported until then."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from smdebug.files.names import SYSTEM
from smdebug.mode_keys import ModeKeys

if TYPE_CHECKING:
    from smdebug.trials.observations import Observations, Series
    from smdebug.trials.statistics_matrix import StatisticsMatrix

GLOBAL = ModeKeys.GLOBAL


class Observed:
    """What a trial offers of its run's observations."""

    @cached_property
    def observations(self) -> Observations:
        """The run's statistics, samples, digests, facts and series."""
        from smdebug.trials.observations import Observations, Readable

        return Observations(cast(Readable, self))

    def statistics(
        self,
        step: int,
        mode: ModeKeys = GLOBAL,
        worker: str | None = None,
        kind: str | None = None,
    ) -> StatisticsMatrix:
        """Return what was measured at the step: a row per tensor, a column per statistic.

        `kind` is one of parameters, gradients, updates, inputs and outputs, or None for all of them.
        """
        return self.observations.statistics(step, mode, worker, kind)

    def facts(
        self, step: int, mode: ModeKeys = GLOBAL, worker: str | None = None
    ) -> dict[str, Any]:
        """Return what was true of the step: modes of modules, optimizers, the form of the batch, the loss."""
        return self.observations.facts(step, mode, worker)

    def system_metrics(self, worker: str | None = None) -> dict[int, dict[str, Any]]:
        """Return the system metrics at saved steps: seconds per step, CPU, memory, GPUs.

        Times are averages since the previous saved step. Empty if that was not kept.
        """
        found = {}
        for step in self.observations.steps():
            measured = self.observations.facts_of_step(step, worker).get(SYSTEM)
            if isinstance(measured, dict):
                found[step] = measured
        return found

    def series(self, name: str, worker: str | None = None) -> Series:
        """Return a scalar of every step, saved or not: `trial.series("loss")`."""
        return self.observations.series(name, worker)
