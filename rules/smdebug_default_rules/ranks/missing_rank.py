"""A rank that misses steps of the others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from smdebug.mode_keys import TRAINING
from smdebug.rules import Finding
from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.base import BOTH, Advice, DefaultRule

UNEVEN_STEPS = 10


class MissingRank(DefaultRule):
    """Fires when a rank has saved no digests at a step at which all ranks do, once a later one was saved.

    The last such step is judged when the run has ended.
    """

    cause = "missing rank"
    modes = BOTH
    advice: ClassVar[Advice] = {
        "missing rank": (
            "Look at the log of this rank: it may have died, or wait for a collective call of the others.",
            "Make all ranks run the same number of steps: pad or drop what is left of an epoch.",
        )
    }

    def __init__(self, base_trial: Any, *, action_str: Any = None):
        super().__init__(base_trial, action_str)
        self.waiting: int | None = None
        self.several = False
        """Whether several ranks have saved at the same step so far."""
        self.since: dict[str, int] = {}
        self.ten = -1
        """The last ten of the default plan's steps of which one was observed, where tensors are chosen."""

    def check(self, seen: ObservedStep) -> Iterator[Finding]:
        observations = self.base_trial.observations
        if observations.expected_workers < 2:
            self.lacks("the run has a single worker")
            return
        is_due = self._is_due(seen)
        judged = self.waiting  # digests may arrive after a step: judge it when a later one is due
        if len(observations.roots(seen.step)) > 1:
            self.waiting, self.several = seen.step, True
        elif self.several and is_due:
            self.waiting = seen.step
        if judged is None or judged == self.waiting:
            self.looked = False
            return
        yield from self._absent(judged)

    def invoke_at_end(self, step: int) -> bool:
        """Judge the last step at which all ranks save: no more digests arrive.

        The others may end a few steps before the first rank, where the data cannot be shared out evenly.
        """
        self.findings = []
        if self.waiting is not None and step >= self.waiting + UNEVEN_STEPS:
            self.findings = [*self._absent(self.waiting)]
        return bool(self.findings)

    def _absent(self, judged: int) -> Iterator[Finding]:
        observations = self.base_trial.observations
        present, expected = observations.roots(judged), observations.expected_workers
        missing = observations.absent_workers(judged, least_present=1)
        self.since = {worker: self.since.get(worker, judged) for worker in missing}
        for worker in missing:
            others = "another has" if len(present) == 1 else f"{len(present)} others have"
            yield self.finding(
                f"{worker} has saved nothing at step {judged}, where {others}",
                since=self.since[worker],
                worker=worker,
                statistic="ranks that take part",
                value=expected - len(missing),
                limit=expected,
                title=f"Rank {worker} takes no part in a step",
                why=(f"{expected - len(missing)} of {expected} ranks saved step {judged}",),
            )

    def _is_due(self, seen: ObservedStep) -> bool:
        """Whether the ranks that run save at this step."""
        mode, number = self.base_trial.mode_modestep(seen.step)
        if mode is None or number is None or seen.mode not in TRAINING or not seen.facts:
            return False
        if not self.base_trial.observations.are_beside:
            return all_ranks_save(number)
        before, self.ten = self.ten, max(self.ten, ten_of(number))
        return self.ten > before


def all_ranks_save(step: int) -> bool:
    """Whether the default plan has all ranks save digests at this step of training.

    That is every tenth of the steps that the first rank saves: 0, 10, 110 and so on to 910, then 1100, 2100.
    """
    return step in (0, 10) or (step % 100 == 10 if step < 1000 else step % 1000 == 100)


def ten_of(step: int) -> int:
    """Which ten of the steps of training that the default plan saves this step is in.

    Where tensors are chosen, all ranks save digests at the first observed step of each.
    """
    if step < 10:
        return 0
    return 1 + (step - 10) // 100 if step <= 1000 else 11 + (step - 1100) // 1000
