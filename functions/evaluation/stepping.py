"""Walking over the steps that are due, in order, while there is time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from functions.decisions.settling import Ready, Settling, Waiting, late_steps, next_step
from functions.evaluation.asking import DEATHS_BEFORE_ALONE, DEATHS_BEFORE_PASSING, ask_each
from functions.evaluation.leased_group import LeasedGroup, wants
from functions.workflow_start import leave_check
from smdebug.service.records import GroupRecord, StepRecord

KEPT_STEPS = 500  # of those that were given up or arrived late
KEPT_GAPS = 50
_LATE_TOGETHER = 20  # one message may report several late steps


class StepWalk:
    """One walk over the due steps of a leased group, evaluating its rules at each."""

    def __init__(self, leased: LeasedGroup):
        self.leased = leased

    def run(self, hinted_step: int) -> bool:
        """Evaluate what is due; return whether there is more to do.

        `hinted_step` is the step whose files started this evaluation.
        """
        leased = self.leased
        if leased.record.num_workers is None:
            return False
        if leased.deaths >= DEATHS_BEFORE_ALONE and leased.group.alone:
            self._fail_killer(leased.group.alone[-1])
            return True
        for step in self._late(hinted_step):
            self._evaluate(step)
            if self.has_enough():
                return True
        for ready in self.due():
            if isinstance(ready, Waiting):
                wait = ready.until - leased.world.clock.now()
                leave_check(leased.world, leased.record, after=wait)
                return False
            if not self._evaluate(ready.step, ready):
                leased.wait()
                return False
            if self.has_enough():
                return True
        return False

    # What a claim of a custom rule does differently

    def due(self) -> Iterator[Ready | Waiting]:
        """Yield the steps that are due, in order, and finally what the next one waits for."""
        longest = self.leased.world.settings.longest_backlog
        while True:
            steps = self._after_cursor()
            while ready := next_step(steps, self._settling(), self.leased.bench.previous_step):
                yield ready
            all_evaluated = all(step.step <= self.leased.group.cursor for step in steps)
            if len(steps) < longest or not all_evaluated:
                return

    def has_enough(self) -> bool:
        """Whether to commit now: after a crash, a large outbox, or enough time."""
        leased = self.leased
        size = sum(len(entry["detail"]) for entry in leased.outbox.values())
        return (
            leased.deaths >= DEATHS_BEFORE_ALONE
            or size >= leased.world.settings.largest_outbox
            or leased.world.clock.now() - leased.begun >= leased.world.settings.work
        )

    def ask_rules(self, step: StepRecord, *, late: bool) -> bool:
        """Evaluate the rules at the step; return False if one has to wait for another run."""
        rules = [
            rule
            for rule in self.leased.group.rules
            if not rule.status.is_final and wants(self.leased.configuration(rule), step.step)
        ]
        return ask_each(self.leased, rules, step, late=late)

    def advance(self, step: StepRecord, due: Ready | None) -> None:
        """Note that the step was evaluated; it was late if it was not due."""
        advance(self.leased, step, due)

    # Finding steps

    def _after_cursor(self) -> list[StepRecord]:
        leased = self.leased
        return leased.world.index.steps(
            leased.record.run,
            leased.record.training_run,
            first=leased.group.cursor + 1,
            limit=leased.world.settings.longest_backlog,
        )

    def _settling(self) -> Settling:
        leased = self.leased
        assert leased.record.num_workers is not None
        return Settling(
            num_workers=leased.record.num_workers,
            cursor=leased.group.cursor,
            records_previous_steps=leased.record.records_previous_steps,
            ended=leased.record.has_ended,
            timeout=leased.world.settings.incomplete_step_timeout,
            now=leased.world.clock.now(),
            chief=leased.record.chief,
        )

    def _late(self, hinted_step: int) -> list[StepRecord]:
        """Return the steps that became complete after the cursor had passed them.

        While the run goes on only those near the hinted step are looked up, and those that were given
        up: the evaluation that was started for one of them may have died.
        """
        record, group = self.leased.record, self.leased.group
        known: list[StepRecord] = []
        if record.has_ended and not group.finished:
            if group.passed or group.gaps or not record.records_previous_steps:
                known = self._steps_up_to(group.cursor)
        else:
            given_up = max(group.passed - group.late_done, default=-1)
            near = {given_up, hinted_step if hinted_step <= group.cursor else -1} - {-1}
            found = [step for last in near for step in self._steps_up_to(last, _LATE_TOGETHER)]
            known = list({step.step: step for step in found}.values())
        return late_steps(known, self._settling(), group=group)

    def _steps_up_to(self, last: int, limit: int | None = None) -> list[StepRecord]:
        record = self.leased.record
        return self.leased.world.index.steps(
            record.run, record.training_run, last=last, limit=limit, newest_first=limit is not None
        )

    # Evaluating a step

    def _evaluate(self, step: StepRecord, due: Ready | None = None) -> bool:
        """Evaluate all rules at the step, which is late if it is not due.

        Return False if a rule has to wait for another run: nothing counts then.
        """
        leased, late = self.leased, due is None
        if leased.deaths >= DEATHS_BEFORE_PASSING:
            leased.report(
                f"Step {step.step} was given up: the function died {leased.deaths} times while "
                "reading it, before any rule ran. It needs more memory or more time."
            )
        else:
            problem = leased.bench.move_to(step)
            if problem is not None:
                leased.report(problem)
            if leased.bench.summary is not None:
                self._describe(step, late=late)
                if not self.ask_rules(step, late=late):
                    return False
        self.advance(step, due)
        return True

    def _describe(self, step: StepRecord, *, late: bool) -> None:
        """Write what the step holds to the index, for later views of the run's history."""
        leased, summary = self.leased, self.leased.bench.summary
        assert summary is not None
        old = not leased.record.records_previous_steps
        # The commit marks a late step as done; a mark made before would hide it if the commit fails.
        by = leased.group.group if old and not late else None
        if step.layout is None or (by and by not in step.evaluated_by):
            leased.world.index.describe_step(
                leased.record.run,
                step,
                mode=summary.mode.name,
                mode_step=summary.mode_step,
                layout=summary.layout,
                evaluated_by=by,
            )

    def _fail_killer(self, rule_id: str) -> None:
        """Set the rule to Error that the function evaluated alone when it died."""
        rule = self.leased.rule(rule_id)
        if rule is not None:
            self.leased.fail_rule(
                rule,
                f"The function died {self.leased.deaths} times after step {self.leased.group.cursor}, "
                "the last time while evaluating this rule alone: it needs more memory or more time.",
            )


def advance(leased: LeasedGroup, step: StepRecord, due: Ready | None) -> None:
    """Move the group's cursor to the step, or note it as done if it was late."""
    leased.evaluated += 1
    if due is None:
        leased.group = with_late_done(leased.group, step.step)
        return
    given_up = frozenset(sorted(leased.group.passed | due.passed)[-KEPT_STEPS:])
    gaps = leased.group.gaps
    if due.missing is not None:
        gaps = (*gaps, (leased.group.cursor, due.missing))[-KEPT_GAPS:]
    leased.group = replace(
        leased.group, cursor=step.step, passed=given_up, gaps=gaps, finished=False
    )


def with_late_done(group: GroupRecord, step: int) -> GroupRecord:
    """Return the group after a late step; steps older than it can remember count as done."""
    done = sorted(group.late_done | {step})
    forgotten = done[:-KEPT_STEPS]
    gaps = group.gaps
    if forgotten:
        gaps = tuple((max(first, forgotten[-1]), last) for first, last in gaps)
    return replace(group, late_done=frozenset(done[-KEPT_STEPS:]), gaps=gaps, finished=False)
