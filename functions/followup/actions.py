"""Carrying out the actions of a finding once, and recording their outcomes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from functions.decisions import alerts
from functions.decisions.action_plan import (
    Endpoints,
    Notify,
    PlannedAction,
    Refuse,
    RequestStop,
    RequestZoom,
    StopBatchJob,
    StopJob,
    candidates,
    own_batch_job,
    own_job,
    plan,
)
from functions.decisions.detail_types import CONDITION_MET
from functions.decisions.rule_events import action_outcome
from functions.ports import (
    ActionOutcomes,
    BatchJobs,
    CheckQueue,
    Clock,
    ControlObjects,
    NotDone,
    TooMuch,
    Topic,
    TrainingJobs,
)

CLAIMED_FOR = 75  # seconds: longer than the function lives


@dataclass(frozen=True)
class ActionPorts:
    """The ports for carrying out actions."""

    jobs: TrainingJobs
    batch: BatchJobs
    control: ControlObjects
    topic: Topic
    outcomes: ActionOutcomes
    checks: CheckQueue
    clock: Clock
    endpoints: Endpoints = field(default_factory=Endpoints)


def carry_out(ports: ActionPorts, detail: Mapping[str, Any], invocation: str = "") -> list[dict[str, Any]]:
    """Carry out the actions of a finding that are not done yet; return their outcomes.

    The event may arrive twice at the same time: each action belongs to the invocation that claims it. If
    that one dies, it is repeated (with the same `invocation`), or another takes over when the claim has
    run out: only what was done just before its death is then done twice.

    An action that cannot be done for now is recorded as not done, and `TooMuch` is raised once all others
    are done, so that the event is delivered again.
    """
    run, group, rule = detail["run"], detail["group"], detail["configuration"]["id"]
    planned = plan(detail, ports.endpoints)
    begun = ports.clock.now()
    claimed = {
        action.id
        for action in planned
        if ports.outcomes.claim(detail["id"], action.id, by=invocation, now=begun, until=begun + CLAIMED_FOR)
    }
    # Read after claiming: an earlier holder of the claim has recorded its outcome.
    settled = ports.outcomes.settled(run, group, rule, detail["id"])
    outcomes = []
    again: TooMuch | None = None
    for action in planned:
        if action.id in settled:
            continue
        if action.id not in claimed:
            again = TooMuch("Another invocation is carrying out the actions of this finding")
            continue
        outcome, problem = _record(ports, action, detail)
        outcomes.append(outcome)
        again = problem or again
    if outcomes:  # their events are in the outbox and have to be published
        ports.checks.leave({"check": run, "at_once": True}, after_seconds=1)
    if again is not None:
        raise again
    return outcomes


def _record(
    ports: ActionPorts, action: PlannedAction, detail: Mapping[str, Any]
) -> tuple[dict[str, Any], TooMuch | None]:
    """Carry out one action and record its outcome; return it, and why it has to be tried again."""
    done, message, again = False, "", None
    try:
        done, message = _carry_out(ports, action, detail)
    except NotDone as refusal:
        message = str(refusal)
    except TooMuch as problem:
        again, message = problem, f"{problem}; it is tried again"
    now = ports.clock.now()
    entry = action_outcome(detail, action.action, effect=action.effect, done=done, message=message, now=now)
    outcome = {
        "id": action.id,
        "finding_id": detail["id"],
        "action": dict(action.action),
        "effect": action.effect,
        "done": done,
        "settled": again is None,
        "message": entry.detail["message"],
        "at": now,
    }
    ports.outcomes.record_action(
        detail["run"],
        detail["group"],
        detail["configuration"]["id"],
        outcome,
        {entry.id: entry.as_item()},
    )
    return outcome, again


def _carry_out(ports: ActionPorts, action: PlannedAction, detail: Mapping[str, Any]) -> tuple[bool, str]:
    """Return whether the action was done, and a message about it."""
    match action:
        case RequestStop():
            ports.control.write_stop(detail["run"], action.body)
            return True, f"Stop requested: wrote s3://{detail['run']}/control/stop."
        case RequestZoom():
            ports.control.write_zoom(detail["run"], action.body)
            return True, f"Zoom requested: wrote s3://{detail['run']}/control/zoom."
        case StopJob():
            return _stop_job(ports, action, detail["run"])
        case StopBatchJob():
            return _stop_batch_job(ports, action, detail["run"])
        case Notify():
            ports.topic.publish(
                subject=alerts.subject(CONDITION_MET, detail),
                email=alerts.email(CONDITION_MET, detail),
                sms=alerts.sms(CONDITION_MET, detail),
                to=action.to,
            )
            return True, f"Sent a message to {action.to}."
        case Refuse():
            return False, action.reason


def _stop_job(ports: ActionPorts, action: StopJob, run: str) -> tuple[bool, str]:
    names, why_not = [action.name] if action.name else [], ""
    if not names:
        names, why_not = candidates(run, action.prefix, ports.jobs.in_progress(action.prefix))
    name = None
    if names:
        name, why_not = own_job(run, [ports.jobs.claims_of(name) for name in names])
    if name is None:
        return False, why_not
    ports.jobs.stop(name)
    return True, f"Asked SageMaker to stop the training job {name}."


def _stop_batch_job(ports: ActionPorts, action: StopBatchJob, run: str) -> tuple[bool, str]:
    job, why_not = own_batch_job(run, (job for queue in action.queues for job in ports.batch.running(queue)))
    if job is None:
        return False, why_not
    ports.batch.stop(job, reason=f"smdebug: a rule has asked to stop s3://{run}")
    return True, f"Asked AWS Batch to terminate the job {job}."
