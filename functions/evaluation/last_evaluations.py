"""The last evaluations of a run: in a silence, at its end, and when its rules are given up."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from functions.decisions.giving_up import why_given_up
from functions.decisions.rule_lifecycle import finish
from functions.decisions.settling import has_everything
from functions.decisions.silence import last_activity, watches_silence
from functions.evaluation.asking import DEATHS_BEFORE_PASSING, ask_each
from functions.evaluation.leased_group import LeasedGroup, wants
from functions.run_record import change
from smdebug.rules.asking import AT_END, IN_SILENCE
from smdebug.service.records import (
    NOTHING_EVALUATED,
    RuleRecord,
    RunRecord,
    RunState,
    StepRecord,
)


def end_if_all_has_arrived(leased: LeasedGroup) -> None:
    """End an ending run at once if nothing more of it can be missing.

    Every worker has noted its last step, and this group has evaluated these steps and all before them.
    """
    record = leased.record
    if record.state is not RunState.ENDING or record.num_workers is None or leased.waits:
        return
    notes = leased.world.index.closing_notes(record.run, record.training_run)
    limit = leased.world.settings.longest_backlog
    rest = leased.world.index.steps(
        record.run, record.training_run, first=leased.group.cursor + 1, limit=limit
    )
    if len(rest) >= limit or any(map(record.is_whole, rest)):
        return  # some have arrived since this group has looked
    if has_everything(
        rest,
        leased.group,
        notes,
        leased.bench.previous_step,
        num_workers=record.num_workers,
        chief=record.chief,
    ):
        leased.keep(change(leased.world, record, partial(_ended, record.training_run)))


def _ended(training_run: int, known: RunRecord) -> RunRecord | None:
    """Return the record of a run that has ended, or None if it does not end, or another attempt does."""
    if known.training_run != training_run or known.state is not RunState.ENDING:
        return None
    return replace(known, state=RunState.ENDED)


def ask_in_silence(leased: LeasedGroup) -> None:
    """Evaluate the rules that watch for silence, of a run that has not ended."""
    goes_on = leased.record.state in (RunState.RUNNING, RunState.SILENT)
    if not goes_on or leased.evaluated or leased.group.cursor == NOTHING_EVALUATED:
        return
    rules = [
        rule
        for rule in leased.group.rules
        if watches_silence(leased.configuration(rule))
        and not rule.is_over
        and wants(leased.configuration(rule), leased.group.cursor)
    ]
    step = last_step(leased) if rules and leased.deaths < DEATHS_BEFORE_PASSING else None
    if step is None:
        return
    last = last_activity(leased.record, [step, *_newest(leased)])
    leased.bench.move_to(step)
    silent_for = leased.world.clock.now() - last
    ask_each(leased, rules, step, occasion=IN_SILENCE, silent_for=silent_for)


def ask_at_end(leased: LeasedGroup) -> bool:
    """Evaluate the rules that judge a whole run; return False if one has to wait for another run.

    Their findings belong to the last step.
    """
    rules = [rule for rule in leased.group.rules if sees_end(leased, rule)]
    rules = [rule for rule in rules if leased.bench.asks_at_end(leased.configuration(rule))]
    step = last_step(leased) if rules else None
    if step is None:
        return True
    problem = leased.bench.move_to(step)
    if problem is not None:
        leased.report(problem)
    if ask_each(leased, rules, step, occasion=AT_END):
        return True
    leased.wait()
    return False


def sees_end(leased: LeasedGroup, rule: RuleRecord) -> bool:
    """Whether the run has ended, with a last step that the rule wants."""
    return (
        leased.record.has_ended
        and not leased.group.finished
        and not rule.is_over
        and leased.deaths < DEATHS_BEFORE_PASSING
        and leased.group.cursor != NOTHING_EVALUATED
        and wants(leased.configuration(rule), leased.group.cursor)
    )


def last_step(leased: LeasedGroup) -> StepRecord | None:
    """Return the step at the cursor, if the index still has it."""
    run, last = leased.record, leased.group.cursor
    return leased.world.index.step(run.run, run.training_run, last)


def finish_if_ended(leased: LeasedGroup) -> None:
    """Give each rule its last status if the run has ended."""
    if not leased.record.has_ended or leased.group.finished:
        return
    for rule in leased.group.rules:
        leased.apply(
            finish(
                rule,
                leased.configuration(rule),
                leased.moment(),
                evaluated=leased.group.evaluated,
                unseen=leased.group.unseen,
            )
        )
    leased.group = replace(leased.group, finished=True)


def give_up(leased: LeasedGroup) -> None:
    """Set the rules to Error that make no progress on an ended run, so that it can finish."""
    most = leased.world.settings.checks_in_vain
    for rule in leased.group.rules:
        leased.fail_rule(rule, why_given_up(leased.group, leased.configuration(rule), most))
    last = max([leased.group.cursor, *(step.step for step in _newest(leased))])
    leased.group = replace(leased.group, cursor=last, finished=True)


def _newest(leased: LeasedGroup) -> list[StepRecord]:
    run = leased.record
    return leased.world.index.steps(run.run, run.training_run, limit=1, newest_first=True)
