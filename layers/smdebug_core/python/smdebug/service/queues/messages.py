"""Reading a queue: each message is handled, and one that cannot be handled now stays for later."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from smdebug.exceptions import SMDebugError, UnreadableMessage
from smdebug.service.aws import Clients, aws_errors, default_clients

_LONGEST_WAIT = 20  # seconds, of SQS
MOST = 10
"""As many messages as SQS gives at once."""


def handle_messages(
    queue: str,
    handle: Callable[[str], None],
    failed: Callable[[SMDebugError], None],
    *,
    until_empty: bool = False,
    at_once: int = MOST,
    clients: Clients | None = None,
) -> None:
    """Handle the messages of the queue at this address, for ever or until it is empty.

    A message for which `handle` raises an error stays in the queue, which gives it out again; `failed` gets
    the error, that of a message that cannot be read once. Few at once are for long work: the time until then
    begins when a message is received.
    """
    unreadable: set[str] = set()

    def fail(error: SMDebugError) -> None:
        if isinstance(error, UnreadableMessage):
            if str(error) in unreadable:
                return
            unreadable.add(str(error))
        failed(error)

    sqs = (clients or default_clients())("sqs")
    wait = 0 if until_empty else _LONGEST_WAIT
    while True:
        with aws_errors(f"The queue {queue}", "sqs:ReceiveMessage"):
            answer = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=at_once, WaitTimeSeconds=wait)
        messages = answer.get("Messages", ())
        for message in messages:
            _handle(sqs, queue, message, handle, fail)
        if until_empty and not messages:
            return


def event_in(message: str) -> dict[str, Any]:
    """Return the event that a rule of EventBridge has put into the queue; raise if it is none."""
    try:
        event = json.loads(message)
    except ValueError as error:
        raise UnreadableMessage("", "it is no JSON") from error
    if not isinstance(event, dict) or "detail-type" not in event:
        raise UnreadableMessage("", "it is no event of EventBridge")
    return event


def run_named_in(event: Mapping[str, Any]) -> str:
    """Return the run that an event is about, without s3://; raise if it names none."""
    detail = event.get("detail")
    run = detail.get("run") if isinstance(detail, dict) else None
    if not isinstance(run, str) or not run:
        raise UnreadableMessage("", "it names no run")
    return run


def _handle(
    sqs: Any,
    queue: str,
    message: dict[str, Any],
    handle: Callable[[str], None],
    failed: Callable[[SMDebugError], None],
) -> None:
    try:
        handle(message["Body"])
    except SMDebugError as error:
        failed(error)
        return
    with aws_errors(f"The queue {queue}", "sqs:DeleteMessage"):
        sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
