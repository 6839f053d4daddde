"""The events about a rule: its findings, resolved issues, status changes, and outcomes of actions.

Their ids are the same for the same cause. `docs/events/` has a JSON schema for each, `docs/events.md` an
example.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from functions.decisions.detail_types import (
    ACTION_OUTCOME,
    CONDITION_MET,
    ISSUE_RESOLVED,
    STATUS_CHANGE,
)
from functions.decisions.event_sizes import (
    MAX_STATUS_DETAILS,
    MOST_KEPT,
    WORST,
    bounded_finding,
    cut,
    worst,
)
from functions.decisions.outbox import (
    Moment,
    OutboxEntry,
    Overflow,
    entry_of,
    id_of,
    issue_of,
    when,
)
from smdebug.service.records import RuleConfiguration, RuleRecord

_MAX_PARAMETER = 256


def condition_met(
    configuration: RuleConfiguration,
    rule: RuleRecord,
    findings: Sequence[Mapping[str, Any]],
    moment: Moment,
    *,
    actions: Sequence[Mapping[str, Any]],
    diagnosis: Mapping[str, Any] | None = None,
) -> OutboxEntry:
    """Return the event of a finding; `rule` is the rule's record after it."""
    event = _rule_event_id(configuration, moment, f"found {moment.occasion}".rstrip())
    shown = worst(findings, WORST)
    overflow = None
    if len(findings) > len(shown):
        kept = tuple(worst(findings, MOST_KEPT))
        overflow = Overflow(f"report/findings/{event}.finding", kept, len(findings))
    return entry_of(
        CONDITION_MET,
        {
            **_about_rule(event, configuration, moment),
            "reason": sentence(configuration.rule, moment.step),
            "evidence": {
                "count": len(findings),
                "worst": [bounded_finding(finding) for finding in shown],
                "rest": f"s3://{moment.run}/{overflow.key}" if overflow else None,
            },
            "issue": issue_of(rule),
            "last_good_step": rule.last_good,
            "late": moment.late,
            "catch_up": moment.catch_up,
            "actions": [dict(action) for action in actions],
            "has_actions": bool(actions),
            "diagnosis": diagnosis,
        },
        overflow,
    )


def issue_resolved(configuration: RuleConfiguration, before: RuleRecord, moment: Moment) -> OutboxEntry:
    """Return the event of a resolved issue; `before` is the rule's record with the issue open."""
    return entry_of(
        ISSUE_RESOLVED,
        {
            **_about_rule(_rule_event_id(configuration, moment, "resolved"), configuration, moment),
            "reason": f"{configuration.rule} passed at step {moment.step}",
            "issue": {**issue_of(before), "open": False},
            "late": moment.late,
            "catch_up": moment.catch_up,
        },
    )


def status_changed(
    configuration: RuleConfiguration, before: RuleRecord, after: RuleRecord, moment: Moment
) -> OutboxEntry:
    """Return the event of a changed status."""
    kind = f"status:{before.status}>{after.status}"
    return entry_of(
        STATUS_CHANGE,
        {
            **_about_rule(_rule_event_id(configuration, moment, kind), configuration, moment),
            "status": after.status.value,
            "previous_status": before.status.value,
            "reason": cut(after.reason, MAX_STATUS_DETAILS),
            "issue": issue_of(after),
        },
    )


def action_outcome(
    finding: Mapping[str, Any],
    action: Mapping[str, Any],
    *,
    effect: str,
    done: bool,
    message: str,
    now: float,
) -> OutboxEntry:
    """Return the event of an action's outcome; `finding` is the detail of the finding's event."""
    kept = ("run", "location", "training_run", "run_id", "job", "group", "rule", "configuration")
    digest = sha256(f"{outcome_id(str(finding['id']), action, effect)} {done}".encode()).hexdigest()
    detail = {
        **{key: finding.get(key) for key in (*kept, "step")},
        "id": digest[:32],  # an action that failed and succeeded later is reported twice
        "finding_id": finding["id"],
        "action": dict(action),
        "effect": effect,
        "done": done,
        "message": cut(message, MAX_STATUS_DETAILS),
        "times": {"acted": when(now), "published": None},
    }
    return entry_of(ACTION_OUTCOME, detail)


def outcome_id(finding_id: str, action: Mapping[str, Any], effect: str) -> str:
    """Return the id of the outcome of a finding's action."""
    cause = json.dumps([finding_id, action, effect], sort_keys=True)
    return sha256(cause.encode()).hexdigest()[:32]


def sentence(rule: str, step: int) -> str:
    """Return the sentence that SageMaker uses for a finding."""
    return (
        f"RuleEvaluationConditionMet: Evaluation of the rule {rule} at step {step} "
        "resulted in the condition being met"
    )


def _rule_event_id(configuration: RuleConfiguration, moment: Moment, kind: str) -> str:
    return id_of(moment.run, moment.training_run, configuration.id, moment.step, kind)


def _about_rule(id: str, configuration: RuleConfiguration, moment: Moment) -> dict[str, Any]:
    parameters = configuration.parameters.items()
    return {
        "id": id,
        "run": moment.run,
        "location": f"s3://{moment.run}",
        "training_run": moment.training_run,
        "run_id": moment.run_id,
        "job": moment.job,
        "group": moment.group,
        "rule": configuration.rule,
        "configuration": {
            "id": configuration.id,
            "name": configuration.name,
            "parameters": {key: cut(value, _MAX_PARAMETER) for key, value in parameters},
        },
        "step": moment.step,
        "mode": moment.mode,
        "mode_step": moment.mode_step,
        "times": {
            "saved": when(moment.saved),
            "uploaded": when(moment.uploaded),
            "indexed": when(moment.indexed),
            "evaluated": when(moment.evaluated),
            "published": None,
        },
    }
