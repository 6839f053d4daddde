"""A rank that misses steps of the others, or for which they wait in vain."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from smdebug.mode_keys import TRAINING
from smdebug.rules import Finding
from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.base import BOTH, MOST_FINDINGS, Advice, DefaultRule
from smdebug_default_rules.ranks.gone import Gone, ranks_gone
from smdebug_default_rules.ranks.standing import Standing, standing, waits_in

UNEVEN_STEPS = 10
STANDS_ADVICE = (
    "Show where it stands with py-spy dump --pid of that process. In a DataLoader: give it a timeout, and "
    "try num_workers=0. In another collective: let all ranks make the same calls in the same order.",
    "Let collectives fail instead of waiting: init_process_group(timeout=...).",
)
LOST_ADVICE = (
    "Look at the log and the exit code of that process, and whether its machine ran out of memory (dmesg).",
    "If it lives, py-spy dump --native --pid shows the call that holds the interpreter.",
)
KILLED_ADVICE = (
    "Look for what killed it: the kernel, if memory ran out (dmesg | grep -i kill), the scheduler, a crash "
    "of native code (exit code -11; PYTHONFAULTHANDLER=1 prints where).",
    "What the other ranks raise (a lost connection, a timeout) is a consequence of it.",
)
SAME_ADVICE = (
    "Look at the network between the machines. With NCCL, TORCH_NCCL_TRACE_BUFFER_SIZE=2000 and "
    "TORCH_NCCL_DUMP_ON_TIMEOUT=1 keep its flight recorder, which names the collective of each rank.",
)


class MissingRank(DefaultRule):
    """Fires when a rank has saved no digests at a step at which all ranks do, once a later one was saved.

    The last such step is judged when the run has ended. While nothing is saved, it reads where each rank
    stands, and fires for one that stands elsewhere than in the collective that the others wait in, and for
    one that has not closed the run where others failed half a minute ago.
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
        self.stalled: list[str] = []
        """The ranks that were named in the silence after the last step."""

    def check(self, seen: ObservedStep) -> Iterator[Finding]:
        observations = self.base_trial.observations
        if observations.expected_workers < 2:
            self.lacks("the run has a single worker")
            return
        is_due = self._is_due(seen)
        went_on, self.stalled = bool(self.stalled), []
        judged = self.waiting  # digests may arrive after a step: judge it when a later one is due
        if len(observations.roots(seen.step)) > 1:
            self.waiting, self.several = seen.step, True
        elif self.several and is_due:
            self.waiting = seen.step
        if judged is None or judged == self.waiting:
            self.looked = went_on  # a pause that is over resolves what was found in it
            return
        yield from self._absent(judged)

    def invoke_in_silence(self, step: int, seconds: float | None) -> None:
        """Judge where the ranks stand while nothing is saved after this step. Nothing is repeated."""
        self.findings, self.looked, self.not_checked, self.skipped = [], False, None, {}
        expected = self.base_trial.observations.expected_workers
        findings = [*self._in_silence(expected, step)] if expected > 1 else []
        named = {finding.worker or "all" for finding in findings}
        if named <= set(self.stalled):
            return
        self.stalled = sorted({*self.stalled, *named})
        self.looked = True
        self.findings = findings[:MOST_FINDINGS]
        self.raise_met(step, tuple(self.findings))

    def _in_silence(self, expected: int, step: int) -> Iterator[Finding]:
        found = standing(self.base_trial.stalls(), expected)
        if found is not None:
            yield from self._standing(found, step)
        elif (gone := ranks_gone(self.base_trial.closing_notes, expected)) is not None:
            yield from self._gone(gone)

    def _gone(self, gone: Gone) -> Iterator[Finding]:
        """Yield each rank that was killed, where others failed since."""
        others = f"{gone.failed} other rank{'s' if gone.failed != 1 else ''} failed"
        for worker in gone.workers:
            yield self.finding(
                f"{worker} has ended without a word, and {others} after step {gone.last_step}",
                since=gone.last_step,
                worker=worker,
                statistic="ranks that closed their run",
                title=f"Rank {worker} was killed",
                why=(
                    f"{worker} has not closed its run, as a rank does that raises or is terminated",
                    f"{others} and closed it; their last saved step: {gone.last_step}",
                ),
                advice=KILLED_ADVICE,
            )

    def _standing(self, found: Standing, step: int) -> Iterator[Finding]:
        """Yield each rank for which the others wait, or that no rank is behind."""
        where = ", ".join(sorted({*found.waits.values()}))
        waiting = f"{len(found.waits)} rank{'s wait' if len(found.waits) != 1 else ' waits'} in {where}"
        shared: dict[str, Any] = {
            "since": step,
            "statistic": "seconds that ranks wait",
            "value": round(found.seconds, 1),
        }
        for worker, stall in found.behind.items():
            place = waits_in(stall) or (stall.stack[0] if stall.stack else "a function that is not known")
            yield self.finding(
                f"{worker} has stood for {stall.seconds:.0f} s in {place}, in {stall.phase or 'a phase'} of "
                f"step {stall.step}; {waiting}",
                worker=worker,
                limit=round(stall.limit, 1),
                title=f"Rank {worker} stands while the others wait",
                why=(
                    f"It stands in: {' < '.join(stall.stack[:4])}",
                    f"Others, for {found.seconds:.0f} s: {where}",
                ),
                advice=STANDS_ADVICE,
                **shared,
            )
        for worker in found.lost:
            yield self.finding(
                f"{worker} says nothing, and {waiting} for {found.seconds:.0f} s: it has died, or runs no "
                "Python",
                worker=worker,
                title=f"Rank {worker} has died or hangs",
                why=(f"Others, for {found.seconds:.0f} s: {where}",),
                advice=LOST_ADVICE,
                **shared,
            )
        if not found.behind and not found.lost:
            yield self.finding(
                f"All {len(found.waits)} ranks have waited for {found.seconds:.0f} s in {where}: none is "
                "behind",
                title="All ranks wait in the same collective",
                why=(f"All ranks, for {found.seconds:.0f} s: {where}",),
                advice=SAME_ADVICE,
                **shared,
            )

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
