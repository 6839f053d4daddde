"""Committing what a custom rule said: under the lease of its claim, after its answer was checked as data.

What is wrong with an answer makes the rule Error and does nothing else: neither the table nor the bus
learns anything from it but a sentence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from functions.custom_rules.answers import AnswerRefused, Died, Said, read_answer
from functions.custom_rules.jobs import Claimed, ClaimedStep
from functions.decisions.rule_lifecycle import Raised, fail, judge
from functions.decisions.settling import Ready
from functions.evaluation.built_in import Evaluation
from functions.evaluation.rule_call import END, Behind
from functions.step_index import LeaseLost
from functions.telemetry import log, metrics
from functions.workflow_reply import answer
from functions.world import World
from smdebug.mode_keys import ModeKeys
from smdebug.service.items import state_key
from smdebug.service.records import RuleRecord, StepRecord
from smdebug.trials.history import StepSummary

DEATHS_BEFORE_ERROR = 2
TRIES_TO_READ = 10  # where it was not the rule's fault


def commit(
    world: World, run: str, group: str, claim: Mapping[str, Any], ran: Any
) -> dict[str, Any]:
    """Take what the rule said for what it is; what there is to publish. `LeaseLost` if it came too late."""
    claimed = Claimed.from_dict(claim)
    record = world.index.run(run)
    held = world.index.group(run, group)
    if record is None or held is None or held.token != claimed.token:
        raise LeaseLost(
            f"The lease on the rules {group} of {run} was taken over; nothing was committed"
        )
    if held.lease_until == 0:  # this very commit was done before, and is repeated
        return answer(world, run, group, held.outbox, more=True)
    work = Committing(world, record, held, begun=world.clock.now())
    work.reconcile()
    more = work.take(claimed, ran)
    if not more and claimed.ended and not work.waits:
        more = not claimed.at_end and work.has_end_to_ask()
        if not more:
            work.finish_if_ended()
    work.commit()
    return answer(world, run, group, {**held.outbox, **work.outbox}, more=more)


class Committing(Evaluation):
    """The same as an evaluation, of which the looking was done elsewhere."""

    def take(self, claimed: Claimed, ran: Any) -> bool:
        """What follows from what the run came to. Is there more to do at once?"""
        if claimed.training_run != self.group.training_run:
            return True  # the training was resumed meanwhile: these steps are written anew
        rule = next((one for one in self.group.rules if one.id == claimed.rule), None)
        if rule is not None:
            self.group = self.group.with_rule(
                replace(rule, source_digest=rule.source_digest or claimed.source_digest)
            )
        key = state_key(self.group.group, claimed.rule, claimed.token)
        try:
            told = read_answer(ran, asked=claimed.asked, state_key=key)
        except AnswerRefused as problem:
            self._fail(claimed.rule, f"Its answer was refused. {problem}.")
            return True
        if isinstance(told, Died):
            return self._died(claimed, told)
        if claimed.at_end:
            return self._said_at_end(claimed, told)
        return self._said(claimed, told)

    def has_end_to_ask(self) -> bool:
        """Is the rule to be asked about the end of the run, before it is finished?"""
        return any(rule.asks_at_end and self.is_to_see_the_end(rule) for rule in self.group.rules)

    def _said_at_end(self, claimed: Claimed, said: Said) -> bool:
        """It remembers nothing of that: the run may go on."""
        if not self.record.has_ended:
            return True  # it does already: there will be another end
        outcome = said.outcomes[0]
        if isinstance(outcome, Behind):
            self._wait()
            return False
        step = self._look_back_at(claimed.steps[0])
        self._judge(claimed.rule, outcome, step, late=False, occasion=END)
        return False

    def _said(self, claimed: Claimed, said: Said) -> bool:
        outcomes = iter(said.outcomes)
        more = claimed.more or (self.record.has_ended and not claimed.ended)
        for one in claimed.steps:
            step = self._look_back_at(one)
            if one.asked:
                outcome = next(outcomes, None)
                if outcome is None:  # its time was up
                    more = True
                    break
                if isinstance(outcome, Behind):
                    self._wait()
                    more = False
                    break
                self._judge(claimed.rule, outcome, step, late=one.late)
                if isinstance(outcome, Raised):
                    more = True
            due = None if one.late else Ready(step, frozenset(one.passed), one.missing)
            self._advance(step, due)
        self._remember(claimed.rule, said)
        return more

    def _judge(
        self, rule_id: str, outcome: Any, step: StepRecord, *, late: bool, occasion: str = ""
    ) -> None:
        rule = self._known(rule_id)
        if rule is None:
            return
        moment = self._moment(step, late=late, occasion=occasion)
        moment = replace(moment, catch_up=step.step <= rule.catch_up_through)
        if rule.died_at is not None and step.step >= rule.died_at:
            rule = replace(rule, died_at=None, deaths=0)
        self._take(judge(rule, self._configuration(rule), outcome, moment))
        if isinstance(outcome, Raised):
            metrics({"RuleErrors": (1, "Count")})

    def _remember(self, rule_id: str, said: Said) -> None:
        rule = self._known(rule_id)
        if rule is None or rule.status.is_final:
            return
        if said.problem:
            self._fail(rule_id, said.problem)
            return
        rule = replace(rule, asks_at_end=said.asks_at_end)
        if said.state is not None or said.state_key:
            rule = replace(rule, state=said.state or b"", state_key=said.state_key)
        self.group = self.group.with_rule(rule)
        if said.left_out:
            log(
                "The rule keeps what is no plain data, which is not remembered",
                run=self.record.run,
                rule=rule.name,
                attributes=list(said.left_out),
            )

    def _died(self, claimed: Claimed, death: Died) -> bool:
        """Once may be chance: the step is looked at once more, and alone."""
        rule = self._known(claimed.rule)
        step = claimed.asked[0] if death.step is None else death.step
        if rule is None or rule.status.is_final:
            return True
        deaths = rule.deaths + 1 if rule.died_at == step else 1
        most = TRIES_TO_READ if death.later else DEATHS_BEFORE_ERROR
        log(
            "The function of a custom rule died",
            level="ERROR",
            run=self.record.run,
            rule=rule.name,
            step=step,
            problem=death.message,
        )
        if deaths >= most:
            times = f"{deaths} times" if deaths > 2 else "twice"
            where = f"at the end, after step {step}" if claimed.at_end else f"at step {step}"
            self._fail(rule.id, f"It died {times} {where}: {death.message}.")
            return True
        self.group = self.group.with_rule(replace(rule, died_at=step, deaths=deaths))
        if death.later:
            self._wait()
            return False
        return True

    def _fail(self, rule_id: str, problem: str) -> None:
        rule = self._known(rule_id)
        if rule is not None:
            self._take(fail(rule, self._configuration(rule), problem, self._moment()))
            metrics({"RuleErrors": (1, "Count")})

    def _known(self, rule_id: str) -> RuleRecord | None:
        return next((one for one in self.group.rules if one.id == rule_id), None)

    def _look_back_at(self, one: ClaimedStep) -> StepRecord:
        """The step as the claim saw it, for what is told of this moment."""
        mode = ModeKeys[one.mode] if one.mode else ModeKeys.GLOBAL
        number = one.step if one.mode_step is None else one.mode_step
        self.bench.summary = StepSummary(one.step, mode, number, ()) if one.mode else None
        self.bench.saved = one.saved
        return StepRecord(
            one.step,
            training_run=self.group.training_run,
            uploaded=one.uploaded,
            indexed=one.indexed,
        )
