"""A sink never delays whoever delivers to it, and what it lost is said once, with the remedy."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from smdebug.exceptions import SinkRefused, SinkUnavailable
from smdebug.sinks.delivery import Delivery
from smdebug.sinks.records import NumbersRecord, Record, RunRecord
from tests.sinks.made import DIAGNOSIS, OPENED, RUN

SECONDS = 30.0  # until a test gives up; none waits so long


class Tool:
    """A sink that does what a test says."""

    place = "Tool at http://host"

    def __init__(self, *errors: Exception | None, gate: threading.Event | None = None):
        self.notes: list[str] = []
        self.received: list[Record] = []
        self.ends: list[bool] = []
        self.is_asked = threading.Event()
        self.has_received = threading.Event()
        self._errors = list(errors)
        self._gate = gate

    def begin(self, run: RunRecord) -> None:
        self._answer()

    def send(self, records: Sequence[Record]) -> None:
        self._answer()
        self.received += records
        self.has_received.set()

    def end(self, *, is_complete: bool = True) -> None:
        self.ends.append(is_complete)

    def _answer(self) -> None:
        self.is_asked.set()
        if self._gate is not None:
            assert self._gate.wait(SECONDS)
        if self._errors and (error := self._errors.pop(0)) is not None:
            raise error


def numbers(step: int, count: int = 1) -> NumbersRecord:
    return NumbersRecord(step, "training", None, {f"n{place}": float(step) for place in range(count)})


def delivery_to(tool: Tool, said: list[str], **options: int) -> Delivery:
    return Delivery(tool, RUN, said.append, again="smdebug export tool a", first_pause=0.0, **options)


def test_everything_arrives_in_order_and_nothing_is_said():
    tool, said = Tool(), []
    delivery = delivery_to(tool, said)
    records = [numbers(step) for step in range(50)]
    for record in records:
        delivery.put([record])
    delivery.put([OPENED, DIAGNOSIS])
    assert delivery.finish(SECONDS)
    assert tool.received == [*records, OPENED, DIAGNOSIS]
    assert tool.ends == [True]
    assert said == []


def test_a_tool_that_hangs_delays_nobody_and_its_loss_is_said_once():
    gate = threading.Event()
    tool, said = Tool(gate=gate), []
    delivery = delivery_to(tool, said)
    for step in range(1000):
        delivery.put([numbers(step)])
    delivery.put([OPENED, DIAGNOSIS])
    assert tool.is_asked.wait(SECONDS)
    assert not delivery.finish(0.0)
    assert said == [
        "smdebug: Tool at http://host: 1,000 numbers, 1 message about a problem and the diagnosis did not "
        "arrive: it has not answered in time. The run has all of it. Send it again: smdebug export tool a"
    ]
    gate.set()


def test_what_hangs_on_its_way_counts_as_lost():
    gate = threading.Event()

    class Hanging(Tool):
        def send(self, records: Sequence[Record]) -> None:
            self.has_received.set()
            assert gate.wait(SECONDS)

    tool, said = Hanging(), []
    delivery = delivery_to(tool, said)
    delivery.put([OPENED])
    assert tool.has_received.wait(SECONDS)
    delivery.put([numbers(0)])
    assert not delivery.finish(0.0)
    assert "1 message about a problem and 1 number did not arrive" in said[0]
    gate.set()


def test_the_oldest_numbers_make_room_and_problems_never_do():
    gate = threading.Event()
    tool, said = Tool(gate=gate), []
    delivery = delivery_to(tool, said, most_numbers=30)
    assert tool.is_asked.wait(SECONDS)  # `begin` waits, so nothing is taken from the queue
    delivery.put([OPENED])
    for step in range(10):
        delivery.put([numbers(step, 10)])
    gate.set()
    assert not delivery.finish(SECONDS)
    assert tool.received == [OPENED, *(numbers(step, 10) for step in (7, 8, 9))]
    assert len(said) == 1
    assert "70 numbers did not arrive" in said[0]


def test_a_tool_that_is_down_for_a_while_gets_everything_and_is_mentioned_once():
    down = SinkUnavailable("Tool", "it cannot be reached")
    tool, said = Tool(down, down, down, None, down), []
    delivery = delivery_to(tool, said)
    delivery.put([numbers(0), OPENED])
    assert tool.has_received.wait(SECONDS)
    assert delivery.finish(SECONDS)
    assert tool.received == [numbers(0), OPENED]
    assert said[0] == "smdebug: Tool at http://host: it cannot be reached. It is tried again"
    assert len(said) == 2  # once when it began, once when it sent


def test_a_refusal_ends_the_delivery_and_counts_what_came_later_too():
    tool, said = Tool(None, SinkRefused("Tool", "it refuses the credentials")), []
    delivery = delivery_to(tool, said)
    delivery.put([numbers(0, 5)])
    delivery._thread.join(SECONDS)
    delivery.put([numbers(1, 5), OPENED])
    assert not delivery.finish(SECONDS)
    assert said == [
        "smdebug: Tool at http://host: it refuses the credentials. Nothing more is sent; "
        "the training continues",
        "smdebug: Tool at http://host: 10 numbers and 1 message about a problem did not arrive. "
        "The run has all of it. Send it again: smdebug export tool a",
    ]


def test_a_defect_of_the_tool_is_named_and_stays_in_its_thread():
    tool, said = Tool(ZeroDivisionError("no rows")), []
    delivery = delivery_to(tool, said)
    delivery.put([numbers(0)])
    assert not delivery.finish(SECONDS)
    assert said[0].startswith("smdebug: Tool at http://host: ZeroDivisionError: no rows")
    assert "1 number did not arrive" in said[1]
    assert len(said) == 2


def test_a_tool_that_is_down_at_the_end_is_asked_once_more_and_then_given_up():
    down = SinkUnavailable("Tool", "it cannot be reached")
    tool, said = Tool(None, *[down] * 100_000), []
    delivery = Delivery(tool, RUN, said.append, again="again", first_pause=SECONDS)
    delivery.put([OPENED])
    assert not delivery.finish(SECONDS)
    assert any("1 message about a problem did not arrive" in text for text in said)


def test_a_tool_that_was_away_and_hangs_at_the_end_keeps_its_reason():
    gate = threading.Event()

    class Away(Tool):
        def begin(self, run: RunRecord) -> None:
            if self.is_asked.is_set():
                self.has_received.set()
                assert gate.wait(SECONDS)
            self.is_asked.set()
            raise SinkUnavailable("Tool", "it answers too slowly")

    tool, said = Away(), []
    delivery = delivery_to(tool, said)
    delivery.put([OPENED, OPENED])
    assert tool.has_received.wait(SECONDS)
    assert not delivery.finish(0.0)
    assert "2 messages about problems did not arrive: it answers too slowly. The run" in said[1]
    gate.set()


def test_what_arrived_otherwise_is_said_at_the_end_without_secrets():
    tool, said = Tool(), []
    tool.notes.append("Tool took https://me:hunter2hunter2@host for the address")
    assert delivery_to(tool, said).finish(SECONDS)
    assert len(said) == 1
    assert "hunter2" not in said[0]


def test_an_interrupted_run_is_ended_as_incomplete():
    tool, said = Tool(), []
    assert delivery_to(tool, said).finish(SECONDS, is_complete=False)
    assert tool.ends == [False]
    assert said == []
