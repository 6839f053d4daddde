"""Evaluating the rules of a group on a run: lease, due steps in order, one commit.

Whatever happens in between, nothing counts before the commit; and a commit counts only if nobody has
taken over. So every rule sees every due step with exactly one effect, however often this is started,
killed or started twice at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from functions.decisions.configuration import custom_group, group_of
from functions.decisions.detail_types import CONDITION_MET, STATUS_CHANGE
from functions.decisions.events import (
    Moment,
    OutboxEntry,
    Overflow,
    old_state_change,
)
from functions.decisions.giving_up import why_given_up
from functions.decisions.rule_lifecycle import (
    Raised,
    Verdict,
    attach_again,
    begin_again,
    fail,
    finish,
    judge,
    stop,
)
from functions.decisions.settling import Ready, Settling, Waiting, late_steps, next_step
from functions.decisions.silence import watches_silence
from functions.evaluation.rule_bench import RuleBench, StateTooLarge
from functions.evaluation.rule_call import END, SILENCE, Behind
from functions.run_record import change, in_trouble
from functions.step_index import GroupGone
from functions.telemetry import log, metrics
from functions.workflow_reply import answer
from functions.workflow_start import RUN_ITSELF, leave_check
from functions.world import World
from smdebug.service.records import (
    BUILT_IN,
    NOTHING_EVALUATED,
    GroupRecord,
    RuleConfiguration,
    RuleRecord,
    RuleStatus,
    RunRecord,
    RunState,
    StepRecord,
)

KEPT_STEPS = 500  # of those that were passed, or came late
KEPT_GAPS = 50
WAIT = 60  # seconds, for a run that is behind, or cannot be read
DEATHS_BEFORE_ALONE = 2
DEATHS_BEFORE_PASSING = 4
_LATE_TOGETHER = 20  # one message may tell of several steps that come late


def evaluate(world: World, run: str, group: str, hinted_step: int) -> dict[str, Any]:
    """Have the rules of a group look at every step that is due; what there is to publish."""
    record = world.index.run(run)
    if record is None:
        return answer(world, run, group, {})
    if group == RUN_ITSELF:
        return answer(world, run, None, record.outbox)
    now = world.clock.now()
    try:
        held = world.index.lease(run, group, now=now, seconds=world.settings.lease)
    except GroupGone:
        return answer(world, run, group, {})
    work = Evaluation(world, as_new_as(world, record, held), held, begun=now)
    work.reconcile()
    more = work.do_what_is_due(hinted_step)
    if not more and not work.waits:
        work.ask_in_silence()
        if work.ask_at_end():
            work.finish_if_ended()
    work.commit()
    if not more:
        work.join_what_is_level()
    return answer(world, run, group, {**held.outbox, **work.outbox}, more=more)


def as_new_as(world: World, record: RunRecord, held: GroupRecord) -> RunRecord:
    """The record of the run, read again if its rules have seen a later attempt than it tells of.

    Who takes the lease may have read it long before.
    """
    if held.training_run <= record.training_run:
        return record
    return world.index.run(record.run) or record


class Evaluation:
    """One lease: what was read, and what has become of it so far."""

    def __init__(self, world: World, record: RunRecord, held: GroupRecord, *, begun: float):
        self.world = world
        self.record = record
        self.group = held
        self.begun = begun
        self.deaths = held.deaths - 1  # this lease is not dead yet
        self.bench = RuleBench(world, record)
        self.outbox: dict[str, dict[str, str]] = {}
        self.configurations: dict[str, RuleConfiguration] = {}
        self.evaluated = 0
        self.waits = False  # for another run, that may still come as far
        self._findings: list[OutboxEntry] = []
        self._overflows: list[Overflow] = []

    # Rules come and go

    def reconcile(self, *, lanes: bool = True) -> None:
        """Take on the rules that were attached, let go of those that were detached.

        Those that are not level with the others get lanes of their own, except where no lane is to begin.
        """
        rules = self.world.index.rules(self.record.run)
        self.configurations = {one.id: one for one in (*rules.detached, *rules.wanted)}
        wanted = {one.id for one in rules.wanted}
        if self.group.training_run < self.record.training_run:
            self._begin_anew()
        for rule in self.group.rules:
            if rule.id not in wanted:
                reason = "The rule was detached from the run, or its configuration was changed."
                self._take(stop(rule, self._configuration(rule), reason, self._moment()))
        for configuration in rules.wanted:
            if self._group_of(configuration) == self.group.group:
                self._attach(configuration, lanes=lanes)
        for rule in (
            self.group.rules if lanes else ()
        ):  # one that was given a lane, and is still on our list
            own = self._group_of(self._configuration(rule))
            if rule.id in wanted and own != self.group.group:
                self._into_lane(rule, self.group.cursor)

    def _attach(self, configuration: RuleConfiguration, *, lanes: bool) -> None:
        known = next((rule for rule in self.group.rules if rule.id == configuration.id), None)
        if known is not None:
            if known.status is RuleStatus.STOPPED:  # it was detached, and is wanted again
                self._attach_again(known, configuration, lanes=lanes)
            return
        rule = RuleRecord(
            configuration.id,
            configuration.name,
            changed_at=self.begun,
            catch_up_through=self.group.cursor,
        )
        if self.group.group == BUILT_IN and self.group.cursor != NOTHING_EVALUATED and lanes:
            self._into_lane(rule, NOTHING_EVALUATED)
            return
        if self.group.group != BUILT_IN:  # its own, and went on without it
            self._from_the_first_step()
        self.group = replace(self.group, rules=(*self.group.rules, rule), finished=False)

    def _attach_again(
        self, known: RuleRecord, configuration: RuleConfiguration, *, lanes: bool
    ) -> None:
        through = self.group.cursor
        self._take(attach_again(known, configuration, through, self._moment()))
        if self.group.group != BUILT_IN:
            self._from_the_first_step()
        elif through != NOTHING_EVALUATED and lanes:
            self._into_lane(self.group.rule(known.id), NOTHING_EVALUATED)

    def _group_of(self, configuration: RuleConfiguration) -> str:
        own = lane_of(configuration.id), custom_group(configuration.id)
        known = next((group for group in own if group in self.record.groups), None)
        return known or group_of(configuration, self.world.settings.custom_functions)

    def _configuration(self, rule: RuleRecord) -> RuleConfiguration:
        return self.configurations.get(rule.id) or RuleConfiguration(rule.name, rule.name)

    def _into_lane(self, rule: RuleRecord, cursor: int) -> None:
        """Give a rule that is not level with the others a group of its own, from that cursor on."""
        lane = lane_of(rule.id)

        def with_lane(known: RunRecord) -> RunRecord:
            groups = dict.fromkeys([*known.groups, lane])
            return replace(known, groups=tuple(groups))

        begun = GroupRecord(
            lane, training_run=self.record.training_run, cursor=cursor, rules=(rule,)
        )
        # First the lane, then that it is known: whoever dies in between leaves one that nobody has looked at.
        self.world.index.begin_lane(self.record.run, begun)
        self.record = change(self.world, self.record, with_lane)
        others = tuple(one for one in self.group.rules if one.id != rule.id)
        self.group = replace(self.group, rules=others)
        leave_check(self.world, self.record, after=1)

    def _begin_anew(self) -> None:
        """A resumed training writes its steps again, from its checkpoint on."""
        moment = self._moment()
        for rule in self.group.rules:
            self._take(begin_again(rule, self._configuration(rule), moment))
        self._from_the_first_step()

    def _from_the_first_step(self) -> None:
        """Whatever was evaluated before counts no more."""
        self.group = replace(
            self.group,
            training_run=self.record.training_run,
            cursor=NOTHING_EVALUATED,
            passed=frozenset(),
            gaps=(),
            late_done=frozenset(),
            finished=False,
        )

    def join_what_is_level(self) -> None:
        """A rule in a lane that has come as far as the built-in ones is one of them from now on.

        Both are evaluated at once, so it is who ends last, lane or others, that finds them level.
        """
        run, own = self.record.run, self.group.group
        for name in (own,) if own != BUILT_IN else self.record.groups:
            lane = self.world.index.group(run, name) if name.startswith(_LANE) else None
            level = self.world.index.group(run, BUILT_IN) if lane else None
            if lane is None or level is None or not self._are_level(level, lane):
                continue
            rules = (*level.rules, *lane.rules)
            merged = replace(level, rules=rules, finished=level.finished and lane.finished)
            if self.world.index.merge(self.record, lane, level, merged):
                self.record = self.world.index.run(run) or self.record

    def _are_level(self, level: GroupRecord, lane: GroupRecord) -> bool:
        """Is the lane where the built-in rules are, with nobody at work on either and nothing to tell?"""
        return (
            (level.cursor, level.training_run) == (lane.cursor, lane.training_run)
            and self.record.tells_previous_steps  # else what came late is known by group
            and level.passed - level.late_done == lane.passed - lane.late_done
            and level.gaps == lane.gaps
            and not (level.lease_until or lane.lease_until or lane.outbox)
            and not any(self._configuration(rule).other_trials for rule in lane.rules)
        )

    # Steps

    def do_what_is_due(self, hinted_step: int) -> bool:
        """Evaluate the steps that are due, in order, while there is time. Is there more to do?"""
        if self.record.num_workers is None:
            return False
        if self.deaths >= DEATHS_BEFORE_ALONE and self.group.alone:
            self._give_up_on(self.group.alone[-1])
            return True
        for step in self._late(hinted_step):
            self._evaluate(step)
            if self._has_enough():
                return True
        for verdict in self._due():
            if isinstance(verdict, Waiting):
                wait = verdict.until - self.world.clock.now()
                leave_check(self.world, self.record, after=wait)
                return False
            if not self._evaluate(verdict.step, verdict):
                self._wait()
                return False
            if self._has_enough():
                return True
        return False

    def _wait(self) -> None:
        self.waits = True
        leave_check(self.world, self.record, after=WAIT)

    def _due(self) -> Iterator[Ready | Waiting]:
        """The steps that are due, one after the other, and what the next one waits for."""
        while True:
            steps = self._after_cursor()
            while verdict := next_step(steps, self._settling(), self._previous_step):
                yield verdict
            if len(steps) < self.world.settings.longest_backlog:
                return
            if all(one.step <= self.group.cursor for one in steps):
                continue
            return

    def _after_cursor(self) -> list[StepRecord]:
        return self.world.index.steps(
            self.record.run,
            self.record.training_run,
            first=self.group.cursor + 1,
            limit=self.world.settings.longest_backlog,
        )

    def _previous_step(self, step: int, worker: str) -> int | None:
        return self.bench.previous_step(step, worker)

    def _settling(self) -> Settling:
        assert self.record.num_workers is not None
        return Settling(
            num_workers=self.record.num_workers,
            cursor=self.group.cursor,
            tells_previous_steps=self.record.tells_previous_steps,
            ended=self.record.has_ended,
            timeout=self.world.settings.incomplete_step_timeout,
            now=self.world.clock.now(),
        )

    def _late(self, hinted_step: int) -> list[StepRecord]:
        """Those that are complete only after the cursor has passed: near the one told of, at the end all.

        Who was told of one may have died since: those that were given up are looked at by everybody.
        """
        known: list[StepRecord] = []
        if self.record.has_ended and not self.group.finished:
            if self.group.passed or self.group.gaps or not self.record.tells_previous_steps:
                known = self._steps_up_to(self.group.cursor)
        else:
            given_up = max(self.group.passed - self.group.late_done, default=-1)
            near = {given_up, hinted_step if hinted_step <= self.group.cursor else -1} - {-1}
            found = [one for last in near for one in self._steps_up_to(last, limit=_LATE_TOGETHER)]
            known = list({one.step: one for one in found}.values())
        return late_steps(known, self._settling(), group=self.group)

    def _steps_up_to(self, step: int, limit: int | None = None) -> list[StepRecord]:
        run = self.record
        return self.world.index.steps(
            run.run, run.training_run, last=step, limit=limit, newest_first=limit is not None
        )

    def _has_enough(self) -> bool:
        size = sum(len(entry["detail"]) for entry in self.outbox.values())
        return (
            self.deaths >= DEATHS_BEFORE_ALONE
            or size >= self.world.settings.largest_outbox
            or self.world.clock.now() - self.begun >= self.world.settings.work
        )

    def _evaluate(self, step: StepRecord, due: Ready | None = None) -> bool:
        """Every rule looks at the step, which is late if it is not due.

        False if a rule has to wait for another run: nothing counts then.
        """
        late = due is None
        if self.deaths >= DEATHS_BEFORE_PASSING:
            self._say(
                f"Step {step.step} was given up: the function died {self.deaths} times when it "
                "looked at it, before any rule did. It needs more memory, or more time."
            )
        else:
            problem = self.bench.look_at(step)
            if problem is not None:
                self._say(problem)
            if self.bench.summary is not None:
                self._describe(step, late=late)
                if not self._ask_all(step, late=late):
                    return False
        self._advance(step, due)
        return True

    def _ask_all(self, step: StepRecord, *, late: bool) -> bool:
        rules = [
            rule
            for rule in self.group.rules
            if not rule.status.is_final and wants(self._configuration(rule), step.step)
        ]
        return self._ask_each(rules, step, late=late)

    def _ask_each(
        self,
        rules: Iterable[RuleRecord],
        step: StepRecord,
        *,
        late: bool = False,
        occasion: str = "",
        silent_for: float | None = None,
    ) -> bool:
        moment = self._moment(step, late=late, occasion=occasion)
        for rule in rules:
            configuration = self._configuration(rule)
            if self.deaths >= DEATHS_BEFORE_ALONE:
                self.world.index.note_alone(self.record.run, self.group, rule.id)
            outcome = self.bench.ask(
                rule, configuration, step.step, occasion=occasion, silent_for=silent_for
            )
            if isinstance(outcome, Behind):
                if self.group.group != BUILT_IN:
                    return False
                self._into_lane(rule, self.group.cursor)
                continue
            catch_up = step.step <= rule.catch_up_through and silent_for is None
            self._take(judge(rule, configuration, outcome, replace(moment, catch_up=catch_up)))
            if isinstance(outcome, Raised):
                metrics({"RuleErrors": (1, "Count")})
        return True

    def _describe(self, step: StepRecord, *, late: bool) -> None:
        """Note what the step holds, for those who look back at it later."""
        told = self.bench.summary
        assert told is not None
        old = not self.record.tells_previous_steps
        # A late step is marked as done by the commit; a mark made before would hide it if that fails.
        by = self.group.group if old and not late else None
        if step.layout is None or (by and by not in step.evaluated_by):
            self.world.index.describe_step(
                self.record.run,
                step,
                mode=told.mode.name,
                mode_step=told.mode_step,
                layout=told.layout,
                evaluated_by=by,
            )

    def _advance(self, step: StepRecord, due: Ready | None) -> None:
        self.evaluated += 1
        if due is None:
            self.group = with_late_done(self.group, step.step)
            return
        given_up = frozenset(sorted(self.group.passed | due.passed)[-KEPT_STEPS:])
        gaps = self.group.gaps
        if due.missing is not None:
            gaps = (*gaps, (self.group.cursor, due.missing))[-KEPT_GAPS:]
        self.group = replace(
            self.group, cursor=step.step, passed=given_up, gaps=gaps, finished=False
        )

    def _give_up_on(self, rule_id: str) -> None:
        """The function died when this rule looked alone: it was this one."""
        message = (
            f"The function died {self.deaths} times after step {self.group.cursor}, the last time "
            "when this rule was asked alone: it needs more memory or more time than there is."
        )
        for rule in self.group.rules:
            if rule.id == rule_id:
                self._take(fail(rule, self._configuration(rule), message, self._moment()))
                metrics({"RuleErrors": (1, "Count")})

    # The end, and what comes before it

    def ask_in_silence(self) -> None:
        """Rules that watch for it are told of a silence, of a run that goes on."""
        goes_on = self.record.state in (RunState.RUNNING, RunState.SILENT)
        if not goes_on or self.evaluated or self.group.cursor == NOTHING_EVALUATED:
            return
        rules = [
            rule
            for rule in self.group.rules
            if watches_silence(self._configuration(rule))
            and not rule.status.is_final
            and wants(self._configuration(rule), self.group.cursor)
        ]
        step = self.last_step() if rules and self.deaths < DEATHS_BEFORE_PASSING else None
        if step is None:
            return
        newest = self.world.index.steps(
            self.record.run, self.record.training_run, limit=1, newest_first=True
        )
        last = max(one.indexed for one in (step, *newest))
        self.bench.look_at(step)
        silent_for = self.world.clock.now() - last
        self._ask_each(rules, step, occasion=SILENCE, silent_for=silent_for)

    def ask_at_end(self) -> bool:
        """Rules that have something to say of a whole run say it now. False if one of them has to wait.

        What they find belongs to the last step.
        """
        rules = [rule for rule in self.group.rules if self.is_to_see_the_end(rule)]
        rules = [rule for rule in rules if self.bench.asks_at_end(self._configuration(rule))]
        step = self.last_step() if rules else None
        if step is None:
            return True
        problem = self.bench.look_at(step)
        if problem is not None:
            self._say(problem)
        if self._ask_each(rules, step, occasion=END):
            return True
        self._wait()
        return False

    def is_to_see_the_end(self, rule: RuleRecord) -> bool:
        """Has the run ended, and with a step that the rule was asked about?"""
        return (
            self.record.has_ended
            and not self.group.finished
            and not rule.status.is_final
            and self.deaths < DEATHS_BEFORE_PASSING
            and self.group.cursor != NOTHING_EVALUATED
            and wants(self._configuration(rule), self.group.cursor)
        )

    def last_step(self) -> StepRecord | None:
        """The step at the cursor, if there is still a record of it."""
        run, last = self.record, self.group.cursor
        found = self.world.index.steps(run.run, run.training_run, first=last, last=last)
        return found[0] if found else None

    def finish_if_ended(self) -> None:
        """The run has ended and everything was looked at: each rule gets its last status."""
        if not self.record.has_ended or self.group.finished:
            return
        for rule in self.group.rules:
            self._take(finish(rule, self._configuration(rule), self._moment()))
        self.group = replace(self.group, finished=True)

    def give_up(self) -> None:
        """The rules of this group come no further: they are in error, and the run can be finished."""
        most = self.world.settings.checks_in_vain
        for rule in self.group.rules:
            configuration = self._configuration(rule)
            problem = why_given_up(self.group, configuration, most)
            self._take(fail(rule, configuration, problem, self._moment()))
            metrics({"RuleErrors": (1, "Count")})
        newest = self.world.index.steps(
            self.record.run, self.record.training_run, limit=1, newest_first=True
        )
        last = max([self.group.cursor, *(step.step for step in newest)])
        self.group = replace(self.group, cursor=last, finished=True)

    def commit(self) -> None:
        """Everything in one write, and the lease's end with it. States and findings are there before it."""
        for rule in self.group.rules:
            try:
                self.group = self.group.with_rule(self.bench.remembered(rule, self.group))
            except StateTooLarge as problem:
                verdict = fail(rule, self._configuration(rule), problem.problem, self._moment())
                self._take(verdict)
        for overflow in self._overflows:
            self.bench.write(overflow.key, overflow.body)
        for entry in self._findings:
            detail = entry.detail
            self.world.index.put_finding(self.record.run, detail["step"], entry.id, detail)
        if any(entry["detail_type"] == STATUS_CHANGE for entry in self.outbox.values()):
            told = old_state_change(self.record, self._all_rules(), self.world.clock.now())
            self.outbox[told.id] = told.as_item()
        self.world.index.commit(self.record.run, self.group, self.outbox)
        if self.evaluated:
            log(
                "Evaluated",
                run=self.record.run,
                group=self.group.group,
                steps=self.evaluated,
                through=self.group.cursor,
                findings=len(self._findings),
            )

    def _all_rules(self) -> list[RuleRecord]:
        rules = list(self.group.rules)
        if len(self.record.groups) > 1:
            for group in self.world.index.groups_of(self.record):
                rules += group.rules if group.group != self.group.group else ()
        return rules

    # What is told

    def _take(self, verdict: Verdict) -> None:
        self.group = self.group.with_rule(verdict.rule)
        for entry in verdict.outbox:
            self.outbox[entry.id] = entry.as_item()
            if entry.detail_type == CONDITION_MET:
                self._findings.append(entry)
            if entry.overflow is not None:
                self._overflows.append(entry.overflow)

    def _say(self, problem: str) -> None:
        """Something is wrong with the run's files: it is said once, and the rest goes on."""
        self.record = in_trouble(self.world, self.record, "steps", problem)

    def _moment(
        self, step: StepRecord | None = None, *, late: bool = False, occasion: str = ""
    ) -> Moment:
        about: Mapping[str, Any] = {}
        if step is not None:
            told = self.bench.summary
            about = {
                "mode": told.mode.name if told else step.mode,
                "mode_step": told.mode_step if told else step.mode_step,
                "saved": self.bench.saved,
                "uploaded": step.uploaded or None,
                "indexed": step.indexed or None,
                "late": late,
                "occasion": occasion,
            }
        return Moment.of(
            self.record,
            self.group.cursor if step is None else step.step,
            evaluated=self.world.clock.now(),
            group=self.group.group,
            **about,
        )


def with_late_done(group: GroupRecord, step: int) -> GroupRecord:
    """The group after a step that came late. What it can no longer tell from others counts as done."""
    done = sorted(group.late_done | {step})
    forgotten = done[:-KEPT_STEPS]
    gaps = group.gaps
    if forgotten:
        gaps = tuple((max(first, forgotten[-1]), last) for first, last in gaps)
    return replace(group, late_done=frozenset(done[-KEPT_STEPS:]), gaps=gaps, finished=False)


def wants(configuration: RuleConfiguration, step: int) -> bool:
    """Is the rule to look at that step?"""
    end = configuration.end_step
    return configuration.start_step <= step and (end is None or step < end)


def lane_of(rule_id: str) -> str:
    """The group of a built-in rule that is not level with the others."""
    return f"{_LANE}{rule_id}"


_LANE = "lane-"


def statuses(groups: Iterable[GroupRecord]) -> dict[RuleStatus, int]:
    """How many rules there are of each status."""
    counted = dict.fromkeys(RuleStatus, 0)
    for group in groups:
        for rule in group.rules:
            counted[rule.status] += 1
    return counted
