"""Lambda's pollers: batches of a queue for a function, and what becomes of the messages that failed."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from typing import Any

from local_aws.deploying import QueueMapping
from local_aws.functions import Invocation
from local_aws.template import ACCOUNT, REGION

AT_ONCE = 2  # pollers of one queue; Lambda begins with five
LOOK_EVERY = 0.05  # seconds, for messages that become visible; a new one is noticed at once


class Poller:
    """One of the pollers of an event source mapping."""

    def __init__(
        self,
        mapping: QueueMapping,
        client: Any,  # of SQS, in the name of the function's role
        invoke: Callable[[str, bytes], Invocation],
        stopping: threading.Event,
    ):
        self._mapping = mapping
        self._client = client
        self._invoke = invoke
        self._stopping = stopping
        self._url = ""

    def run(self) -> None:
        """Until the stack stops."""
        from moto.sqs.models import sqs_backends

        queue = sqs_backends[ACCOUNT][REGION].queues[self._mapping.queue]
        self._url = f"http://queues/{ACCOUNT}/{queue.name}"
        while not self._stopping.is_set():
            with queue._messages_lock:
                if not queue.messages:
                    queue._messages_lock.wait(LOOK_EVERY)
            if queue.messages and not self._stopping.is_set():
                try:
                    self._handle(self._batch())
                except Exception as problem:  # noqa: BLE001 - the next batch may go
                    if self._stopping.wait(0.5):
                        return
                    print(f"A batch of {self._mapping.queue} could not be had: {problem}")

    def _batch(self) -> list[dict[str, Any]]:
        """What is there, and comes within the window, up to the size of a batch."""
        size, until = self._mapping.batch_size, time.monotonic() + self._mapping.window
        batch: list[dict[str, Any]] = []
        while len(batch) < size:
            got = self._client.receive_message(
                QueueUrl=self._url,
                MaxNumberOfMessages=min(10, size - len(batch)),
                WaitTimeSeconds=0,
                MessageSystemAttributeNames=["All"],
                MessageAttributeNames=["All"],
            ).get("Messages", [])
            batch += got
            if not self._mapping.window or time.monotonic() >= until:
                break
            if not got:
                time.sleep(0.02)
        return batch

    def _handle(self, batch: list[dict[str, Any]]) -> None:
        if not batch:
            return
        arn = f"arn:aws:sqs:{REGION}:{ACCOUNT}:{self._mapping.queue}"
        records = [
            {
                "messageId": one["MessageId"],
                "receiptHandle": one["ReceiptHandle"],
                "body": one["Body"],
                "attributes": one["Attributes"],
                "messageAttributes": {},
                "md5OfBody": one["MD5OfBody"],
                "eventSource": "aws:sqs",
                "eventSourceARN": arn,
                "awsRegion": REGION,
            }
            for one in batch
        ]
        done = self._invoke(self._mapping.function, json.dumps({"Records": records}).encode())
        failed = failed_of(done, {one["MessageId"] for one in batch}, self._mapping.tells_failures)
        good = [one for one in batch if one["MessageId"] not in failed]
        for start in range(0, len(good), 10):
            self._client.delete_message_batch(
                QueueUrl=self._url,
                Entries=[
                    {"Id": str(number), "ReceiptHandle": one["ReceiptHandle"]}
                    for number, one in enumerate(good[start : start + 10])
                ],
            )
        # The others come again when they become visible, and are dead letters after so many times.


def failed_of(done: Invocation, batch: set[str], tells_failures: bool) -> set[str]:
    """The messages that have to come again. An answer that makes no sense means: all of them."""
    if done.error is not None:
        return batch
    if not tells_failures:
        return set()
    try:
        answer = json.loads(done.payload) or {}
        failed = {one["itemIdentifier"] for one in answer.get("batchItemFailures", [])}
    except (ValueError, TypeError, KeyError, AttributeError):
        return batch
    return failed if failed <= batch else batch
