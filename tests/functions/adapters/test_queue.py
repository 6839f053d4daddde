"""One set of promises for the queue of the simulation and for SQS, as far as moto keeps them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Protocol

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from functions.adapters.in_memory import HandClock
from tests.simulation.queues import MemoryQueue
from tests.support.mocked_aws import mocked_aws

VISIBILITY = 60
RECEIVES = 3


class Queue(Protocol):
    """What both queues must do: ids are ours, in the order in which messages were sent."""

    clock: HandClock

    def send(self, body: str, delay: int = 0) -> None: ...
    def receive(self) -> list[tuple[str, int, str]]:
        """Body, how often it was received, receipt; in the order of the bodies."""

    def delete(self, receipt: str) -> None: ...
    def show_again(self, receipt: str, after: int) -> None: ...
    def dead(self) -> list[str]: ...
    def redrive(self) -> None: ...


class InMemory:
    def __init__(self, clock: HandClock):
        self.clock = clock
        self._dead = MemoryQueue(clock.now, visibility=VISIBILITY)
        self._queue = MemoryQueue(
            clock.now, visibility=VISIBILITY, receives=RECEIVES, dead_letters=self._dead
        )
        self.send, self.delete, self.show_again = (
            self._queue.send,
            self._queue.delete,
            self._queue.show_again,
        )

    def receive(self) -> list[tuple[str, int, str]]:
        return sorted((message.body, message.received, message.receipt) for message in self._queue.receive())

    def dead(self) -> list[str]:
        seen = self._dead.receive()
        for message in seen:
            self._dead.show_again(message.receipt, 0)
        return sorted(message.body for message in seen)

    def redrive(self) -> None:
        self._dead.redrive(self._queue)


class InSqs:
    """moto's, whose clock is ours."""

    numbers = iter(range(10**9))

    def __init__(self, client: Any, clock: HandClock):
        self.clock = clock
        self._client = client
        number = next(self.numbers)
        dead = client.create_queue(QueueName=f"dead-{number}")["QueueUrl"]
        self._dead = dead
        arn = client.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])
        policy = {"deadLetterTargetArn": arn["Attributes"]["QueueArn"], "maxReceiveCount": RECEIVES}
        attributes = {"VisibilityTimeout": str(VISIBILITY), "RedrivePolicy": json.dumps(policy)}
        self._queue = client.create_queue(QueueName=f"queue-{number}", Attributes=attributes)["QueueUrl"]

    def send(self, body: str, delay: int = 0) -> None:
        self._client.send_message(QueueUrl=self._queue, MessageBody=body, DelaySeconds=delay)

    def _received(self, queue: str) -> list[dict[str, Any]]:
        return self._client.receive_message(
            QueueUrl=queue,
            MaxNumberOfMessages=10,
            WaitTimeSeconds=0,
            AttributeNames=["ApproximateReceiveCount"],
        ).get("Messages", [])

    def receive(self) -> list[tuple[str, int, str]]:
        return sorted(
            (
                message["Body"],
                int(message["Attributes"]["ApproximateReceiveCount"]),
                message["ReceiptHandle"],
            )
            for message in self._received(self._queue)
        )

    def delete(self, receipt: str) -> None:
        with suppress(self._client.exceptions.ReceiptHandleIsInvalid):  # it is gone already
            self._client.delete_message(QueueUrl=self._queue, ReceiptHandle=receipt)

    def show_again(self, receipt: str, after: int) -> None:
        with suppress(self._client.exceptions.ReceiptHandleIsInvalid):
            self._client.change_message_visibility(
                QueueUrl=self._queue, ReceiptHandle=receipt, VisibilityTimeout=after
            )

    def dead(self) -> list[str]:
        seen = self._received(self._dead)
        for message in seen:
            self._client.change_message_visibility(
                QueueUrl=self._dead, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=0
            )
        self.clock.time += 0.01
        return sorted(message["Body"] for message in seen)

    def redrive(self) -> None:
        """As the console does it: each is sent once more."""
        for message in self._received(self._dead):
            self.send(message["Body"])
            self._client.delete_message(QueueUrl=self._dead, ReceiptHandle=message["ReceiptHandle"])


@pytest.fixture(scope="module")
def sqs() -> Iterator[Any]:
    import boto3

    with mocked_aws():
        yield boto3.client("sqs")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> HandClock:
    import moto.sqs.models

    clock = HandClock()
    monkeypatch.setattr(moto.sqs.models, "unix_time", clock.now)
    monkeypatch.setattr(moto.sqs.models, "unix_time_millis", lambda: clock.now() * 1000)
    return clock


@pytest.fixture(params=["memory", "sqs"])
def queue(request: pytest.FixtureRequest, clock: HandClock) -> Queue:
    if request.param == "memory":
        return InMemory(clock)
    return InSqs(request.getfixturevalue("sqs"), clock)


def bodies(received: list[tuple[str, int, str]]) -> list[str]:
    return [body for body, _, _ in received]


def wait(queue: Queue, seconds: float) -> None:
    queue.clock.time += seconds


def test_a_received_message_is_hidden_and_redelivered_later(queue):
    queue.send("a")
    queue.send("b")
    first = queue.receive()
    assert [message[:2] for message in first] == [("a", 1), ("b", 1)]
    assert queue.receive() == []
    wait(queue, VISIBILITY - 1)
    assert queue.receive() == []
    wait(queue, 2)
    again = queue.receive()
    assert [message[:2] for message in again] == [("a", 2), ("b", 2)]
    assert {message[2] for message in first}.isdisjoint(message[2] for message in again)


def test_a_deleted_message_is_not_redelivered(queue):
    queue.send("a")
    queue.send("b")
    (_, _, receipt), _ = queue.receive()
    queue.delete(receipt)
    queue.delete(receipt)
    wait(queue, VISIBILITY + 1)
    assert bodies(queue.receive()) == ["b"]


def test_the_first_receiver_can_delete_it_while_another_has_it(queue):
    queue.send("a")
    ((_, _, first),) = queue.receive()
    wait(queue, VISIBILITY + 1)
    assert bodies(queue.receive()) == ["a"]
    queue.delete(first)
    wait(queue, VISIBILITY + 1)
    assert queue.receive() == []


def test_a_message_is_seen_when_its_delay_is_over_and_no_sooner(queue):
    queue.send("later", 300)
    queue.send("now")
    assert bodies(queue.receive()) == ["now"]
    wait(queue, 298)
    assert "later" not in bodies(queue.receive())
    wait(queue, 3)
    assert "later" in bodies(queue.receive())


def test_a_returned_message_is_redelivered_after_its_delay(queue):
    queue.send("a")
    queue.send("b")
    (_, _, a), (_, _, b) = queue.receive()
    queue.show_again(a, 5)
    queue.show_again(b, 600)
    wait(queue, 4)
    assert queue.receive() == []
    wait(queue, 2)
    assert [message[:2] for message in queue.receive()] == [("a", 2)]
    wait(queue, VISIBILITY + 1)
    assert bodies(queue.receive()) == ["a"]
    wait(queue, 600)
    assert bodies(queue.receive()) == ["b"]


def test_what_was_received_too_often_is_a_dead_letter_and_can_be_redriven(queue):
    queue.send("poison")
    for number in range(RECEIVES):
        queue.send(f"fine {number}")
        received = queue.receive()
        assert [message[:2] for message in received][-1] == ("poison", number + 1)
        queue.delete(received[0][2])
        assert queue.dead() == []
        wait(queue, VISIBILITY + 1)
    assert queue.receive() == []
    assert queue.dead() == ["poison"]
    assert queue.dead() == ["poison"]
    queue.redrive()
    assert queue.dead() == []
    assert [message[:2] for message in queue.receive()] == [("poison", 1)]


def test_no_more_than_ten_are_handed_over_at_once(queue):
    for number in range(12):
        queue.send(f"{number:02}")
    first, second = queue.receive(), queue.receive()
    assert (len(first), len(second)) == (10, 2)
    assert sorted(bodies(first + second)) == [f"{number:02}" for number in range(12)]


class Consumer:
    """Does what a story says with one queue, and keeps what it received."""

    def __init__(self, queue: Queue):
        self.queue = queue
        self.batches: list[list[tuple[str, int, str]]] = []
        self.sent = 0

    def do(self, action: str, number: int) -> None:
        received = [message for batch in self.batches for message in batch]
        newest = self.batches[-1] if self.batches else []
        if action == "send" and self.sent < 10:
            self.queue.send(f"{self.sent:02}", number)
            self.sent += 1
        elif action == "receive":
            self.batches.append(self.queue.receive())
        elif action == "delete" and received:
            self.queue.delete(received[number % len(received)][2])
        elif action == "again" and newest:
            self.queue.show_again(newest[number % len(newest)][2], 5)

    def received(self) -> list[list[tuple[str, int]]]:
        """Return the body of each message, and how often it was received by then."""
        return [[message[:2] for message in batch] for batch in self.batches]


STORIES = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.sampled_from([0, 0, 40])),
        st.tuples(st.just("wait"), st.sampled_from([1, 25, 61, 200])),
        st.tuples(st.just("receive"), st.just(0)),
        st.tuples(st.sampled_from(["delete", "again"]), st.integers(0, 8)),
    ),
    max_size=25,
)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STORIES)
def test_the_queue_in_memory_and_sqs_agree_on_any_story(sqs, clock, story):
    in_memory, in_sqs = Consumer(InMemory(clock)), Consumer(InSqs(sqs, clock))
    for action, number in story:
        clock_ahead = number if action == "wait" else 0
        wait(in_memory.queue, 0.01 + clock_ahead)
        for consumer in (in_memory, in_sqs):
            consumer.do(action, number)
        assert in_memory.received() == in_sqs.received()
        assert in_memory.queue.dead() == in_sqs.queue.dead()
