"""Queues of moto, and how many messages they hold."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import boto3

from tests.support.mocked_aws import mocked_aws


@contextmanager
def queue_with_dead_letters(tries: int) -> Iterator[tuple[str, str]]:
    """Yield the addresses of a queue and of its dead letters. A message is visible again at once."""
    with mocked_aws():
        sqs = boto3.client("sqs")
        dead_letters = sqs.create_queue(QueueName="dead-letters")["QueueUrl"]
        arn = sqs.get_queue_attributes(QueueUrl=dead_letters, AttributeNames=["QueueArn"])["Attributes"]
        redrive = {"deadLetterTargetArn": arn["QueueArn"], "maxReceiveCount": tries}
        attributes = {"VisibilityTimeout": "0", "RedrivePolicy": json.dumps(redrive)}
        yield sqs.create_queue(QueueName="queue", Attributes=attributes)["QueueUrl"], dead_letters


def left(url: str) -> int:
    """Return how many messages the queue holds, those that somebody handles as well."""
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    counts = boto3.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
    return sum(map(int, counts.values()))
