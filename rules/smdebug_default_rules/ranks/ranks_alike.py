"""Inputs that should differ between ranks but are equal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from smdebug.rules import Finding
from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.base import Advice, DefaultRule

LEAST_STEPS = 2


class RanksAlike(DefaultRule):
    """Fires when several ranks train on bit-equal inputs, while their parameters are replicas.

    Ranks whose parameters differ, as in tensor parallelism, get equal inputs by design.
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

    def check(self, seen: ObservedStep) -> Iterator[Finding]:
        roots = {
            worker: (kinds["inputs"], kinds.get("parameters"))
            for worker, kinds in self.base_trial.observations.roots(seen.step).items()
            if "inputs" in kinds
        }
        if len(roots) < 2:
            self.lacks("inputs of fewer than two ranks were saved")
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
