"""Queues as a test reads them: the subscriber of the alerts, and dead letters."""

from __future__ import annotations

import json
from typing import Any


class Inbox:
    """A subscriber to the alerts."""

    def __init__(self, client: Any, url: str):
        self._client = client
        self._url = url

    @classmethod
    def subscribed_to(cls, topic: str, *, sqs: Any, sns: Any, name: str) -> Inbox:
        """Make a queue of that name and subscribe it to the topic."""
        url = sqs.create_queue(QueueName=name)["QueueUrl"]
        attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
        sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=attributes["Attributes"]["QueueArn"])
        return cls(sqs, url)

    def messages(self) -> list[dict[str, str]]:
        """The messages since the last call, each with `subject` and `message`."""
        received = received_messages(self._client, self._url)
        for message in received:
            self._client.delete_message(QueueUrl=self._url, ReceiptHandle=message["ReceiptHandle"])
        alerts = (json.loads(message["Body"]) for message in received)
        return [{"subject": alert.get("Subject", ""), "message": alert["Message"]} for alert in alerts]


def peek(client: Any, url: str) -> list[dict[str, Any]]:
    """The messages of a queue, which remain in it."""
    messages = received_messages(client, url)
    for message in messages:
        client.change_message_visibility(
            QueueUrl=url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=0
        )
    return messages


def received_messages(client: Any, url: str) -> list[dict[str, Any]]:
    """Receive all messages of a queue; they become visible again unless they are deleted."""
    messages: list[dict[str, Any]] = []
    while batch := client.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
        messages += batch
    return messages
