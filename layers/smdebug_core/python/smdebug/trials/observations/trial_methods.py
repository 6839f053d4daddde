"""What trials offer of a run's observations. Most readers need none, so nothing is imported until then."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from smdebug.files.names import SYSTEM
from smdebug.mode_keys import ModeKeys

if TYPE_CHECKING:
    from smdebug.config.collection import Collection
    from smdebug.trials.observations.series import Series
    from smdebug.trials.observations.statistics_matrix import StatisticsMatrix
    from smdebug.trials.observations.whole_run import Observations
    from smdebug.trials.stored.values import ValueReader

GLOBAL = ModeKeys.GLOBAL


class Observed:
    """What a trial offers of its run's observations."""

    value_reader: ValueReader

    @cached_property
    def observations(self) -> Observations:
        """The run's statistics, samples, digests, facts and series."""
        from smdebug.trials.observations.readable import Readable
        from smdebug.trials.observations.whole_run import Observations

        return Observations(cast(Readable, self))

    def statistics(
        self,
        step: int,
        mode: ModeKeys = GLOBAL,
        worker: str | None = None,
        kind: str | None = None,
        *,
        wholes: bool = False,
    ) -> StatisticsMatrix:
        """Return what was measured at the step: a row per tensor, a column per statistic.

        `kind` is one of parameters, gradients, updates, inputs and outputs, or None for all of them. Rows of
        sharded tensors are of the whole if every worker saves its part, and otherwise of the first worker's
        part; with `wholes`, of the whole at each step at which all parts were measured.
        """
        return self.observations.statistics(step, mode, worker, kind, wholes=wholes)

    def measured_tensors(
        self,
        kind: str | None = None,
        *,
        regex: str | Iterable[str] | None = None,
        collection: str | Collection | None = None,
    ) -> list[str]:
        """Return the names of the tensors that were measured, those of one kind together, as in the model.

        `tensor_names` has those that were saved; `tensor(name)` takes both. `collection` also selects the
        tensors of the kind that has its name, such as gradients.
        """
        chosen = self.chosen_by(regex, collection)
        wanted = collection if isinstance(collection, str) else None
        return [
            tensor.name
            for its_kind, tensors in self.observations.measured.by_kind().items()
            if kind in (None, its_kind)
            for tensor in tensors
            if chosen is None or its_kind == wanted or chosen(tensor.name)
        ]

    def chosen_by(
        self, regex: str | Iterable[str] | None, collection: str | Collection | None
    ) -> Callable[[str], bool] | None:
        """Return what chooses names by a pattern or a collection; None if all are chosen."""
        raise NotImplementedError

    def facts(self, step: int, mode: ModeKeys = GLOBAL, worker: str | None = None) -> dict[str, Any]:
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
        found = self.observations.series(name, worker)
        if len(found):
            self.note_reading()
        return found

    def note_reading(self) -> None:
        """Count something that was read and kept before, and is used again."""
        self.value_reader.values_read += 1
