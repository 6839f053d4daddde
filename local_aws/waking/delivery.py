"""How a service wakes another: events go to their targets, objects to queues, schedules to functions.

Each delivery checks the receiver's policy first, as AWS does. A delivery that is refused or fails too often
goes to the dead-letter queue that the template names, and is listed in `Deliveries.refused`.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from local_aws.clock import MovableClock
from local_aws.deployment.deployed import Deployed
from local_aws.errors import Unsupported
from local_aws.limits import BeyondLimit
from local_aws.limits.table import delete_expired
from local_aws.permissions.calls import Permission, queue_arn
from local_aws.permissions.policies import Caller, Refused
from local_aws.resources.neighbours import bus_at
from local_aws.running.functions import Invocation
from local_aws.schedules import next_due, seconds_of_time
from local_aws.template import ACCOUNT, REGION

Send = Callable[[str, str], None]  # queue name, message
ATTEMPTS = 3  # at an asynchronous invocation, as Lambda makes
EXPIRES_EVERY = 60.0  # seconds of the local clock between two searches for expired items
TICK = 0.1  # seconds between two readings of the clock
_EVENTS = "events.amazonaws.com"


class Deliveries:
    """Everything that happens asynchronously."""

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
        self._expired_at = clock.now()
        self.refused: list[str] = []
        self.forwarded: dict[str, list[dict[str, Any]]] = {}  # by the ARN of the bus that got them
        self.loses_notifications = False
        self._ticker = threading.Thread(target=self._tick, daemon=True)

    def start(self) -> None:
        self._ticker.start()

    def stop(self) -> None:
        self._stopping.set()
        self._workers.shutdown(wait=False, cancel_futures=True)

    # S3

    def object_created(self, bucket: str, queue: str, body: str) -> None:
        """Send the notification of an object to a queue."""
        if not self.loses_notifications:
            self._send_if_accepted("s3.amazonaws.com", queue_arn(queue), bucket, body)

    def chain_was_cut(self, queue: str, bodies: list[str]) -> None:
        """Lambda has refused messages of a recursive loop: they are dead letters."""
        self.refused.append(f"{queue}: a chain of calls came back too often, and was cut")
        source = self._client("sqs").get_queue_attributes(QueueUrl=queue, AttributeNames=["RedrivePolicy"])
        policy = json.loads(source.get("Attributes", {}).get("RedrivePolicy", "{}"))
        if target := policy.get("deadLetterTargetArn"):
            for body in bodies:
                self._send(target.rsplit(":", 1)[1], body)

    # EventBridge

    def event_matched(self, rule: str, target: Mapping[str, Any], event: Mapping[str, Any]) -> None:
        """Deliver an event to a target of the rule that it matched, in the background."""
        with suppress(RuntimeError):  # the stack is stopping
            self._workers.submit(self._to_target, rule, target, _published(event))

    def _to_target(self, rule: str, target: Mapping[str, Any], event: Mapping[str, Any]) -> None:
        body = shaped(target, event)
        try:
            self._deliver(rule, target, body)
            return
        except Refused as refusal:
            self.refused.append(str(refusal))
        except Exception as problem:  # noqa: BLE001 - a failed delivery is a dead letter
            self.refused.append(f"{target['Arn']} did not take an event: {problem}")
        if queue := target.get("DeadLetterConfig", {}).get("Arn"):
            self._send_if_accepted(_EVENTS, queue, rule, body)

    def _deliver(self, rule: str, target: Mapping[str, Any], body: str) -> None:
        arn = target["Arn"]
        service = arn.split(":")[2]
        if service == "sqs":
            self._policies.may_deliver(_EVENTS, Permission("sqs:SendMessage", arn), rule)
            self._send(arn.rsplit(":", 1)[1], body)
        elif service == "lambda":
            self._policies.may_deliver(_EVENTS, Permission("lambda:InvokeFunction", arn), rule)
            self._invoke_asynchronously(arn, body)
        elif service == "sns":
            self._policies.may_deliver(_EVENTS, Permission("sns:Publish", arn), rule)
            self._client("sns").publish(TopicArn=arn, Message=body)
        elif service == "states":
            self._check_role(_EVENTS, target, rule, Permission("states:StartExecution", arn))
            self._client("stepfunctions").start_execution(
                stateMachineArn=arn, name=str(uuid.uuid4()), input=body
            )
        elif service == "events":
            self._check_role(_EVENTS, target, rule, Permission("events:PutEvents", arn))
            self._forward(arn, json.loads(body))
        else:
            raise Unsupported(f"{arn} is a target of events that the local stack does not support")

    def _forward(self, arn: str, event: dict[str, Any]) -> None:
        bus = bus_at(arn)
        if bus is None:
            raise LookupError("there is no such bus")
        self.forwarded.setdefault(arn, []).append(event)
        for rule in list(bus.rules.values()):
            rule.send_to_targets(event)

    def _check_role(
        self, service: str, target: Mapping[str, Any], source: str, permission: Permission
    ) -> None:
        role = target["RoleArn"]
        self._policies.may_assume(service, role, source)
        self._policies.check(Caller(role), permission)

    # Asynchronous invocations

    def _invoke_asynchronously(self, arn: str, body: str) -> None:
        name, request = arn.rsplit(":", 1)[1], str(uuid.uuid4())
        for attempt in range(1, ATTEMPTS + 1):
            invocation = self._when_possible(name, body.encode(), request)
            if invocation is None or invocation.error is None:
                return
            if self._stopping.wait(self._pause * attempt):  # Lambda waits one minute, then two
                return
        function = self._deployed.functions[name]
        if function.dead_letters:
            sending = Permission("sqs:SendMessage", function.dead_letters)
            try:
                self._policies.check(Caller(function.role), sending)
            except Refused as refusal:
                self.refused.append(str(refusal))
                return
            self._send(function.dead_letters.rsplit(":", 1)[1], body)

    def _when_possible(self, name: str, body: bytes, request: str) -> Invocation | None:
        """Invoke; while the account's concurrency is used up, Lambda keeps the event for hours."""
        while True:
            try:
                return self._invoke(name, body, request)
            except BeyondLimit:
                if self._stopping.wait(TICK):
                    return None

    def _send_if_accepted(self, service: str, queue: str, source: str, body: str) -> None:
        try:
            self._policies.may_deliver(service, Permission("sqs:SendMessage", queue), source)
        except Refused as refusal:
            self.refused.append(str(refusal))
            return
        self._send(queue.rsplit(":", 1)[1], body)

    # Time

    def _tick(self) -> None:
        while not self._stopping.wait(TICK):
            now = self._clock.now()
            # A collection that changes while it is read is read again at the next tick.
            with suppress(RuntimeError):
                self._fire_rules(now)
                self._fire_schedules(now)
                if now - self._expired_at >= EXPIRES_EVERY:
                    self._expired_at = now
                    delete_expired(now)

    def _fire_rules(self, now: float) -> None:
        from moto.events.models import events_backends

        for bus in list(events_backends[ACCOUNT][REGION].event_buses.values()):
            for rule in list(bus.rules.values()):
                if not rule.scheduled_expression or rule.state == "DISABLED":
                    continue
                if now < next_due(rule.scheduled_expression, self._last_fired.setdefault(rule.arn, now)):
                    continue
                self._last_fired[rule.arn] = now
                event = _scheduled_event(rule.arn, now)
                for target in rule.targets:
                    self.event_matched(rule.arn, target, event)

    def _fire_schedules(self, now: float) -> None:
        from moto.scheduler.models import scheduler_backends as backends

        for group in list(backends[ACCOUNT][REGION].schedule_groups.values()):
            for schedule in list(group.schedules.values()):
                at = seconds_of_time(schedule.schedule_expression)
                if now < at or self._last_fired.get(schedule.arn) == at:
                    continue
                self._last_fired[schedule.arn] = at
                if schedule.action_after_completion == "DELETE":
                    group.schedules.pop(schedule.name, None)
                self._workers.submit(self._run_schedule, group.arn, schedule)

    def _run_schedule(self, group: str, schedule: Any) -> None:
        target = schedule.target
        try:
            permission = Permission("lambda:InvokeFunction", target["Arn"])
            self._check_role("scheduler.amazonaws.com", target, group, permission)
        except Refused as refusal:
            self.refused.append(str(refusal))
            return
        self._invoke_asynchronously(target["Arn"], target.get("Input", "{}"))


def shaped(target: Mapping[str, Any], event: Mapping[str, Any]) -> str:
    """Return the event in the shape that the target asks for."""
    if "Input" in target:
        return str(target["Input"])
    if "InputTransformer" not in target:
        return json.dumps(event)
    transformer = target["InputTransformer"]
    text = str(transformer["InputTemplate"])
    for name, path in transformer.get("InputPathsMap", {}).items():
        value: Any = event
        for part in path.removeprefix("$.").split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        text = text.replace(f"<{name}>", json.dumps("" if value is None else value))
    return text


def _scheduled_event(rule: str, now: float) -> dict[str, Any]:
    return {
        "version": "0",
        "id": str(uuid.uuid4()),
        "detail-type": "Scheduled Event",
        "source": "aws.events",
        "account": ACCOUNT,
        "time": _timestamp(now),
        "region": REGION,
        "resources": [rule],
        "detail": {},
    }


def _published(event: Mapping[str, Any]) -> dict[str, Any]:
    """The event as EventBridge publishes it: the time is text, and moto's own keys are left out."""
    public = {key: value for key, value in event.items() if key != "ingestion-time"}
    if isinstance(public.get("time"), (int, float)):
        public["time"] = _timestamp(public["time"])
    plain: dict[str, Any] = json.loads(json.dumps(public, default=str))
    return plain


def _timestamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
