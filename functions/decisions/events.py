"""What is told to the world: the details of every event, with ids that are the same for the same cause.

    outbox = {entry.id: entry.as_item(), ...}          # kept with what it follows from
    for batch in put_events_batches(outbox, now=now):  # ≤ 10 entries and ≤ 200 KB each
        events.put_events(Entries=batch)

`docs/events/` has a JSON schema for each, `docs/events.md` an example.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from functions.decisions import alerts
from functions.decisions.detail_types import (
    ACTION_OUTCOME,
    CONDITION_MET,
    ISSUE_RESOLVED,
    OLD_STATE_CHANGE,
    RUN_STATE_CHANGE,
    STATUS_CHANGE,
)
from smdebug.rules.findings import plain
from smdebug.service.records import (
    BUILT_IN,
    RuleConfiguration,
    RuleRecord,
    RuleStatus,
    RunRecord,
    RunState,
)

SOURCE = "smdebug"
WORST = 20  # findings told in the event itself
MOST_KEPT = 10_000  # and in the object that it links
MAX_DETAIL = 100_000  # bytes of one detail
MAX_ENTRIES = 10
MAX_BATCH = 200_000  # bytes of one call
MAX_STATUS_DETAILS = 1024  # of SageMaker's StatusDetails

_MAX_TEXT = 512
_MAX_PARAMETER = 256
_MAX_DETAILS = 1000


@dataclass(frozen=True)
class Moment:
    """One step of one run being looked at: where, when, and how it came here. Times in seconds."""

    run: str
    step: int
    training_run: int = 0
    run_id: str | None = None
    job: str | None = None
    group: str = BUILT_IN
    mode: str | None = None
    mode_step: int | None = None
    saved: float | None = None
    uploaded: float | None = None
    indexed: float | None = None
    evaluated: float = 0.0
    catch_up: bool = False  # the step was there before the rule was
    late: bool = False  # a later step was evaluated before
    occasion: str = ""  # "at end" or "in silence", where it is not the step itself

    @classmethod
    def of(cls, run: RunRecord, step: int, *, evaluated: float, **more: Any) -> Moment:
        """The moment of a run at that step."""
        of_run = {"training_run": run.training_run, "run_id": run.run_id, "job": run.job}
        return cls(run=run.run, step=step, evaluated=evaluated, **{**of_run, **more})


@dataclass(frozen=True)
class Overflow:
    """Findings that are too many for an event: the caller writes them before it publishes."""

    key: str  # below the run
    findings: tuple[Mapping[str, Any], ...]
    count: int  # how many there were

    @property
    def body(self) -> bytes:
        """The object, as JSON."""
        return _json(plain({"count": self.count, "findings": self.findings})).encode()


@dataclass(frozen=True)
class OutboxEntry:
    """An event that is to be published, at least once."""

    id: str
    detail_type: str
    detail: Mapping[str, Any]
    overflow: Overflow | None = None

    def as_item(self) -> dict[str, str]:
        """As the outbox keeps it: the detail as text, so that its size is known and no number changes."""
        return {"detail_type": self.detail_type, "detail": _json(self.detail)}


def as_outbox(entries: Iterable[OutboxEntry]) -> dict[str, dict[str, str]]:
    """The entries by id, as the records keep them."""
    return {entry.id: entry.as_item() for entry in entries}


def id_of(run: str, training_run: int, configuration: str, step: int | None, kind: str) -> str:
    """The id of what happened: the same however often it is worked out."""
    told = json.dumps([run, training_run, configuration, step, kind])
    return sha256(told.encode()).hexdigest()[:32]


# Rules


def condition_met(
    configuration: RuleConfiguration,
    rule: RuleRecord,
    findings: Sequence[Mapping[str, Any]],
    moment: Moment,
    *,
    actions: Sequence[Mapping[str, Any]],
) -> OutboxEntry:
    """The rule has found something; `rule` is what it is after that."""
    event = _rule_event_id(configuration, moment, f"found {moment.occasion}".rstrip())
    told = worst(findings, WORST)
    overflow = None
    if len(findings) > len(told):
        kept = tuple(worst(findings, MOST_KEPT))
        overflow = Overflow(f"report/findings/{event}.finding", kept, len(findings))
    return _entry(
        CONDITION_MET,
        {
            **_about_rule(event, configuration, moment),
            "reason": sentence(configuration.rule, moment.step),
            "evidence": {
                "count": len(findings),
                "worst": [bounded_finding(finding) for finding in told],
                "rest": f"s3://{moment.run}/{overflow.key}" if overflow else None,
            },
            "issue": _issue(rule),
            "last_good_step": rule.last_good,
            "late": moment.late,
            "catch_up": moment.catch_up,
            "actions": [dict(action) for action in actions],
            "has_actions": bool(actions),
        },
        overflow,
    )


def issue_resolved(
    configuration: RuleConfiguration, before: RuleRecord, moment: Moment
) -> OutboxEntry:
    """The rule has looked, and found nothing any more; `before` is what it was."""
    return _entry(
        ISSUE_RESOLVED,
        {
            **_about_rule(_rule_event_id(configuration, moment, "resolved"), configuration, moment),
            "reason": f"{configuration.rule} found nothing any more at step {moment.step}",
            "issue": {"since": before.issue_since, "last_found": before.last_found, "open": False},
            "late": moment.late,
            "catch_up": moment.catch_up,
        },
    )


def status_changed(
    configuration: RuleConfiguration, before: RuleRecord, after: RuleRecord, moment: Moment
) -> OutboxEntry:
    """The status of the rule is another one than before."""
    kind = f"status:{before.status}>{after.status}"
    return _entry(
        STATUS_CHANGE,
        {
            **_about_rule(_rule_event_id(configuration, moment, kind), configuration, moment),
            "status": after.status.value,
            "previous_status": before.status.value,
            "reason": _cut(after.reason, MAX_STATUS_DETAILS),
            "issue": _issue(after),
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
    """What became of one action of a finding; `finding` is the detail of its event."""
    kept = ("run", "location", "training_run", "run_id", "job", "group", "rule", "configuration")
    told = sha256(f"{outcome_id(str(finding['id']), action, effect)} {done}".encode()).hexdigest()
    detail = {
        **{key: finding.get(key) for key in (*kept, "step")},
        "id": told[:32],  # what failed and was done later is told twice
        "finding_id": finding["id"],
        "action": dict(action),
        "effect": effect,
        "done": done,
        "message": _cut(message, MAX_STATUS_DETAILS),
        "times": {"acted": when(now), "published": None},
    }
    return _entry(ACTION_OUTCOME, detail)


def outcome_id(finding_id: str, action: Mapping[str, Any], effect: str) -> str:
    """The id of what becomes of an action of a finding."""
    told = json.dumps([finding_id, action, effect], sort_keys=True)
    return sha256(told.encode()).hexdigest()[:32]


def sentence(rule: str, step: int) -> str:
    """What SageMaker says of a rule that has found something."""
    return (
        f"RuleEvaluationConditionMet: Evaluation of the rule {rule} at step {step} "
        "resulted in the condition being met"
    )


# Runs


def run_entry(
    record: RunRecord, cause: str, now: float, *, summary: Mapping[str, Any] | None = None
) -> tuple[str, dict[str, str]]:
    """What the run has become, as an entry of its outbox; the same `cause` gives the same id."""
    entry = run_state_changed(record, cause, now, summary=summary)
    return entry.id, entry.as_item()


def run_state_changed(
    record: RunRecord, cause: str, now: float, *, summary: Mapping[str, Any] | None = None
) -> OutboxEntry:
    """The run is in another state than before, or something is wrong with its files."""
    detail = {
        "id": id_of(record.run, record.training_run, "", None, f"run:{cause}"),
        "run": record.run,
        "location": record.location,
        "training_run": record.training_run,
        "run_id": record.run_id,
        "job": record.job,
        "state": record.state.value,
        "workers": record.num_workers,
        "trouble": _cut(record.trouble, 4 * MAX_STATUS_DETAILS),
        "summary": summary,
        "times": {
            "first_seen": when(record.first_seen),
            "ended": when(record.ended_at),
            "changed": when(now),
            "published": None,
        },
    }
    return _entry(RUN_STATE_CHANGE, detail)


def summary_of(
    rules: Iterable[tuple[RuleConfiguration, RuleRecord]],
    *,
    steps: int,
    last_step: int | None = None,
    not_evaluated: int = 0,
) -> dict[str, Any]:
    """What there is to say at the end of a run."""
    told = [
        {
            "name": rule.name,
            "rule": configuration.rule,
            "status": rule.status.value,
            "reason": _cut(rule.reason, _MAX_TEXT),
            "issue": _issue(rule),
            "last_found": rule.last_found,
            "last_good_step": rule.last_good,
        }
        for configuration, rule in rules
    ]
    counts = {status.value: 0 for status in RuleStatus}
    for one in told:
        counts[str(one["status"])] += 1
    return {
        "steps": steps,
        "last_step": last_step,
        "not_evaluated": not_evaluated,
        "statuses": {status: count for status, count in counts.items() if count},
        "rules": told,
    }


def old_state_change(
    record: RunRecord,
    rules: Iterable[RuleRecord],
    now: float,
    *,
    account: str = "",
    region: str = "",
) -> OutboxEntry:
    """The event as SageMaker sent it, for functions that were written to read that."""
    job = record.job or record.run.rpartition("/")[2]
    ended = record.state in (RunState.ENDED, RunState.FINISHED)
    statuses = [
        {
            "RuleConfigurationName": _cut(rule.name, 256),
            "RuleEvaluationJobArn": _cut(f"smdebug:{rule.id}", 256),
            "RuleEvaluationStatus": rule.status.value,
            "StatusDetails": _cut(rule.reason, MAX_STATUS_DETAILS - 1) + "\n"
            if rule.reason
            else "",
            "LastModifiedTime": int(rule.changed_at * 1000),
        }
        for rule in rules
    ]
    told = json.dumps(
        [[one["RuleConfigurationName"], one["RuleEvaluationStatus"]] for one in statuses]
    )
    latest = max((rule["LastModifiedTime"] for rule in statuses), default=int(now * 1000))
    kind = f"old:{told}:{record.state}:{latest}"
    detail = {
        "id": id_of(record.run, record.training_run, "", None, kind),
        "TrainingJobName": job,
        "TrainingJobArn": f"arn:aws:sagemaker:{region}:{account}:training-job/{job}"
        if record.job and account
        else "",
        "TrainingJobStatus": "Completed" if ended else "InProgress",
        "SecondaryStatus": "Completed" if ended else "Training",
        "DebugHookConfig": {"S3OutputPath": record.location},
        "CreationTime": str(int(record.first_seen * 1000)),
        "LastModifiedTime": str(int(now * 1000)),
        "DebugRuleEvaluationStatuses": statuses,
    }
    return OutboxEntry(str(detail["id"]), OLD_STATE_CHANGE, fitted(detail))


# Publishing


def put_events_batches(
    outbox: Mapping[str, Mapping[str, Any]], *, now: float
) -> list[list[dict[str, str]]]:
    """The outbox as calls of PutEvents, each with what it may hold; the bus is named by the caller.

    Each detail is told when it was published, which is now.
    """
    batches: list[list[dict[str, str]]] = []
    room = 0
    for entry in put_events_entries(outbox, now=now):
        size = sum(len(text.encode()) for text in entry.values())
        if not batches or len(batches[-1]) == MAX_ENTRIES or size > room:
            batches.append([])
            room = MAX_BATCH
        batches[-1].append(entry)
        room -= size
    return batches


def put_events_entries(
    outbox: Mapping[str, Mapping[str, Any]], *, now: float
) -> Iterator[dict[str, str]]:
    """Every entry of the outbox as PutEvents takes it."""
    for kept in outbox.values():
        detail = kept["detail"]
        detail = json.loads(detail) if isinstance(detail, str) else dict(detail)
        if "times" in detail:
            detail["times"] = {**detail["times"], "published": when(now)}
        yield {"Source": SOURCE, "DetailType": str(kept["detail_type"]), "Detail": _json(detail)}


# Sizes


def worst(findings: Sequence[Mapping[str, Any]], most: int) -> list[Mapping[str, Any]]:
    """The findings farthest beyond their limit, in that order; what cannot be compared, as it came."""
    return sorted(findings, key=_badness, reverse=True)[:most]


def _badness(finding: Mapping[str, Any]) -> float:
    value, limit = _number(finding.get("value")), _number(finding.get("threshold"))
    if value is None:
        return 0.0
    if not math.isfinite(value):
        return math.inf
    if limit is None or not math.isfinite(limit):
        return 0.0
    # How many times as large, or as small, as the limit allows.
    return abs(math.log(abs(value) + 1e-300) - math.log(abs(limit) + 1e-300))


def _number(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def bounded_finding(finding: Mapping[str, Any]) -> dict[str, Any]:
    """A finding as an event can hold it: long texts are cut, and say so by their last letter."""
    told = {
        key: _small(plain(finding[key]))
        for key in ("tensor", "statistic", "value", "threshold", "worker", "message", "step")
        if finding.get(key) is not None
    }
    details = plain(finding.get("details") or {})
    if details:
        size = len(_json(details))
        told["details"] = details if size <= _MAX_DETAILS else {"left_out": f"{size} bytes"}
    return told


def fitted(detail: Mapping[str, Any]) -> dict[str, Any]:
    """The detail, if need be without what is largest in it; `cut` then names what is missing."""
    whole = {key: plain(value) for key, value in detail.items()}
    cut: list[str] = []
    for shorten in (
        _fewer_parameters,
        _fewer_findings,
        _fewer_rules,
        _fewer_statuses,
        _fewer_texts,
    ):
        if len(_json(whole).encode()) <= MAX_DETAIL:
            break
        if what := shorten(whole):
            cut.append(what)
            whole["cut"] = cut
    return whole


def _fewer_parameters(detail: dict[str, Any]) -> str:
    if not detail.get("configuration", {}).get("parameters"):
        return ""
    detail["configuration"] = {**detail["configuration"], "parameters": {}}
    return "configuration.parameters"


def _fewer_findings(detail: dict[str, Any]) -> str:
    if not detail.get("evidence", {}).get("worst"):
        return ""
    detail["evidence"] = {**detail["evidence"], "worst": detail["evidence"]["worst"][:3]}
    return "evidence.worst"


def _fewer_rules(detail: dict[str, Any]) -> str:
    if not (detail.get("summary") or {}).get("rules"):
        return ""
    detail["summary"] = {**detail["summary"], "rules": detail["summary"]["rules"][:20]}
    return "summary.rules"


def _fewer_statuses(detail: dict[str, Any]) -> str:
    statuses = "DebugRuleEvaluationStatuses"
    if statuses not in detail:
        return ""
    detail[statuses] = detail[statuses][:20]
    return statuses


_TEXTS = ("reason", "trouble", "message")


def _fewer_texts(detail: dict[str, Any]) -> str:
    detail.update({key: _cut(detail[key], 256) for key in _TEXTS if detail.get(key)})
    return "texts"


def _small(value: Any) -> Any:
    if isinstance(value, str):
        return _cut(value, _MAX_TEXT)
    if isinstance(value, int) and value.bit_length() > 1024:
        return f"about {'-' if value < 0 else ''}2**{value.bit_length()}"
    if isinstance(value, list | dict) and len(_json(value)) > _MAX_TEXT:
        return _cut(_json(value), _MAX_TEXT)
    return value


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


# What events have in common


def when(seconds: float | None) -> str | None:
    """A time as events tell it: `2026-11-21T06:38:36.120Z`; None if it is not known."""
    if not seconds:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


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
            "parameters": {key: _cut(value, _MAX_PARAMETER) for key, value in parameters},
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


def _issue(rule: RuleRecord) -> dict[str, Any]:
    return {
        "since": rule.issue_since,
        "last_found": rule.last_found,
        "open": rule.has_open_issue,
    }


def _entry(
    detail_type: str, detail: Mapping[str, Any], overflow: Overflow | None = None
) -> OutboxEntry:
    whole = fitted(detail)
    whole["text"] = alerts.line(detail_type, whole)
    return OutboxEntry(str(detail["id"]), detail_type, whole, overflow)


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)
