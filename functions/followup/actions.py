"""Doing what a finding asks for, once, and keeping what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from functions.decisions import alerts
from functions.decisions.action_plan import (
    AskToStop,
    Endpoints,
    Plan,
    Refuse,
    StopJob,
    Tell,
    own_job,
    plan,
)
from functions.decisions.detail_types import CONDITION_MET
from functions.decisions.events import action_outcome
from functions.ports import (
    ActionOutcomes,
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
class Hands:
    """What acting needs of the world."""

    jobs: TrainingJobs
    control: ControlObjects
    topic: Topic
    outcomes: ActionOutcomes
    checks: CheckQueue
    clock: Clock
    endpoints: Endpoints = field(default_factory=Endpoints)


def act_on(hands: Hands, detail: Mapping[str, Any], invocation: str = "") -> list[dict[str, Any]]:
    """Do what the finding asks for and was not done before; returns what became of it.

    The event may come twice at the same time: each thing is done by the invocation that claims it. If that
    dies, it comes again itself (`invocation` is the same), or another takes over once the claim has run out:
    only what was done just before is then done once more.

    What could not be done for now is kept as not done, and `TooMuch` raised when all the rest is done:
    the event comes again.
    """
    run, group, rule = detail["run"], detail["group"], detail["configuration"]["id"]
    planned = plan(detail, hands.endpoints)
    begun = hands.clock.now()
    claimed = {
        deed.id
        for deed in planned
        if hands.outcomes.claim(
            detail["id"], deed.id, by=invocation, now=begun, until=begun + CLAIMED_FOR
        )
    }
    # Asked only now: whoever had a claim before has written down what came of it.
    settled = hands.outcomes.settled(run, group, rule, detail["id"])
    outcomes = []
    again: TooMuch | None = None
    for deed in planned:
        if deed.id in settled:
            continue
        if deed.id not in claimed:
            again = TooMuch("Another invocation is doing what this finding asks for")
            continue
        done, message, settled_now = False, "", True
        try:
            done, message = _do(hands, deed, detail)
        except NotDone as refusal:
            message = str(refusal)
        except TooMuch as problem:
            again, settled_now = problem, False
            message = f"{problem}; it is tried again"
        now = hands.clock.now()
        entry = action_outcome(
            detail, deed.action, effect=deed.effect, done=done, message=message, now=now
        )
        outcome = {
            "id": deed.id,
            "finding_id": detail["id"],
            "action": dict(deed.action),
            "effect": deed.effect,
            "done": done,
            "settled": settled_now,
            "message": entry.detail["message"],
            "at": now,
        }
        hands.outcomes.record_action(run, group, rule, outcome, {entry.id: entry.as_item()})
        outcomes.append(outcome)
    if outcomes:  # their events are in the outbox, and somebody has to publish them
        hands.checks.leave({"check": run, "at_once": True}, after_seconds=1)
    if again is not None:
        raise again
    return outcomes


def _do(hands: Hands, deed: Plan, detail: Mapping[str, Any]) -> tuple[bool, str]:
    """Was it done, and what is there to say of it?"""
    match deed:
        case AskToStop():
            hands.control.write_stop(detail["run"], deed.body)
            return True, f"The hook was asked to stop, by s3://{detail['run']}/control/stop."
        case StopJob():
            return _stop_job(hands, deed, detail["run"])
        case Tell():
            hands.topic.publish(
                subject=alerts.subject(CONDITION_MET, detail),
                email=alerts.email(CONDITION_MET, detail),
                sms=alerts.sms(CONDITION_MET, detail),
                to=deed.to,
            )
            return True, f"{deed.to} was told."
        case Refuse():
            return False, deed.reason


def _stop_job(hands: Hands, deed: StopJob, run: str) -> tuple[bool, str]:
    name, why_not = deed.name, ""
    if name is None:
        name, why_not = own_job(run, deed.prefix, hands.jobs.in_progress(deed.prefix))
    if name is None:
        return False, why_not
    hands.jobs.stop(name)
    return True, f"SageMaker was asked to stop the training job {name}."
