"""What becomes of a rule by what it saw: its status, its issue, and what the world is told.

    verdict = judge(rule, configuration, Found(findings), moment)
    group = group.with_rule(verdict.rule); outbox |= as_outbox(verdict.outbox)

A rule that finds something opens an issue, and says so once. While the issue is open nothing is repeated
(unless the configuration wants every step), and only a step at which the rule looked and found nothing
resolves it: one at which there was nothing to look at says nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from functions.decisions.event_sizes import MAX_STATUS_DETAILS
from functions.decisions.outbox import Moment, OutboxEntry
from functions.decisions.outcomes import Clear, Found, NothingToCheck, Outcome, Raised
from functions.decisions.rule_events import condition_met, issue_resolved, sentence, status_changed
from smdebug.service.records import RuleConfiguration, RuleRecord, RuleStatus
from smdebug.service.rules_file import EVERY_STEP


class Transition(NamedTuple):
    """The rule as it is now, and what is to be published."""

    rule: RuleRecord
    outbox: tuple[OutboxEntry, ...] = ()


def judge(
    rule: RuleRecord, configuration: RuleConfiguration, outcome: Outcome, moment: Moment
) -> Transition:
    """What becomes of the rule by what it saw at this moment. One that has ended stays as it is."""
    if rule.status.is_final:
        return Transition(rule)
    match outcome:
        case Found(findings):
            return _found(rule, configuration, findings, moment)
        case Clear():
            return _clear(rule, configuration, moment)
        case NothingToCheck():
            return Transition(rule)
        case Raised(message):
            return fail(rule, configuration, f"at step {moment.step}: {message}", moment)


def finish(rule: RuleRecord, configuration: RuleConfiguration, moment: Moment) -> Transition:
    """The run has ended and the rule has seen all of it: what found something stays so."""
    if rule.status is RuleStatus.STOPPING:
        return stop(rule, configuration, rule.reason, moment)
    if rule.status is not RuleStatus.IN_PROGRESS:
        return Transition(rule)
    looked = rule.last_good is not None
    reason = (
        "The run ended without the rule having found anything."
        if looked
        else "The run ended, and at none of its steps was there anything for this rule to look at: "
        "check which tensors are saved."
    )
    return _with_status(rule, configuration, RuleStatus.NO_ISSUES_FOUND, reason, moment)


def stop(
    rule: RuleRecord, configuration: RuleConfiguration, reason: str, moment: Moment
) -> Transition:
    """The rule is not wanted any more. What was found stays found, and is not looked at again."""
    if rule.status.is_final:
        return Transition(rule)
    return _with_status(rule, configuration, RuleStatus.STOPPED, reason, moment)


def fail(
    rule: RuleRecord, configuration: RuleConfiguration, message: str, moment: Moment
) -> Transition:
    """The rule cannot be evaluated, from now on; the others go on."""
    if rule.status.is_final:
        return Transition(rule)
    return _with_status(rule, configuration, RuleStatus.ERROR, message, moment)


def reopen(rule: RuleRecord, configuration: RuleConfiguration, moment: Moment) -> Transition:
    """The run goes on after its end: what was finished without an issue looks again."""
    if rule.status is not RuleStatus.NO_ISSUES_FOUND:
        return Transition(rule)
    reason = "The run goes on after its end."
    return _with_status(rule, configuration, RuleStatus.IN_PROGRESS, reason, moment)


def begin_again(rule: RuleRecord, configuration: RuleConfiguration, moment: Moment) -> Transition:
    """The training was started again and counts its steps anew, so the rule forgets those it saw.

    An open issue stays open: only a clear step resolves it. One that failed has another chance: it may have
    read what was just being written anew.
    """
    opened = rule.issue_since is not None
    forgetful = replace(
        rule,
        state=b"",
        state_key="",
        issue_since=moment.step if opened else None,
        last_found=None,
        last_good=None,
        catch_up_through=-1,
    )
    if rule.status is RuleStatus.ERROR:
        status = RuleStatus.ISSUES_FOUND if opened else RuleStatus.IN_PROGRESS
        reason = "The training was started again."
        return _with_status(forgetful, configuration, status, reason, moment)
    return reopen(forgetful, configuration, moment)


def attach_again(
    rule: RuleRecord, configuration: RuleConfiguration, through: int, moment: Moment
) -> Transition:
    """A rule that was detached is wanted again: it knows nothing, and catches up through that step."""
    anew = RuleRecord(
        rule.id,
        rule.name,
        status=rule.status,
        catch_up_through=through,
        source_digest=rule.source_digest,
    )
    reason = "The rule was attached again."
    return _with_status(anew, configuration, RuleStatus.IN_PROGRESS, reason, moment)


def _found(
    rule: RuleRecord,
    configuration: RuleConfiguration,
    findings: tuple[Mapping[str, Any], ...],
    moment: Moment,
) -> Transition:
    step = moment.step
    # A step that came late and was followed by clear ones tells of an issue that is over.
    is_over = moment.late and rule.last_good is not None and rule.last_good > step
    # What was found before the rule was attached led to no actions: the first live step does.
    is_news = not rule.has_open_issue or _was_open_before_attachment(rule, moment)
    seen = replace(
        rule,
        last_found=step if rule.last_found is None else max(rule.last_found, step),
        issue_since=rule.issue_since if is_over else _earlier(rule.issue_since, step),
    )
    reason = sentence(configuration.rule, step)
    if not is_news and configuration.repeat != EVERY_STEP:
        return Transition(seen)
    after, outbox = _with_status(seen, configuration, RuleStatus.ISSUES_FOUND, reason, moment)
    acts = is_news and not is_over and not moment.catch_up
    event = condition_met(
        configuration,
        after,
        findings,
        moment,
        actions=configuration.actions if acts else (),
    )
    return Transition(after, (event, *outbox))


def _clear(rule: RuleRecord, configuration: RuleConfiguration, moment: Moment) -> Transition:
    step = moment.step
    after = replace(rule, last_good=step if rule.last_good is None else max(rule.last_good, step))
    # A step that came late does not resolve what a later one has found.
    is_newest = rule.last_found is None or step > rule.last_found
    if not rule.has_open_issue or not is_newest:
        return Transition(after)
    resolved = replace(after, issue_since=None)
    return Transition(resolved, (issue_resolved(configuration, rule, moment),))


def _was_open_before_attachment(rule: RuleRecord, moment: Moment) -> bool:
    last = rule.last_found
    return not moment.catch_up and last is not None and last <= rule.catch_up_through


def _earlier(since: int | None, step: int) -> int:
    return step if since is None else min(since, step)


def _with_status(
    rule: RuleRecord,
    configuration: RuleConfiguration,
    status: RuleStatus,
    reason: str,
    moment: Moment,
) -> Transition:
    reason = reason if len(reason) <= MAX_STATUS_DETAILS else f"{reason[: MAX_STATUS_DETAILS - 1]}…"
    if status is rule.status:
        return Transition(replace(rule, reason=reason))
    after = replace(rule, status=status, reason=reason, changed_at=moment.evaluated)
    return Transition(after, (status_changed(configuration, rule, after, moment),))
