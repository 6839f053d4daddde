"""Lambda's pollers: they pass batches of a queue to a function, and delete the messages that succeeded."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from typing import Any

from local_aws.deployment.deployed import QueueMapping
from local_aws.limits import BeyondLimit
from local_aws.limits.lineage import Lineage, Lineages
from local_aws.running.functions import Invocation
from local_aws.template import ACCOUNT, REGION

POLLERS = 2  # per queue at most, on this machine; Lambda begins with five
# Between checks for messages that become visible; a new one is noticed at once.
CHECK_SECONDS = 0.05


class Poller:
    """One of the pollers of an event source mapping."""

    def __init__(
        self,
        mapping: QueueMapping,
        client: Any,  # of SQS, with the function's role
        invoke: Callable[[str, bytes, str, Lineage], Invocation],
        stopping: threading.Event,
        *,
        lineages: Lineages,
        cut: Callable[[str, list[str]], None],
    ):
        self._mapping = mapping
        self._client = client
        self._invoke = invoke
        self._stopping = stopping
        self._lineages = lineages
        self._cut = cut
        self._url = ""

    def run(self) -> None:
        """Poll until the stack stops."""
        from moto.sqs.models import sqs_backends

        queue = sqs_backends[ACCOUNT][REGION].queues[self._mapping.queue]
        self._url = f"http://queues/{ACCOUNT}/{queue.name}"
        while not self._stopping.is_set():
            with queue._messages_lock:
                if not queue.messages:
                    queue._messages_lock.wait(CHECK_SECONDS)
            if queue.messages and not self._stopping.is_set():
                try:
                    self._handle(self._batch())
                except Exception as problem:  # noqa: BLE001 - the next batch may succeed
                    if self._stopping.wait(0.5):
                        return
                    print(f"Receiving a batch of {self._mapping.queue} failed: {problem}")

    def _batch(self) -> list[dict[str, Any]]:
        """Collect messages until the batch is full or its window has passed."""
        size, until = self._mapping.batch_size, time.monotonic() + self._mapping.window
        batch: list[dict[str, Any]] = []
        while len(batch) < size:
            received = self._client.receive_message(
                QueueUrl=self._url,
                MaxNumberOfMessages=min(10, size - len(batch)),
                WaitTimeSeconds=0,
                MessageSystemAttributeNames=["All"],
                MessageAttributeNames=["All"],
            ).get("Messages", [])
            batch += received
            if not self._mapping.window or time.monotonic() >= until:
                break
            if not received:
                time.sleep(0.02)
        return batch

    def _handle(self, batch: list[dict[str, Any]]) -> None:
        if not batch:
            return
        arn = f"arn:aws:sqs:{REGION}:{ACCOUNT}:{self._mapping.queue}"
        records = [
            {
                "messageId": message["MessageId"],
                "receiptHandle": message["ReceiptHandle"],
                "body": message["Body"],
                "attributes": message["Attributes"],
                "messageAttributes": {},
                "md5OfBody": message["MD5OfBody"],
                "eventSource": "aws:sqs",
                "eventSourceARN": arn,
                "awsRegion": REGION,
            }
            for message in batch
        ]
        event = json.dumps({"Records": records}).encode()
        ids = [message["MessageId"] for message in batch]
        lineage = self._lineages.next(ids, self._mapping.function)
        if lineage is None:
            self._cut(self._mapping.queue, [message["Body"] for message in batch])
            self._delete(batch)
            return
        failed = failed_messages(
            self._call(event, lineage), set(ids), reports_failures=self._mapping.reports_failures
        )
        self._delete([message for message in batch if message["MessageId"] not in failed])
        # The others become visible again, and after several attempts they are dead letters.

    def _call(self, event: bytes, lineage: Lineage) -> Invocation:
        """Call the function; while the account's concurrency is used up, try again."""
        while True:
            try:
                return self._invoke(self._mapping.function, event, "", lineage)
            except BeyondLimit:
                if self._stopping.wait(CHECK_SECONDS):
                    raise

    def _delete(self, done: list[dict[str, Any]]) -> None:
        for start in range(0, len(done), 10):
            self._client.delete_message_batch(
                QueueUrl=self._url,
                Entries=[
                    {"Id": str(number), "ReceiptHandle": message["ReceiptHandle"]}
                    for number, message in enumerate(done[start : start + 10])
                ],
            )


def failed_messages(invocation: Invocation, batch: set[str], *, reports_failures: bool) -> set[str]:
    """Return the messages to deliver again: all of them if the function's result is malformed."""
    if invocation.error is not None:
        return batch
    if not reports_failures:
        return set()
    try:
        result = json.loads(invocation.payload) or {}
        failed = {failure["itemIdentifier"] for failure in result.get("batchItemFailures", [])}
    except (ValueError, TypeError, KeyError, AttributeError):
        return batch
    return failed if failed <= batch else batch
