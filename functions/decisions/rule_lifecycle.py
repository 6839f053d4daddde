"""The transitions of a rule: its status, its issue, and the events that report them.

    transition = judge(rule, configuration, Found(findings), moment)
    group = group.with_rule(transition.rule)     # and transition.outbox is to be published

A finding opens an issue, which is reported once. While the issue is open nothing is repeated (unless the
configuration requests every step), and only a step that the rule checked without a finding resolves it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from functions.decisions.detail_types import NOT_CHECKED
from functions.decisions.diagnoses import CAUSE, diagnosis_of, evidence_in, kept
from functions.decisions.event_sizes import MAX_STATUS_DETAILS, cut
from functions.decisions.outbox import Moment, OutboxEntry, id_of
from functions.decisions.rule_events import condition_met, issue_resolved, sentence, status_changed
from smdebug.diagnosis.evidence import Evidence
from smdebug.rules.outcomes import Failed, Found, NothingToCheck, NotSaved, Outcome, Passed
from smdebug.service.records import RuleConfiguration, RuleRecord, RuleStatus
from smdebug.service.rules_file import EVERY_STEP


class Transition(NamedTuple):
    """A rule's new record, and the events to publish."""

    rule: RuleRecord
    outbox: tuple[OutboxEntry, ...] = ()


def judge(
    rule: RuleRecord,
    configuration: RuleConfiguration,
    outcome: Outcome,
    moment: Moment,
    others: Sequence[Evidence] = (),
) -> Transition:
    """Return the rule after this outcome. A rule with a final status does not change.

    `others` is the evidence of other rules at this step, and of their open issues, for the diagnosis.
    """
    if rule.is_over:
        return Transition(rule)
    match outcome:
        case Found(findings, evidence):
            own = evidence or evidence_in(configuration.name, findings, moment.step)
            return _after_findings(rule, configuration, findings, moment, own, others)
        case Passed():
            return _passed(rule, configuration, moment)
        case NothingToCheck(missing):
            return Transition(_with_reason(rule, missing))
        case NotSaved():
            return Transition(rule)
        case Failed(message):
            return fail(rule, configuration, f"at step {moment.step}: {message}", moment)


def finish(
    rule: RuleRecord,
    configuration: RuleConfiguration,
    moment: Moment,
    *,
    evaluated: int,
    unseen: int,
) -> Transition:
    """Give the rule its last status after a run has ended; IssuesFound stays.

    `evaluated` steps were evaluated as a whole, and `unseen` due ones were not: then the rule is stopped, as
    nothing is known of them. It continues if they arrive.
    """
    if rule.status is RuleStatus.STOPPING:
        return stop(rule, configuration, rule.reason, moment)
    if rule.is_over or rule.status is RuleStatus.ISSUES_FOUND:
        return Transition(rule)
    if unseen or not evaluated:
        stopped = replace(rule, unseen=max(unseen, 1))
        reason = why_stopped(evaluated, unseen)
        return _with_status(stopped, configuration, RuleStatus.STOPPED, reason, moment)
    rule = replace(rule, unseen=0)
    if rule.last_good is not None:
        reason = "The run ended and the rule passed at every step."
        return _with_status(rule, configuration, RuleStatus.NO_ISSUES_FOUND, reason, moment)
    if rule.reason.startswith(NOT_CHECKED):
        reason = f"The run ended. {rule.reason}"
    else:
        lacks = "no step held anything for this rule, so check which tensors are saved."
        reason = f"The run ended. {NOT_CHECKED}: {lacks}"
    return _with_status(rule, configuration, RuleStatus.NOT_CHECKED, reason, moment)


def why_stopped(evaluated: int, unseen: int) -> str:
    """Return the reason of a rule that has not evaluated all due steps of an ended run."""
    if not unseen:
        return "The run ended, and no step was evaluated."
    steps = "step was" if unseen == 1 else "steps were"
    others = f"The rule found nothing at the {evaluated} that were." if evaluated else "No step was."
    return (
        f"The run ended, and {unseen} due {steps} not evaluated "
        f"as a whole, as files of workers did not arrive. {others}"
    )


def stop(rule: RuleRecord, configuration: RuleConfiguration, reason: str, moment: Moment) -> Transition:
    """Stop a rule that was detached. Its findings stay."""
    if rule.is_over:
        return Transition(rule)
    ended = replace(rule, unseen=0)
    return _with_status(ended, configuration, RuleStatus.STOPPED, reason, moment)


def fail(rule: RuleRecord, configuration: RuleConfiguration, message: str, moment: Moment) -> Transition:
    """Set the rule to Error; the other rules continue."""
    if rule.is_over:
        return Transition(rule)
    failed = replace(rule, unseen=0)
    return _with_status(failed, configuration, RuleStatus.ERROR, message, moment)


def reopen(rule: RuleRecord, configuration: RuleConfiguration, moment: Moment) -> Transition:
    """Evaluate a rule again that was finished without an issue, as the run continues after its end."""
    is_done = rule.status in (RuleStatus.NO_ISSUES_FOUND, RuleStatus.NOT_CHECKED)
    if not is_done and not rule.unseen:
        return Transition(rule)
    reason = "The run continued after its end."
    rule = replace(rule, unseen=0)
    return _with_status(rule, configuration, RuleStatus.IN_PROGRESS, reason, moment)


def begin_again(rule: RuleRecord, configuration: RuleConfiguration, moment: Moment) -> Transition:
    """Forget the steps of the previous attempt, as the training was resumed and writes them again.

    An open issue stays open: only a clear step resolves it. A rule in Error is evaluated again: it may
    have read files that were being rewritten.
    """
    opened = rule.issue_since is not None
    forgetful = replace(
        rule,
        state=b"",
        state_key="",
        issue_since=moment.step if opened else None,
        issue_id="",
        issue_role="",
        evidence=(),
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
    """Evaluate a detached rule again, without its old state, catching up through that step."""
    anew = RuleRecord(
        rule.id,
        rule.name,
        status=rule.status,
        catch_up_through=through,
        source_digest=rule.source_digest,
    )
    reason = "The rule was attached again."
    return _with_status(anew, configuration, RuleStatus.IN_PROGRESS, reason, moment)


def _after_findings(
    rule: RuleRecord,
    configuration: RuleConfiguration,
    findings: tuple[Mapping[str, Any], ...],
    moment: Moment,
    own: Sequence[Evidence],
    others: Sequence[Evidence],
) -> Transition:
    step = moment.step
    # The issue of a late step is over if a later step was clear.
    is_over = moment.late and rule.last_good is not None and rule.last_good > step
    # Findings of steps before the rule was attached led to no actions: the first live step does.
    is_news = not rule.has_open_issue or _was_open_before_attachment(rule, moment)
    seen = replace(
        rule,
        last_found=step if rule.last_found is None else max(rule.last_found, step),
        issue_since=rule.issue_since if is_over else _earlier(rule.issue_since, step),
        evidence=rule.evidence if is_over or not is_news else kept(own),
    )
    reason = sentence(configuration.rule, step)
    if not is_news and configuration.repeat != EVERY_STEP:
        return Transition(seen)
    diagnosis = diagnosis_of(configuration.name, own, others, moment.checkpoints)
    seen = _in_issue(replace(seen, unseen=0), configuration, diagnosis, moment, is_news=is_news)
    after, outbox = _with_status(seen, configuration, RuleStatus.ISSUES_FOUND, reason, moment)
    acts = is_news and not is_over and not moment.catch_up
    event = condition_met(
        configuration,
        after,
        findings,
        moment,
        actions=configuration.actions if acts else (),
        diagnosis=diagnosis,
    )
    if is_over:
        after = replace(after, issue_id=rule.issue_id, issue_role=rule.issue_role)
    return Transition(after, (event, *outbox))


def _in_issue(
    rule: RuleRecord,
    configuration: RuleConfiguration,
    diagnosis: Mapping[str, Any] | None,
    moment: Moment,
    *,
    is_news: bool,
) -> RuleRecord:
    """Return the rule with its issue's id. Rules whose findings have one cause share an issue."""
    if rule.issue_id and not is_news:
        return rule
    cause, since, role = configuration.id, rule.issue_since, CAUSE
    if diagnosis is not None:
        cause, since, role = diagnosis["cause"], diagnosis["since"], diagnosis["role"]
    issue_id = id_of(moment.run, moment.training_run, cause, since, "issue")
    return replace(rule, issue_id=issue_id, issue_role=role)


def _passed(rule: RuleRecord, configuration: RuleConfiguration, moment: Moment) -> Transition:
    step = moment.step
    reason = "" if rule.reason.startswith(NOT_CHECKED) else rule.reason
    last_good = step if rule.last_good is None else max(rule.last_good, step)
    after = replace(rule, last_good=last_good, reason=reason)
    # A late step does not resolve a finding of a later step.
    is_newest = rule.last_found is None or step > rule.last_found
    if not rule.has_open_issue or not is_newest:
        return Transition(after)
    resolved = replace(after, issue_since=None, issue_id="", issue_role="", evidence=())
    return Transition(resolved, (issue_resolved(configuration, rule, moment),))


def _with_reason(rule: RuleRecord, missing: str) -> RuleRecord:
    """Return the rule with what the run lacks for it, if it has not checked anything so far."""
    if not missing or rule.last_good is not None or rule.status is not RuleStatus.IN_PROGRESS:
        return rule
    return replace(rule, reason=cut(f"{NOT_CHECKED}: {missing}", MAX_STATUS_DETAILS))


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
