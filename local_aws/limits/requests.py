"""What AWS refuses in a request before it does anything. Pure: from the request alone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from local_aws.limits.numbers import BeyondLimit, Limits
from local_aws.permissions.calls import Request

CHECKED = ("dynamodb", "sqs", "states", "scheduler")
_INVALID = "ValidationException"


def check_request(request: Request, limits: Limits) -> None:
    """Raise `BeyondLimit` for a request that AWS would refuse because of its size."""
    if request.service not in CHECKED or not request.body:
        return
    payload: dict[str, Any] = json.loads(request.body)
    action = request.target.rsplit(".", 1)[-1]
    match request.service:
        case "dynamodb":
            _check_table_request(payload, limits)
        case "sqs" if action in ("SendMessage", "SendMessageBatch"):
            _check_messages(payload, limits)
        case "states" if action == "StartExecution":
            _check_size("input", payload.get("input", ""), limits.state_bytes)
        case "scheduler":
            given = payload.get("Target", {}).get("Input", "")
            _check_size("Input", given, limits.asynchronous_bytes)


def _check_table_request(payload: Mapping[str, Any], limits: Limits) -> None:
    actions = payload.get("TransactItems", [])
    if len(actions) > limits.transaction_actions:
        raise BeyondLimit(
            _INVALID,
            "1 validation error detected: Value at 'transactItems' failed to satisfy constraint: Member "
            f"must have length less than or equal to {limits.transaction_actions}",
        )
    for name, expression in _expressions(payload):
        size = len(expression.encode())
        if size > limits.expression_bytes:
            raise BeyondLimit(
                _INVALID,
                f"Invalid {name}: Expression size has exceeded the "
                f"maximum allowed size; expression size: {size}",
            )


def _expressions(payload: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The expressions of a request and of the actions of a transaction."""
    for name, value in payload.items():
        if name.endswith("Expression") and isinstance(value, str):
            yield name, value
    for action in payload.get("TransactItems", []):
        for part in action.values():
            yield from _expressions(part)


def _check_messages(payload: Mapping[str, Any], limits: Limits) -> None:
    entries = payload.get("Entries", [payload])
    size = sum(len(entry.get("MessageBody", "").encode()) for entry in entries)
    if size > limits.message_bytes:
        raise BeyondLimit(
            "InvalidParameterValue",
            "One or more parameters are invalid. Reason: Message must be shorter than "
            f"{limits.message_bytes} bytes.",
        )


def _check_size(name: str, text: str, most: int) -> None:
    if len(text.encode()) > most:
        raise BeyondLimit(_INVALID, f"Value at '{name}' has more than {most} bytes")
