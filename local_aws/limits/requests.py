"""What AWS refuses in a request before it does anything. Pure: from the request alone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import parse_qs, unquote

from local_aws.limits.numbers import BeyondLimit, Limits
from local_aws.permissions.calls import Request

CHECKED = ("dynamodb", "sqs", "states", "scheduler", "sts", "s3", "lambda")
_WITH_JSON = ("dynamodb", "sqs", "states", "scheduler")
_NESTED_LEVELS = 32
_BATCH_WRITES, _BATCH_READS = 25, 100
_KEY_BYTES = 1024
_SCHEDULE_NAME = 64
_POLICY_CHARACTERS = 2048  # of a session
_INVALID = "ValidationException"


def check_request(request: Request, limits: Limits) -> None:
    """Raise `BeyondLimit` for a request that AWS would refuse because of its size."""
    if request.service == "s3":
        _check_key(request.path)
    elif request.is_invocation:
        _check_invocation(request, limits)
    elif request.service == "sts":
        _check_session(request.body)
    if request.service not in _WITH_JSON or not request.body:
        return
    payload: dict[str, Any] = json.loads(request.body)
    action = request.target.rsplit(".", 1)[-1]
    match request.service:
        case "dynamodb":
            _check_table_request(payload, limits)
            _check_batches(payload)
            _check_levels(payload)
        case "sqs" if action in ("SendMessage", "SendMessageBatch"):
            _check_messages(payload, limits)
        case "states" if action == "StartExecution":
            _check_size("input", payload.get("input", ""), limits.state_bytes)
        case "scheduler":
            _check_schedule_name(request.path)
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


def _check_key(path: str) -> None:
    key = unquote(path).lstrip("/").partition("/")[2]
    if len(key.encode()) > _KEY_BYTES:
        raise BeyondLimit("KeyTooLongError", "Your key is too long")


def _check_invocation(request: Request, limits: Limits) -> None:
    most = limits.asynchronous_bytes if request.is_asynchronous else limits.answer_bytes
    if len(request.body) > most:
        raise BeyondLimit("RequestTooLargeException", f"Request must be smaller than {most} bytes")


def _check_session(body: bytes) -> None:
    policy = parse_qs(body.decode()).get("Policy", [""])[0]
    if len(policy) > _POLICY_CHARACTERS:
        raise BeyondLimit("ValidationError", _longer_than("policy", _POLICY_CHARACTERS))


def _check_schedule_name(path: str) -> None:
    if len(unquote(path).rpartition("/")[2]) > _SCHEDULE_NAME:
        raise BeyondLimit(_INVALID, _longer_than("name", _SCHEDULE_NAME))


def _longer_than(name: str, most: int) -> str:
    return (
        f"1 validation error detected: Value at '{name}' failed to satisfy constraint: Member must have "
        f"length less than or equal to {most}"
    )


def _check_batches(payload: Mapping[str, Any]) -> None:
    for asked in payload.get("RequestItems", {}).values():
        writes, reads = (len(asked), 0) if isinstance(asked, list) else (0, len(asked.get("Keys", ())))
        if writes > _BATCH_WRITES:
            raise BeyondLimit(_INVALID, "Too many items requested for the BatchWriteItem call")
        if reads > _BATCH_READS:
            raise BeyondLimit(_INVALID, "Too many items requested for the BatchGetItem call")


def _check_levels(payload: Mapping[str, Any]) -> None:
    values = [*payload.get("Item", {}).values(), *payload.get("ExpressionAttributeValues", {}).values()]
    for action in payload.get("TransactItems", []):
        for part in action.values():
            _check_levels(part)
    for value in values:
        if _levels(value) > _NESTED_LEVELS:
            raise BeyondLimit(_INVALID, "Nesting Levels have exceeded supported limits")


def _levels(typed: Mapping[str, Any]) -> int:
    """How many lists and maps of a value are within each other."""
    levels, values = 0, [typed]
    while values := [inner for value in values for inner in _inside(value)]:
        levels += 1
    return levels


def _inside(typed: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from typed.get("M", {}).values()
    yield from typed.get("L", ())


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
