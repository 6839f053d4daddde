"""Reading a queue: each message is handled, and one that cannot be handled now stays for later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from smdebug.exceptions import SMDebugError
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

    A message for which `handle` raises an error goes to `failed` and stays in the queue, which gives it out
    again. Few at once are for long work: the time until then begins when a message is received.
    """
    sqs = (clients or default_clients())("sqs")
    wait = 0 if until_empty else _LONGEST_WAIT
    while True:
        with aws_errors(f"The queue {queue}", "sqs:ReceiveMessage"):
            answer = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=at_once, WaitTimeSeconds=wait)
        messages = answer.get("Messages", ())
        for message in messages:
            _handle(sqs, queue, message, handle, failed)
        if until_empty and not messages:
            return


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
