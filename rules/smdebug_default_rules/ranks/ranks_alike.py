"""Inputs and shards that should differ between ranks but are equal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from smdebug.numbers.rows import COLUMN
from smdebug.rules import Finding
from smdebug.trials.observations.one_step import ObservedStep
from smdebug.trials.observations.worker_parts import WorkerParts, by_tensor
from smdebug_default_rules.arrays import where
from smdebug_default_rules.base import Advice, DefaultRule

LEAST_STEPS = 2
LEAST_VALUES = 8
MOST_NAMED = 8


class RanksAlike(DefaultRule):
    """Fires when ranks train on bit-equal inputs while their parameters are replicas, or shards begin alike.

    Ranks whose parameters differ, as in tensor parallelism, get equal inputs by design. Where a device mesh
    shards the parameters, its names say which ranks those are.
    """

    cause = "ranks alike"
    advice: ClassVar[Advice] = {
        "ranks alike": (
            "Give the data loader a DistributedSampler, and call its set_epoch at every epoch.",
            "Seed noise and augmentation of each rank separately.",
        )
    }

    def __init__(self, base_trial: Any, *, action_str: Any = None):
        super().__init__(base_trial, action_str)
        self.steps = 0
        self.since = 0
        self.shards_were_judged = False

    def check(self, seen: ObservedStep) -> Iterator[Finding]:
        observations = self.base_trial.observations
        held = observations.parts(seen.step)
        if held and not self.shards_were_judged:
            self.shards_were_judged = len(held) > 1
            yield from self._shards(seen, held)
        roots = {
            worker: (kinds["inputs"], kinds.get("parameters"))
            for worker, kinds in observations.roots(seen.step).items()
            if "inputs" in kinds
        }
        if len(roots) < 2:
            if len(held) < 2:
                self.lacks("inputs of fewer than two ranks were saved")
            return
        if held:
            rows = {worker: held[worker].rows if worker in held else None for worker in roots}
            if len(set(rows.values())) < 2 or None in rows.values():
                self.steps = 0  # one model for all, or a mesh that does not say which ranks share rows
                return
        if len(set(roots.values())) > 1:
            self.steps = 0
            return
        alike = sorted(roots)
        inputs = seen.statistics("inputs")
        name = "input" if inputs is None else inputs.names[0]
        self.since = seen.step if not self.steps else self.since
        self.steps += 1
        if self.steps >= LEAST_STEPS:
            yield self.finding(
                f"{name} is bit-equal on all {len(alike)} ranks ({', '.join(alike[:4])}): they "
                "train on the same rows",
                since=self.since,
                tensor=name,
                worker=alike[-1],
                statistic="ranks with equal inputs",
                value=len(alike),
                limit=1,
                why=(f"1 input for {len(alike)} ranks, at {self.steps} saved steps in a row",),
            )

    def _shards(self, seen: ObservedStep, held: Mapping[str, WorkerParts]) -> Iterator[Finding]:
        """Yield the sharded parameters whose parts are equal, if most are: one may be a pattern."""
        matrix = seen.statistics("parameters")
        if matrix is None:
            return
        values = matrix.values
        varies = values[:, COLUMN["min"]] < values[:, COLUMN["max"]]
        is_random = varies & (values[:, COLUMN["count"]] >= LEAST_VALUES)
        random = {matrix.names[place] for place in where(is_random)}
        split = [
            tensor
            for tensor in by_tensor(held)
            if tensor.name in random and len({part.place for part in tensor.held.values()}) > 1
        ]
        alike = [(tensor.name, along) for tensor in split if (along := tensor.alike_along())]
        if 2 * len(alike) <= len(split):
            return
        for name, along in alike[:MOST_NAMED]:
            yield self.finding(
                f"The parts of {name} are bit-equal along {along}: the ranks drew the same random numbers",
                since=seen.step,
                tensor=name,
                statistic="sharded parameters whose parts are equal",
                value=len(alike),
                limit=0,
                title="The shards of a parameter begin alike",
                why=(
                    f"Sharded parameters with equal parts at step {seen.step}: {len(alike)} of {len(split)}",
                ),
                advice=(
                    "Draw the whole tensor with one seed and split it (distribute_tensor), or add the "
                    f"rank's place along {along} to the seed where each rank draws its own part.",
                ),
            )
