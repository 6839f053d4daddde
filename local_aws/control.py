"""The control interface of the local stack: what `LocalAws` asks the process that plays AWS."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Protocol

from local_aws.clock import MovableClock
from local_aws.deployment.deployed import Deployed
from local_aws.errors import LocalStackError, TooManyRunning
from local_aws.gate import Gate
from local_aws.limits import BeyondLimit
from local_aws.limits.concurrency import Concurrency
from local_aws.running.functions import Invocation
from local_aws.template import ACCOUNT, Template
from local_aws.waking.delivery import Deliveries


class Stack(Protocol):
    """The parts of a running stack that can be controlled."""

    template: Template
    clock: MovableClock
    deployed: Deployed
    deliveries: Deliveries
    gate: Gate
    concurrency: Concurrency
    events: dict[str, dict[str, Any]]

    def invoke(self, name: str, event: bytes, request: str = "") -> Invocation: ...

    def kill(self, name: str) -> int: ...

    def past_invocations(self) -> list[Invocation]: ...


class Control:
    """Each `do_…` method is a request that `LocalAws.ask` can make by name."""

    def __init__(self, stack: Stack):
        self._stack = stack

    def __call__(self, name: str, arguments: Mapping[str, Any]) -> Any:
        return getattr(self, f"do_{name}")(**arguments)

    def do_forward(self, seconds: float) -> float:
        self._stack.clock.forward(seconds)
        return self._stack.clock.now()

    def do_now(self) -> float:
        return self._stack.clock.now()

    def do_invoke(self, function: str, event: Any) -> dict[str, Any]:
        name, payload = self._full_name(function), json.dumps(event).encode()
        try:
            return _as_data(self._stack.invoke(name, payload))
        except BeyondLimit as limit:
            raise TooManyRunning(
                f"{function} was refused with {limit} The account runs as many functions at once as it may: "
                "wait until some have ended, with settle(), or raise the setting account_concurrency"
            ) from limit

    def do_invocations(self, function: str | None, skip: int) -> list[dict[str, Any]]:
        invocations = self._stack.past_invocations()[skip:]
        return [_as_data(past) for past in invocations if function in (None, past.function)]

    def do_events(self, detail_type: str | None, bus: str | None) -> list[dict[str, Any]]:
        published = self._stack.events.values()
        events = list(published if bus is None else self._stack.deliveries.forwarded.get(bus, ()))
        return [event for event in events if detail_type in (None, event["detail-type"])]

    def do_lose_notifications(self, lose: bool) -> None:
        self._stack.deliveries.loses_notifications = lose

    def do_kill(self, function: str) -> int:
        return self._stack.kill(self._full_name(function))

    def do_kill_when(self, function: str, calls: str, times: int) -> None:
        role = self._stack.deployed.functions[self._full_name(function)].role
        self._stack.gate.trap(role, calls, times)

    def do_refused(self) -> list[str]:
        gate = self._stack.gate
        return [*gate.refused, *gate.unsupported, *self._stack.deliveries.refused]

    def do_throttled(self) -> dict[str, int]:
        functions = self._stack.deployed.functions
        return {
            functions[name].short_name: times
            for name, times in list(self._stack.concurrency.refused.items())
            if name in functions
        }

    def do_permissions(self) -> dict[str, Any]:
        policies = self._stack.deployed.policies
        return {
            "unused": policies.unused(),
            "needless": [
                {
                    "owner": owner,
                    "actions": statement.actions,
                    "resources": statement.resources,
                }
                for owner, statement in policies.needless()
            ],
            "calls": [{**asdict(call), "times": times} for call, times in list(policies.calls.items())],
            "roles": self._role_names(),
        }

    def do_functions(self) -> dict[str, str]:
        functions = self._stack.deployed.functions.values()
        return {function.short_name: function.name for function in functions}

    def _full_name(self, short: str) -> str:
        functions = self._stack.deployed.functions.values()
        for function in functions:
            if short in (function.short_name, function.name):
                return function.name
        known = ", ".join(sorted({function.short_name for function in functions}))
        raise LocalStackError(f"There is no function {short}; there are {known}")

    def _role_names(self) -> dict[str, str]:
        """The logical name of each role in the template, by ARN."""
        physical = self._stack.deployed.physical
        return {
            f"arn:aws:iam::{ACCOUNT}:role/{physical[name]}": name
            for name, resource in self._stack.template["Resources"].items()
            if resource["Type"] == "AWS::IAM::Role"
        }


def _as_data(invocation: Invocation) -> dict[str, Any]:
    return {
        **asdict(invocation),
        "payload": invocation.payload.decode("utf-8", "replace"),
        "log": list(invocation.log),
    }
