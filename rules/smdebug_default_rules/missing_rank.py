"""A rank that takes no part in steps at which the others do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from smdebug.rules import Finding
from smdebug.trials.observed_step import ObservedStep
from smdebug_default_rules.base import BOTH, Advice, DefaultRule


class MissingRank(DefaultRule):
    """Fires when a rank has saved no digests at a step at which others have, once a later step was saved."""

    cause = "missing rank"
    modes = BOTH
    advice: ClassVar[Advice] = {
        "missing rank": (
            "Look at the log of this rank: it may have died, or wait for a collective call of the "
            "others.",
            "Make all ranks run the same number of steps: pad or drop what is left of an epoch.",
        )
    }

    def __init__(self, base_trial: Any, *, action_str: Any = None):
        super().__init__(base_trial, action_str)
        self.waiting: int | None = None
        self.since: dict[str, int] = {}

    def look(self, seen: ObservedStep) -> Iterator[Finding]:
        observations = self.base_trial.observations
        if observations.expected_workers < 2:
            self.lacks("the run has a single worker")
            return
        judged = self.waiting  # digests may arrive after a step: judge it when a later one has them
        if len(observations.roots(seen.step)) > 1:
            self.waiting = seen.step
        if judged is None or judged == self.waiting:
            self.looked = False
            return
        absent = observations.absent_workers(judged)
        self.since = {worker: self.since.get(worker, judged) for worker in absent}
        for worker in absent:
            yield self.finding(
                f"{worker} has saved nothing at step {judged}, where "
                f"{len(observations.roots(judged))} others have",
                since=self.since[worker],
                worker=worker,
                statistic="ranks that take part",
                value=observations.expected_workers - len(absent),
                limit=observations.expected_workers,
            )
