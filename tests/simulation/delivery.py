"""How messages, events and schedules reach the functions of the simulated stack."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from math import ceil
from typing import TYPE_CHECKING, Any

from tests.simulation.limits import accept_message
from tests.simulation.queues import MemoryQueue, Received
from tests.simulation.scheduler import BEGIN, NeverQuiet

if TYPE_CHECKING:
    from tests.simulation.stack import Stack

VISIBILITY = 30.0
RECEIVED_AT_MOST = 60
SWEEP_EVERY = 300.0
SWEEPS_IN_VAIN = 4  # after which another would find nothing either


class Delivery:
    """The queue, the bus and the schedules, each at least once and in any order."""

    def __init__(self, simulation: Stack):
        self._simulation = simulation
        self.dead_letters = MemoryQueue(simulation.now)
        self.queue = MemoryQueue(
            simulation.now,
            visibility=VISIBILITY,
            receives=RECEIVED_AT_MOST,
            dead_letters=self.dead_letters,
        )
        self.wakes: dict[str, float] = {}
        self.planned: list[tuple[float, str]] = []  # messages of one-shot schedules
        self.sweeps_in_vain = 0
        self._receiving = 0
        self._next_sweep = BEGIN + SWEEP_EVERY

    def possible(self) -> list[Callable[[], None]]:
        """Return what can be delivered now."""
        now = self._simulation.clock
        possible: list[Callable[[], None]] = []
        if self._receiving < 3 and self.queue.next_visible_at() <= now:
            possible.append(self._receive)
        if self.wakes and any(at <= now for at in self.wakes.values()):
            possible.append(self._wake)
        if self.planned and min(self.planned)[0] <= now:
            possible.append(self._fire)
        if self._simulation.schedule.sweeps and self._next_sweep <= now:
            possible.append(self._sweep)
        return possible

    def times(self) -> list[float]:
        """Return when something will be delivered."""
        planned = (at for at, _ in self.planned)
        times = [self.queue.next_visible_at(), *self.wakes.values(), *planned]
        if self._simulation.schedule.sweeps and self.sweeps_in_vain < SWEEPS_IN_VAIN:
            times.append(self._next_sweep)
        return times

    def send(self, body: str, delay: float) -> None:
        """Put a message into the queue."""
        accept_message(body)
        self.sweeps_in_vain = 0
        self.queue.send(body, delay)

    def plan(self, message: Mapping[str, Any], after: float) -> None:
        """Create a schedule, unless it exists; the service fires it within a minute."""
        self.sweeps_in_vain = 0
        simulation = self._simulation
        late = 0.0 if simulation.schedule.is_orderly else simulation.chance.choice((0, 0, 30, 60))
        entry = (float(ceil(simulation.clock + after)) + late, json.dumps(message))
        if entry not in self.planned:
            self.planned.append(entry)

    def redrive(self) -> None:
        """Move the dead letters back to the queue, as an operator would after the alarm."""
        simulation = self._simulation
        simulation.counts["redriven"] += 1
        if simulation.counts["redriven"] > 3:
            raise NeverQuiet("redriven messages became dead letters again and again")
        simulation.faults = 0
        self.dead_letters.redrive(self.queue)
        simulation.last_change = simulation.clock

    def publish(self, entries: list[Mapping[str, Any]]) -> None:
        """Deliver events of the bus to their listeners."""
        simulation = self._simulation
        for entry in entries:
            simulation.counts["put"] += 1
            event = {
                "id": f"event-{simulation.counts['put']}",
                "detail-type": entry["DetailType"],
                "detail": json.loads(entry["Detail"]),
            }
            self._deliver_copies("Notify", event)
            if event["detail"].get("has_actions"):
                self._deliver_copies("Act", event)

    # The queue

    def _receive(self) -> None:
        """Receive a batch from the queue and call ingest with it, as Lambda does."""
        simulation = self._simulation
        visible = self.queue.visible()
        if not simulation.schedule.is_orderly:
            simulation.chance.shuffle(visible)
            visible = visible[: simulation.chance.choice((1, 2, 10))]
        dead = len(self.dead_letters)
        batch = self.queue.receive(visible)
        if len(self.dead_letters) > dead:
            simulation.counts["dead letters"] += len(self.dead_letters) - dead
            simulation.note("dead letters", len(self.dead_letters))
        if batch:
            self._receiving += 1
            simulation.spawn("queue", lambda: self._hand_over(batch))

    def _hand_over(self, batch: list[Received]) -> None:
        simulation = self._simulation
        records = [
            {
                "messageId": message.id,
                "body": message.body,
                "attributes": {"ApproximateReceiveCount": str(message.received)},
            }
            for message in batch
        ]
        called = simulation.invoke("Ingest", {"Records": records})
        simulation.pause(waits_for=called)
        self._receiving -= 1
        if not called.is_done or called.is_killed or called.error:
            return  # all become visible again
        failed = {failure["itemIdentifier"] for failure in called.result["batchItemFailures"]}
        was_lost = simulation.faults and simulation.chance.random() < 0.02
        for message in batch:
            if message.id in failed:
                self.queue.show_again(message.receipt, 1)
            elif not was_lost:
                self.queue.delete(message.receipt)

    # Schedules

    def _wake(self) -> None:
        run = min(self.wakes, key=lambda run: self.wakes[run])
        del self.wakes[run]
        self.sweeps_in_vain = 0
        self._simulation.spawn("scheduler", lambda: self._invoke_asynchronously("Watch", {"run": run}))

    def _fire(self) -> None:
        entry = min(self.planned)
        self.planned.remove(entry)
        self.sweeps_in_vain = 0
        event = json.loads(entry[1])
        simulation = self._simulation
        copies = 1 if simulation.schedule.is_orderly or simulation.chance.random() > 0.1 else 2
        for _ in range(copies):
            simulation.spawn("scheduler", lambda: self._deliver("Watch", event, 0.0))

    def _sweep(self) -> None:
        self._next_sweep = self._simulation.clock + SWEEP_EVERY

        def sweep() -> None:
            result = self._invoke_asynchronously("Sweep", {})
            self.sweeps_in_vain = self.sweeps_in_vain + 1 if result == {"missed": 0} else 0

        self._simulation.spawn("rule", sweep)

    # The bus

    def _deliver_copies(self, function: str, event: Any) -> None:
        simulation = self._simulation
        is_orderly = simulation.schedule.is_orderly
        copies = 1 if is_orderly or simulation.chance.random() > 0.2 else 2
        for _ in range(copies):
            late = 0.0 if is_orderly else simulation.chance.choice((0, 0, 1, 40))
            simulation.spawn("bus", lambda late=late: self._deliver(function, event, late))

    def _deliver(self, function: str, event: Any, late: float) -> None:
        """Deliver an event; what fails three times becomes a dead letter and is sent again."""
        self._simulation.pause(late)
        while self._invoke_asynchronously(function, event) is None:
            self._simulation.counts["dead letters"] += 1
            self._simulation.pause(600)

    def _invoke_asynchronously(self, function: str, event: Any) -> Any:
        """Invoke a function up to three times; return its result, or None if all failed."""
        simulation = self._simulation
        simulation.counts["asked"] += 1
        request = f"asked-{simulation.counts['asked']}"
        for _ in range(3):
            called = simulation.invoke(function, event, request)
            simulation.pause(waits_for=called)
            if called.is_done and not called.is_killed and not called.error:
                return called.result or {}
            simulation.pause(60)
        simulation.note("given up", function, event)
        return None
