"""Walking over the steps that are due, in order, while there is time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial

from functions.decisions.settling import (
    Ready,
    Settling,
    Waiting,
    late_steps,
    lost_before,
    next_step,
    ready_in_part,
    skipped,
    was_skipped,
)
from functions.evaluation.asking import DEATHS_BEFORE_ALONE, DEATHS_BEFORE_PASSING, ask_each
from functions.evaluation.leased_group import LeasedGroup, wants
from functions.evaluation.read_ahead import ReadAhead
from functions.run_record import report_two_trainings
from functions.workflow_start import leave_check
from smdebug.service.records import NOTHING_EVALUATED, GroupRecord, StepRecord
from smdebug.service.step_index.items import shard_of

KEPT_STEPS = 500  # of those that were given up or arrived late
KEPT_GAPS = 50
_LATE_TOGETHER = 20  # one message may report several late steps


class StepWalk:
    """One walk over the due steps of a leased group, evaluating its rules at each."""

    reads_ahead = True

    def __init__(self, leased: LeasedGroup):
        self.leased = leased
        self._ahead = ReadAhead(leased, goes_on=self.reads_ahead)

    def run(self, hinted_step: int) -> bool:
        """Evaluate what is due; return whether there is more to do.

        `hinted_step` is the step whose files started this evaluation.
        """
        leased = self.leased
        if leased.record.num_workers is None:
            return False
        if not leased.record.has_ended:
            leased.group = replace(leased.group, checked=NOTHING_EVALUATED)
        if leased.deaths >= DEATHS_BEFORE_ALONE and leased.group.alone:
            self._fail_killer(leased.group.alone[-1])
            return True
        with self._ahead:
            return self._walk(hinted_step)

    def _walk(self, hinted_step: int) -> bool:
        leased = self.leased
        for step in self._late(hinted_step):
            if not self._evaluate(self._ready_late(step)):
                leased.wait()
                return False
            if self.has_enough():
                return True
        for ready in self.due():
            if isinstance(ready, Waiting):
                wait = ready.until - leased.world.clock.now()
                leave_check(leased.world, leased.record, after=wait)
                return False
            if not self._evaluate(ready):
                leased.wait()
                return False
            if self.has_enough():
                return True
        return self._look_back() if leased.record.has_ended else False

    # What a claim of a custom rule does differently

    def due(self) -> Iterator[Ready | Waiting]:
        """Yield the steps that are due, in order, and finally what the next one waits for.

        At the end of the run these include the last ones, which some workers did not save as a whole.
        """
        previous = self.leased.bench.previous_step
        while True:
            steps, is_all = self._backlog()
            while self._ahead.reach(steps) and (ready := next_step(steps, self._settling(), previous)):
                yield ready
            if not any(step.step <= self.leased.group.cursor for step in steps):
                break  # nothing of them is due
            if is_all:
                steps = [step for step in steps if step.step > self.leased.group.cursor]
                break
        if self.leased.record.has_ended:
            yield from self._incomplete_at_end(steps)

    def _incomplete_at_end(self, steps: list[StepRecord]) -> Iterator[Ready]:
        """Yield the incomplete steps at the end of the run that can be evaluated in part; count the others.

        Steps that workers did not save before they closed are as they are meant to be.
        """
        leased, record = self.leased, self.leased.record
        notes = leased.world.index.closing_notes(record.run, record.training_run)
        lost = {last for last in notes.values() if last > leased.group.cursor}
        while steps:
            lost -= {step.step for step in steps}
            for step in steps:
                if skipped(step, notes, record.num_workers or 1):
                    continue
                if ready := ready_in_part(step, steps, self._settling(), leased.bench.previous_step):
                    yield ready
                elif step.with_index or not record.training_run:
                    # An event file alone may be of an attempt before the training was resumed.
                    leased.group = with_lost(leased.group, [step.step])
            steps = self._steps_after(steps[-1].step, leased.world.settings.longest_backlog)
        leased.group = with_lost(leased.group, lost)

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
            if not rule.is_over and wants(self.leased.configuration(rule), step.step)
        ]
        return ask_each(self.leased, rules, step, late=late)

    def advance(self, ready: Ready) -> None:
        """Note that the step was evaluated."""
        advance(self.leased, ready)

    # Finding steps

    def _backlog(self) -> tuple[list[StepRecord], bool]:
        """Return steps after the cursor, up to a complete one, and whether these are all that there are.

        Steps that only some workers save may lie before the next complete one, by the thousand.
        """
        leased, settings = self.leased, self.leased.world.settings
        workers = leased.record.num_workers or 1
        items_a_step = shard_of(f"worker_{workers - 1}") + 1
        limit = settings.longest_backlog
        steps = self._steps_after(leased.group.cursor, limit)
        is_all = len(steps) * items_a_step < limit
        while not is_all and len(steps) < settings.longest_gap:
            if any(leased.record.is_whole(step) for step in steps):
                break
            more = self._steps_after(steps[-1].step, settings.page)
            is_all = not more
            steps += more
        return steps, is_all

    def _steps_after(self, step: int, limit: int) -> list[StepRecord]:
        record = self.leased.record
        return self.leased.world.index.steps(record.run, record.training_run, first=step + 1, limit=limit)

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
        """Return steps that became complete after the cursor had passed them.

        Only those near the hinted step are looked up, and near the last one that was given up: the
        evaluation that was started for it may have died. At the end of the run all are looked up.
        """
        group = self.leased.group
        given_up = max(group.passed - group.late_done, default=-1)
        near = {given_up, hinted_step if hinted_step <= group.cursor else -1} - {-1}
        found = [step for last in near for step in self._steps_up_to(last, _LATE_TOGETHER)]
        known = list({step.step: step for step in found}.values())
        return late_steps(known, self._settling(), group=group)

    def _look_back(self) -> bool:
        """At the end of the run, evaluate late steps page by page; return whether there is more to do.

        Where the files name the previous steps, only the part of the run is read that was given up.
        """
        leased = self.leased
        while (page := self._page_to_check()) and not leased.group.finished:
            for step in late_steps(page, self._settling(), group=leased.group):
                if not self._evaluate(self._ready_late(step)):
                    leased.wait()
                    return False
                if self.has_enough():
                    return True
            leased.group = replace(leased.group, checked=page[-1].step)
            if leased.record.records_previous_steps:
                self._find_skipped(page)
            else:
                self._lose_incomplete(page)
            if self.has_enough():
                return True
        return False

    def _page_to_check(self) -> list[StepRecord]:
        leased, group = self.leased, self.leased.group
        first = group.checked + 1
        if leased.record.records_previous_steps:
            given_up = [*group.passed, *(gap[0] + 1 for gap in group.gaps)]
            if not given_up:
                return []
            first = max(first, min(given_up))
        if first > group.cursor:
            return []
        return leased.world.index.steps(
            leased.record.run,
            leased.record.training_run,
            first=first,
            last=group.cursor,
            limit=leased.world.settings.page,
        )

    def _lose_incomplete(self, page: list[StepRecord]) -> None:
        """Count the incomplete steps of a run whose files do not name the previous steps."""
        record = self.leased.record
        incomplete = (step.step for step in page if not record.is_whole(step))
        self.leased.group = with_lost(self.leased.group, incomplete)

    def _find_skipped(self, page: list[StepRecord]) -> None:
        """Take skipped steps off the lost ones: all their files came, but too late."""
        leased, record = self.leased, self.leased.record
        for step in page:
            if step.step not in leased.group.lost or record.is_whole(step):
                continue
            after = self._steps_after(step.step, leased.world.settings.longest_backlog)
            later = next((other for other in after if record.is_whole(other)), None)
            previous = leased.bench.previous_step
            if later and was_skipped(step, later, self._written, previous, record.chief):
                named = lost_before(step, leased.group, self._written, previous, record.chief)
                group = replace(leased.group, lost=leased.group.lost - {step.step})
                leased.group = with_lost(group, named)

    def _written(self, step: int) -> StepRecord | None:
        record = self.leased.record
        return self.leased.world.index.step(record.run, record.training_run, step)

    def _ready_late(self, step: StepRecord) -> Ready:
        """Return a late step, with the lost steps that only its files name."""
        leased = self.leased
        lost: frozenset[int] = frozenset()
        if leased.record.records_previous_steps:
            lost = lost_before(
                step, leased.group, self._written, leased.bench.previous_step, leased.record.chief
            )
        return Ready(step, lost=lost, late=True)

    def _steps_up_to(self, last: int, limit: int | None = None) -> list[StepRecord]:
        record = self.leased.record
        return self.leased.world.index.steps(
            record.run, record.training_run, last=last, limit=limit, newest_first=limit is not None
        )

    # Evaluating a step

    def _evaluate(self, ready: Ready) -> bool:
        """Evaluate all rules at the step.

        Return False if a rule has to wait for another run: nothing counts then.
        """
        leased, step, late = self.leased, ready.step, ready.late
        if leased.deaths >= DEATHS_BEFORE_PASSING:
            leased.report(
                f"Step {step.step} was given up: the function died {leased.deaths} times while "
                "reading it, before any rule ran. It needs more memory or more time."
            )
        else:
            problem = leased.bench.move_to(step)
            if problem is not None:
                leased.report(problem)
            if leased.bench.earlier_attempt is not None:
                leased.keep(report_two_trainings(leased.world, leased.record, leased.bench.earlier_attempt))
            if leased.bench.summary is not None:
                self._describe(step, late=late)
                if not self.ask_rules(step, late=late):
                    return False
        self.advance(ready)
        return True

    def _describe(self, step: StepRecord, *, late: bool) -> None:
        """Write what the step holds to the index, for later views of the run's history."""
        leased, summary = self.leased, self.leased.bench.summary
        assert summary is not None
        old = not leased.record.records_previous_steps
        # The commit marks a late step as done; a mark made before would hide it if the commit fails.
        by = leased.group.group if old and not late else None
        if step.layout is None or (by and by not in step.evaluated_by):
            self._ahead.write(
                partial(
                    leased.world.index.describe_step,
                    leased.record.run,
                    step,
                    mode=summary.mode.name,
                    mode_step=summary.mode_step,
                    layout=summary.layout,
                    evaluated_by=by,
                )
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


def advance(leased: LeasedGroup, ready: Ready) -> None:
    """Move the group's cursor to the step, or note it as done if it was late; count it."""
    leased.evaluated += 1
    group, step = leased.group, ready.step
    if not ready.late:
        given_up = frozenset(sorted(group.passed | ready.passed)[-KEPT_STEPS:])
        gaps = group.gaps
        if ready.missing is not None:
            gaps = (*gaps, (group.cursor, ready.missing))[-KEPT_GAPS:]
        group = replace(group, cursor=step.step, passed=given_up, gaps=gaps, finished=False)
    else:
        group = with_late_done(group, step.step)
    if ready.partly:
        group = replace(group, partly=group.partly + 1)
    else:
        group = replace(group, evaluated=group.evaluated + 1)
    leased.group = with_lost(replace(group, lost=group.lost - {step.step}), ready.lost)


def with_lost(group: GroupRecord, steps: Iterable[int]) -> GroupRecord:
    """Return the group after it lost these steps, which may arrive late."""
    lost = sorted(group.lost.union(steps) - group.late_done)
    kept = lost[-KEPT_STEPS:]
    return replace(group, lost=frozenset(kept), forgotten=group.forgotten + len(lost) - len(kept))


def with_late_done(group: GroupRecord, step: int) -> GroupRecord:
    """Return the group after a late step; steps older than it can remember count as done."""
    done = sorted(group.late_done | {step})
    forgotten = done[:-KEPT_STEPS]
    gaps = group.gaps
    if forgotten:
        gaps = tuple((max(first, forgotten[-1]), last) for first, last in gaps)
    return replace(group, late_done=frozenset(done[-KEPT_STEPS:]), gaps=gaps, finished=False)
