"""How one service wakes another: events to their targets, objects to queues, time to functions.

Each asks the receiver's policy first, as AWS does. What is refused or fails too often goes to the dead
letters that the template names, and is told in `Deliveries.refused`.
"""

from __future__ import annotations

import json
import re
import threading
import urllib.request
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from local_aws.calls import Asked
from local_aws.clock import MovableClock
from local_aws.deploying import Deployed
from local_aws.errors import Unsupported
from local_aws.functions import Invocation
from local_aws.permissions import Caller, Refused
from local_aws.template import ACCOUNT, REGION

Send = Callable[[str, str], None]  # a message to the queue of that name
TRIES = 3  # of an asynchronous invocation, as Lambda does
TICK = 0.1  # seconds between two looks at the clock


class Deliveries:
    """Whatever happens without anybody waiting for it."""

    def __init__(
        self,
        deployed: Deployed,
        client: Callable[[str], Any],
        *,
        invoke: Callable[[str, bytes, str], Invocation],
        send: Send,
        clock: MovableClock,
        pause: float = 1.0,
    ):
        self._deployed = deployed
        self._policies = deployed.policies
        self._client = client
        self._invoke = invoke
        self._send = send
        self._clock = clock
        self._pause = pause
        self._workers = ThreadPoolExecutor(6, "delivery")
        self._stopping = threading.Event()
        self._last_fired: dict[str, float] = {}
        self.refused: list[str] = []
        self.loses_notifications = False
        self._ticker = threading.Thread(target=self._tick, daemon=True)

    def start(self) -> None:
        self._ticker.start()

    def stop(self) -> None:
        self._stopping.set()
        self._workers.shutdown(wait=False, cancel_futures=True)

    # S3

    def of_object(self, bucket: str, queue: str, body: str) -> None:
        """S3 tells a queue of an object."""
        if self.loses_notifications:
            return
        try:
            asked = Asked("sqs:SendMessage", f"arn:aws:sqs:{REGION}:{ACCOUNT}:{queue}")
            self._policies.may_deliver("s3.amazonaws.com", asked, bucket)
        except Refused as refusal:
            self.refused.append(str(refusal))
            return
        self._send(queue, body)

    # EventBridge

    def of_event(self, rule: str, target: Mapping[str, Any], event: Mapping[str, Any]) -> None:
        """A rule has matched: its target gets the event, in a moment."""
        with suppress(RuntimeError):  # it is being stopped
            self._workers.submit(self._to_target, rule, target, _as_json(event))

    def _to_target(self, rule: str, target: Mapping[str, Any], event: Mapping[str, Any]) -> None:
        body = shaped(target, event)
        try:
            self._deliver(rule, target, body)
        except Refused as refusal:
            self.refused.append(str(refusal))
            self._to_dead_letters(
                "events.amazonaws.com", rule, target.get("DeadLetterConfig", {}).get("Arn"), body
            )
        except Exception as problem:  # noqa: BLE001 - a target that fails is a dead letter
            self.refused.append(f"{target['Arn']} could not be told: {problem}")
            self._to_dead_letters(
                "events.amazonaws.com", rule, target.get("DeadLetterConfig", {}).get("Arn"), body
            )

    def _deliver(self, rule: str, target: Mapping[str, Any], body: str) -> None:
        arn = target["Arn"]
        events = "events.amazonaws.com"
        service = arn.split(":")[2]
        if service == "sqs":
            self._policies.may_deliver(events, Asked("sqs:SendMessage", arn), rule)
            self._send(arn.rsplit(":", 1)[1], body)
        elif service == "lambda":
            self._policies.may_deliver(events, Asked("lambda:InvokeFunction", arn), rule)
            self._invoke_later(arn, body)
        elif service == "sns":
            self._policies.may_deliver(events, Asked("sns:Publish", arn), rule)
            self._client("sns").publish(TopicArn=arn, Message=body)
        elif service == "states":
            self._as_role(events, target, rule, Asked("states:StartExecution", arn))
            self._client("stepfunctions").start_execution(
                stateMachineArn=arn, name=str(uuid.uuid4()), input=body
            )
        elif arn in self._deployed.destinations:
            self._as_role(events, target, rule, Asked("events:InvokeApiDestination", arn))
            self._post(arn, body)
        else:
            raise Unsupported(f"{arn} is no target of events that the local stack knows")

    def _as_role(self, service: str, target: Mapping[str, Any], source: str, asked: Asked) -> None:
        role = target["RoleArn"]
        self._policies.may_assume(service, role, source)
        self._policies.check(Caller(role), asked)

    def _post(self, arn: str, body: str) -> None:
        there = self._deployed.destinations[arn]
        if not there.url.startswith(("http://", "https://")):
            raise Unsupported(f"{there.url} is no endpoint of HTTP")
        headers = {"Content-Type": "application/json; charset=utf-8", **there.headers}
        request = urllib.request.Request(  # noqa: S310 - looked at above
            there.url, body.encode(), headers, method=there.method
        )
        with urllib.request.urlopen(request, timeout=5) as answer:  # noqa: S310
            answer.read()

    # Functions that nobody waits for

    def _invoke_later(self, arn: str, body: str) -> None:
        name, request = arn.rsplit(":", 1)[1], str(uuid.uuid4())
        for attempt in range(TRIES):
            done = self._invoke(name, body.encode(), request)
            if done.error is None:
                return
            if self._stopping.wait(
                self._pause * (attempt + 1)
            ):  # Lambda waits one minute, then two
                return
        function = self._deployed.functions[name]
        if function.dead_letters:
            asked = Asked("sqs:SendMessage", function.dead_letters)
            try:
                self._policies.check(Caller(function.role), asked)
            except Refused as refusal:
                self.refused.append(str(refusal))
                return
            self._send(function.dead_letters.rsplit(":", 1)[1], body)

    def _to_dead_letters(self, service: str, source: str, queue: str | None, body: str) -> None:
        if not queue:
            return
        try:
            self._policies.may_deliver(service, Asked("sqs:SendMessage", queue), source)
        except Refused as refusal:
            self.refused.append(str(refusal))
            return
        self._send(queue.rsplit(":", 1)[1], body)

    # Time

    def _tick(self) -> None:
        while not self._stopping.wait(TICK):
            now = self._clock.now()
            with suppress(
                RuntimeError
            ):  # a list that changed while it was read: the next tick sees it
                self._fire_rules(now)
                self._fire_schedules(now)

    def _fire_rules(self, now: float) -> None:
        from moto.events.models import events_backends

        for bus in list(events_backends[ACCOUNT][REGION].event_buses.values()):
            for rule in list(bus.rules.values()):
                every = seconds_of_rate(rule.scheduled_expression)
                if every is None or rule.state == "DISABLED":
                    continue
                if now - self._last_fired.setdefault(rule.arn, now) < every:
                    continue
                self._last_fired[rule.arn] = now
                event = {
                    "version": "0",
                    "id": str(uuid.uuid4()),
                    "detail-type": "Scheduled Event",
                    "source": "aws.events",
                    "account": ACCOUNT,
                    "time": _moment(now),
                    "region": REGION,
                    "resources": [rule.arn],
                    "detail": {},
                }
                for target in rule.targets:
                    self.of_event(rule.arn, target, event)

    def _fire_schedules(self, now: float) -> None:
        from moto.scheduler.models import scheduler_backends as backends

        for group in list(backends[ACCOUNT][REGION].schedule_groups.values()):
            for schedule in list(group.schedules.values()):
                at = moment_of(schedule.schedule_expression)
                if now < at:
                    continue
                if self._last_fired.get(schedule.arn) == at:
                    continue
                self._last_fired[schedule.arn] = at
                if schedule.action_after_completion == "DELETE":
                    group.schedules.pop(schedule.name, None)
                self._workers.submit(self._wake, group.arn, schedule)

    def _wake(self, group: str, schedule: Any) -> None:
        target = schedule.target
        try:
            asked = Asked("lambda:InvokeFunction", target["Arn"])
            self._as_role("scheduler.amazonaws.com", target, group, asked)
        except Refused as refusal:
            self.refused.append(str(refusal))
            return
        self._invoke_later(target["Arn"], target.get("Input", "{}"))


def shaped(target: Mapping[str, Any], event: Mapping[str, Any]) -> str:
    """The event as the target is to get it."""
    if "Input" in target:
        return str(target["Input"])
    if "InputTransformer" not in target:
        return json.dumps(event)
    told = target["InputTransformer"]
    text = str(told["InputTemplate"])
    for name, path in told.get("InputPathsMap", {}).items():
        value: Any = event
        for part in path.removeprefix("$.").split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        text = text.replace(f"<{name}>", json.dumps("" if value is None else value))
    return text


def seconds_of_rate(expression: str | None) -> float | None:
    """`rate(5 minutes)` -> 300. None if it is no schedule at all."""
    if not expression:
        return None
    found = re.fullmatch(r"rate\((\d+) (second|minute|hour|day)s?\)", expression)
    if not found:
        raise Unsupported(f"The schedule {expression} is not known to the local stack")
    return int(found[1]) * {"second": 1, "minute": 60, "hour": 3600, "day": 86400}[found[2]]


def moment_of(expression: str) -> float:
    """`at(2026-01-02T03:04:05)` -> seconds since 1970."""
    found = re.fullmatch(r"at\((.+)\)", expression)
    if not found:
        raise Unsupported(f"The schedule {expression} is not known to the local stack")
    return datetime.fromisoformat(found[1]).replace(tzinfo=UTC).timestamp()


def _as_json(event: Mapping[str, Any]) -> dict[str, Any]:
    """As EventBridge tells it: the time is text, and nothing of moto's own."""
    told = {key: value for key, value in event.items() if key != "ingestion-time"}
    if isinstance(told.get("time"), (int, float)):
        told["time"] = _moment(told["time"])
    plain: dict[str, Any] = json.loads(json.dumps(told, default=str))
    return plain


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
