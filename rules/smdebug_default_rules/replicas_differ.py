"""Parameters that should be equal on all ranks, and are not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from smdebug.rules import Finding
from smdebug.trials.observed_step import ObservedStep
from smdebug_default_rules.base import BOTH, Advice, DefaultRule

MOST_NAMED = 8


class ReplicasDiffer(DefaultRule):
    """Fires when a parameter that was equal on all ranks differs between them, or differs while others agree.

    Parameters that differ everywhere from the first step on are shards, which is no fault.
    """

    cause = "replicas differ"
    modes = BOTH
    advice: ClassVar[Advice] = {
        "replicas differ": (
            "Wrap the model in DistributedDataParallel before the optimizer is made, and train "
            "the wrapped model.",
            "Do not change parameters, gradients or their clipping on one rank alone.",
        )
    }

    def __init__(self, base_trial: Any, *, action_str: Any = None):
        super().__init__(base_trial, action_str)
        self.were_equal = False
        self.since: dict[str, int] = {}

    def look(self, seen: ObservedStep) -> Iterator[Finding]:
        observations = self.base_trial.observations
        roots = {
            worker: kinds["parameters"]
            for worker, kinds in observations.roots(seen.step).items()
            if "parameters" in kinds
        }
        if len(roots) < 2:
            self.lacks("parameters of fewer than two ranks were saved")
            return
        if len(set(roots.values())) == 1:
            self.were_equal = True
            self.since = {}
            return
        differing = observations.differing(seen.step)
        matrix = seen.statistics("parameters")
        names = set() if matrix is None else set(matrix.names)
        if not self.were_equal and names <= {difference.name for difference in differing}:
            return
        self.since = {
            difference.name: self.since.get(difference.name, seen.step) for difference in differing
        }
        for difference in sorted(differing, key=lambda known: self.since[known.name])[:MOST_NAMED]:
            name, workers = difference.name, difference.workers
            yield self.finding(
                f"{name} differs between the ranks: {', '.join(workers[:8])} from "
                f"{len(difference.others)} "
                f"others ({len(differing)} of {len(names) or '?'} parameters differ)",
                since=self.since[name],
                tensor=name,
                worker=workers[0] if len(workers) < len(difference.others) else None,
                statistic="parameters that differ",
                value=len(differing),
                limit=0,
            )
