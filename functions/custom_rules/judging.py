"""Judging a custom rule's answer: checked as data, then committed under the lease of its claim.

A refused answer sets the rule to Error and does nothing else: only the reason reaches the table and the bus.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from functions.custom_rules.answers import Answer, AnswerRefused, Died, read_answer
from functions.custom_rules.budget import Reservation, give_back
from functions.custom_rules.jobs import Claimed, ClaimedStep
from functions.decisions.rule_lifecycle import judge
from functions.decisions.settling import Ready
from functions.evaluation.attaching import reconcile
from functions.evaluation.committing import commit
from functions.evaluation.last_evaluations import finish_if_ended, sees_end
from functions.evaluation.leased_group import LeasedGroup
from functions.evaluation.stepping import advance
from functions.rule_groups import LeaseLost
from functions.telemetry import log, metrics
from functions.workflow_reply import reply
from functions.world import World
from smdebug.mode_keys import ModeKeys
from smdebug.rules.asking import AT_END
from smdebug.rules.outcomes import Behind, Failed, Outcome
from smdebug.service.records import StepRecord
from smdebug.service.step_index.items import state_key
from smdebug.trials.past.history import StepSummary

DEATHS_BEFORE_ERROR = 2
TRIES_TO_READ = 10  # when the rule is not at fault


def commit_answer(world: World, run: str, group: str, claim: Mapping[str, Any], ran: Any) -> dict[str, Any]:
    """Commit what the rule answered; return what to publish. `LeaseLost` if it is too late."""
    claimed = Claimed.from_dict(claim)
    record = world.index.run(run)
    held = world.index.groups.get(run, group)
    if record is None or held is None or held.token != claimed.token:
        raise LeaseLost(f"The lease on the rules {group} of {run} was taken over; nothing was committed")
    if held.lease_until == 0:  # this commit was done before and is repeated
        return reply(world, run, group, held.outbox, more=True)
    leased = LeasedGroup(world, record, held, begun=world.clock.now())
    reconcile(leased)
    more = _Judgement(leased, claimed).apply(ran)
    if not more and claimed.ended and not leased.waits:
        rules = leased.group.rules
        more = not claimed.at_end and any(rule.asks_at_end and sees_end(leased, rule) for rule in rules)
        if not more:
            finish_if_ended(leased)
    commit(leased)
    if claimed.reserved:
        give_back(world, run, Reservation.from_dict(claimed.reserved))
    return reply(world, run, group, leased.group.outbox, more=more)


class _Judgement:
    """The effects of the answer to one claim; each method returns whether there is more to do at once."""

    def __init__(self, leased: LeasedGroup, claimed: Claimed):
        self._leased = leased
        self._claimed = claimed
        leased.claimed_checkpoints = claimed.checkpoints

    def apply(self, ran: Any) -> bool:
        """Apply the result of running the rule's function."""
        leased, claimed = self._leased, self._claimed
        if claimed.training_run != leased.group.training_run:
            return True  # the training was resumed meanwhile: these steps are written again
        rule = leased.rule(claimed.rule)
        if rule is not None:
            digest = rule.source_digest or claimed.source_digest
            leased.group = leased.group.with_rule(replace(rule, source_digest=digest))
        key = state_key(leased.group.group, claimed.rule, claimed.token)
        try:
            answer = read_answer(ran, asked=claimed.asked, state_key=key)
        except AnswerRefused as problem:
            self._fail(f"Its answer was refused. {problem}.")
            return True
        if isinstance(answer, Died):
            return self._died(answer)
        return self._apply_at_end(answer) if claimed.at_end else self._apply_steps(answer)

    def _apply_steps(self, answer: Answer) -> bool:
        leased, claimed = self._leased, self._claimed
        outcomes = iter(answer.outcomes)
        more = claimed.more or (leased.record.is_ending and not claimed.ended)
        for noted in claimed.steps:
            step = self._restore(noted)
            if noted.asked:
                outcome = next(outcomes, None)
                if outcome is None:  # the rule ran out of time
                    more = True
                    break
                if isinstance(outcome, Behind):
                    leased.wait()
                    more = False
                    break
                self._judge(outcome, step, late=noted.late)
                if isinstance(outcome, Failed):
                    more = True
            given_up, lost = frozenset(noted.passed), frozenset(noted.lost)
            advance(leased, Ready(step, given_up, lost, noted.late, noted.partly))
        self._keep_state(answer)
        return more

    def _apply_at_end(self, answer: Answer) -> bool:
        """Judge the end of the run. The rule's state is not kept, since a run may continue."""
        leased = self._leased
        if not leased.record.has_ended:
            return True  # it has continued: there will be another end
        outcome = answer.outcomes[0]
        if isinstance(outcome, Behind):
            leased.wait()
            return False
        step = self._restore(self._claimed.steps[0])
        self._judge(outcome, step, late=False, occasion=AT_END)
        return False

    def _judge(self, outcome: Outcome, step: StepRecord, *, late: bool, occasion: str = "") -> None:
        leased = self._leased
        rule = leased.rule(self._claimed.rule)
        if rule is None:
            return
        moment = leased.moment(step, late=late, occasion=occasion)
        checkpoints = leased.checkpoints_before(rule, outcome)
        moment = replace(moment, catch_up=step.step <= rule.catch_up_through, checkpoints=checkpoints)
        if rule.died_at is not None and step.step >= rule.died_at:
            rule = replace(rule, died_at=None, deaths=0)
        leased.apply(judge(rule, leased.configuration(rule), outcome, moment))
        if isinstance(outcome, Failed):
            metrics({"RuleErrors": (1, "Count")})

    def _keep_state(self, answer: Answer) -> None:
        leased = self._leased
        rule = leased.rule(self._claimed.rule)
        if rule is None or rule.is_over:
            return
        if answer.problem:
            self._fail(answer.problem)
            return
        rule = replace(rule, asks_at_end=answer.asks_at_end)
        if answer.state is not None or answer.state_key:
            rule = replace(rule, state=answer.state or b"", state_key=answer.state_key)
        leased.group = leased.group.with_rule(rule)
        if answer.left_out:
            log(
                "Some attributes of the rule are not plain data and were not saved",
                run=leased.record.run,
                rule=rule.name,
                attributes=list(answer.left_out),
            )

    def _died(self, death: Died) -> bool:
        """Count the death; the first may be accidental, so the step is claimed once more, alone."""
        leased, claimed = self._leased, self._claimed
        rule = leased.rule(claimed.rule)
        step = claimed.asked[0] if death.step is None else death.step
        if rule is None or rule.is_over:
            return True
        deaths = rule.deaths + 1 if rule.died_at == step else 1
        most = TRIES_TO_READ if death.later else DEATHS_BEFORE_ERROR
        log(
            "The function of a custom rule died",
            level="ERROR",
            run=leased.record.run,
            rule=rule.name,
            step=step,
            problem=death.message,
        )
        if deaths >= most:
            times = f"{deaths} times" if deaths > 2 else "twice"
            where = f"at the end, after step {step}" if claimed.at_end else f"at step {step}"
            self._fail(f"It died {times} {where}: {death.message}.")
            return True
        leased.group = leased.group.with_rule(replace(rule, died_at=step, deaths=deaths))
        if death.later:
            leased.wait()
            return False
        return True

    def _fail(self, problem: str) -> None:
        rule = self._leased.rule(self._claimed.rule)
        if rule is not None:
            self._leased.fail_rule(rule, problem)

    def _restore(self, noted: ClaimedStep) -> StepRecord:
        """Return the step as the claim saw it, and set the bench to it for the events' details."""
        leased = self._leased
        mode = ModeKeys[noted.mode] if noted.mode else ModeKeys.GLOBAL
        number = noted.step if noted.mode_step is None else noted.mode_step
        leased.bench.summary = StepSummary(noted.step, mode, number, ()) if noted.mode else None
        leased.bench.saved = noted.saved
        return StepRecord(
            noted.step,
            training_run=leased.group.training_run,
            uploaded=noted.uploaded,
            indexed=noted.indexed,
        )
