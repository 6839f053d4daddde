"""One schedule: the handlers that are deployed, over ports in memory, under a scheduler with a seed.

Whoever runs (a handler, an execution of the state machine) is a greenlet, and gives way at every call of a
port. There the scheduler may let somebody else go on, let the clock jump, kill the caller, or have the call
fail before or after it took effect. The same seed gives the same schedule.
"""

from __future__ import annotations

import io
import json
import logging
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from greenlet import getcurrent, greenlet

import functions.handlers.act
import functions.handlers.claim
import functions.handlers.commit
import functions.handlers.evaluate
import functions.handlers.finish_run
import functions.handlers.ingest
import functions.handlers.mark_published
import functions.handlers.notify
import functions.handlers.sweep
import functions.handlers.watch
import smdebug.storage
from functions import wiring
from functions.adapters.in_memory import MemoryItems, MemoryLender, MemoryObject, MemoryObjects
from functions.custom_rules import child, running
from functions.decisions.action_plan import Endpoints
from functions.decisions.messages import bucket_and_prefix
from functions.environment import IndexAccess
from functions.followup.action_outcomes import OutcomesInIndex
from functions.followup.actions import ActionPorts
from functions.followup.notifications import NotificationPorts
from functions.ports import TooMuch
from functions.step_index import StepIndex
from functions.world import World
from smdebug.exceptions import ObjectMissing, StorageUnavailable
from smdebug.logger import get_logger
from smdebug.storage.memory import MemoryStorage
from tests.functions.deployed_settings import KEPT_FOR, settings
from tests.simulation import state_machine
from tests.simulation.queues import MemoryQueue, Received
from tests.simulation.spy_rules import in_the_catalog
from tests.simulation.state_machine import TaskFailed
from tests.simulation.trainings import END, SOURCES, TOLD, Scenario, Writers

HANDLERS: dict[str, Callable[[Any, Any], Any]] = {
    "Ingest": functions.handlers.ingest.handler,
    "Evaluate": functions.handlers.evaluate.handler,
    "Claim": functions.handlers.claim.handler,
    "Commit": functions.handlers.commit.handler,
    "MarkPublished": functions.handlers.mark_published.handler,
    "FinishRun": functions.handlers.finish_run.handler,
    "Watch": functions.handlers.watch.handler,
    "Sweep": functions.handlers.sweep.handler,
    "Act": functions.handlers.act.handler,
    "Notify": functions.handlers.notify.handler,
}
TIMEOUTS = {"Evaluate": 120, "FinishRun": 120, "Sweep": 300, "RunCustomRule": 120}
VISIBILITY = 360.0
RECEIVED_AT_MOST = 5
EXECUTION = 280.0
SWEEP_EVERY = 300.0
BEGIN = 1_700_000_000.0
LONG_ENOUGH = 2 * 3600.0  # for everything to become quiet
SWEEPS_IN_VAIN = 4  # after which another one would find nothing, either
TRAINED_AGAIN = (3.0, 60.0, 700.0)  # seconds until a training goes on from its checkpoint
JUMPS = (0.05, 0.5, 3.0, 20.0, 140.0, 400.0)


class Killed(BaseException):
    """The process is gone."""


class NeverQuiet(AssertionError):
    """Work goes on and on."""


@dataclass(eq=False)
class Process:
    """A running environment of a function: one invocation at a time, warm caches from one to the next."""

    world: World
    told: Any = None  # the event that it was called with


@dataclass(frozen=True)
class Context:
    """What Lambda tells a function of the invocation: one that failed comes again under the same id."""

    aws_request_id: str


@dataclass(eq=False)
class Actor:
    """Somebody who runs."""

    name: str
    greenlet: greenlet
    process: Process | None = None
    wake_at: float = 0.0
    waits_for: Actor | None = None
    deadline: float = float("inf")
    is_abandoned: bool = False  # nobody listens any more
    is_killed: bool = False
    is_done: bool = False
    result: Any = None
    error: Exception | None = None


@dataclass
class Schedule:
    """What may happen, drawn from the seed."""

    seed: int
    faults: int = 0
    jumps: int = 0
    loses_notifications: bool = False
    sweeps: bool = False
    is_standard: bool = False  # a name of an execution cannot be used again
    is_orderly: bool = False

    @classmethod
    def drawn(cls, seed: int) -> Schedule:
        chance = random.Random(seed)
        sweeps = chance.random() < 0.4
        return cls(
            seed,
            faults=chance.choice((0, 1, 2, 4, 8)),
            jumps=chance.choice((0, 1, 3, 8)),
            sweeps=sweeps,
            loses_notifications=sweeps and chance.random() < 0.7,
            is_standard=chance.random() < 0.3,
        )

    @classmethod
    def orderly(cls) -> Schedule:
        """One thing after the other, and nothing goes wrong."""
        return cls(0, is_orderly=True)


@dataclass(eq=False)
class Simulation:
    """A stack, the trainings that save to it, and how it all went."""

    scenario: Scenario
    schedule: Schedule
    keeps_history: bool = False
    events: list[dict[str, Any]] = field(default_factory=list)
    history: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.schedule.seed * 7919 + 1)
        self.faults, self.jumps = self.schedule.faults, self.schedule.jumps
        self.clock = BEGIN
        self.items = MemoryItems()
        self.bucket = Bucket(self)
        self.dead_letters = MemoryQueue(self._now)
        self.queue = MemoryQueue(
            self._now,
            visibility=VISIBILITY,
            receives=RECEIVED_AT_MOST,
            dead_letters=self.dead_letters,
        )
        self.wakes: dict[str, float] = {}
        self.used_names: set[str] = set()
        self.actors: list[Actor] = []
        self.running: Actor | None = None
        self.idle: dict[str, list[Process]] = {}
        self.receiving = 0
        self.next_sweep = BEGIN + SWEEP_EVERY
        self.sweeps_in_vain = 0
        self.last_change = BEGIN
        self.expired_at = 0.0
        trainings = self.scenario.trainings
        self.writers = self._writers(*(one.files for one in trainings))
        self.changes = self._writers(*(one.changing_rules for one in trainings))
        self.resumed = self._writers(*(one.resumed_files for one in trainings))
        # Mostly what there was before has been evaluated by then.
        self.is_hasty = bool(self.resumed or self.changes) and self.chance.random() < 0.4
        self.ends = [one for one in trainings if one.ends]
        self.last_writers = self._writers(*(one.last_files for one in trainings))
        self.letters: list[tuple[str, str]] = []  # the id of an event, and who was told of it
        self.stopped_jobs: list[str] = []
        self.is_over = False
        self.main = getcurrent()
        self.bucket.write("/".join(SOURCES[:2]), SOURCES[2])

    def _now(self) -> float:
        return self.clock

    def _writers(self, *trainings: Writers) -> list[list[tuple[str, str, bytes]]]:
        """All writers, with what they put, the first of it last."""
        return [
            [(training.prefix, key, data) for key, data in reversed(files)]
            for training, writers in zip(self.scenario.trainings, trainings, strict=True)
            for files in writers
        ]

    # The scheduler

    def run(self) -> Simulation:
        """Until all is quiet."""
        with surroundings(self):
            for _ in range(200_000):
                self._expire()
                ready = self._ready()
                if ready:
                    chosen = 0 if self.schedule.is_orderly else self.chance.randrange(len(ready))
                    ready[chosen]()
                    if self.jumps and self.chance.random() < 0.03:
                        self.jumps -= 1
                        self.clock += self.chance.choice(JUMPS)
                elif not self._let_time_pass():
                    if not len(self.dead_letters):
                        return self
                    self._redrive()
        raise NeverQuiet(f"after {self.clock - BEGIN:.0f} s: {[one.name for one in self.actors]}")

    def _ready(self) -> list[Callable[[], Any]]:
        now = self.clock
        ready: list[Callable[[], Any]] = []
        for one in self.actors:
            other = one.waits_for
            if one.wake_at <= now if other is None else other.is_done or other.is_abandoned:
                ready.append(one.greenlet.switch)
        if self.receiving < 3 and self.queue.next_visible_at() <= now:
            ready.append(self._receive)
        if self.wakes and any(at <= now for at in self.wakes.values()):
            ready.append(self._wake)
        if self.schedule.sweeps and self.next_sweep <= now:
            ready.append(self._sweep)
        if ready and self.schedule.is_orderly:
            return ready
        may_change = self.is_hasty or not ready
        if self.changes and may_change:
            ready.append(self._change)
        if self.writers:
            ready.append(self._put)
        elif self.resumed:
            if may_change:
                ready.append(self._resume)
        elif self.changes:
            pass
        elif self.ends:
            ready.append(self._end)
        elif self.last_writers:
            ready.append(self._change_at_last)
        return ready

    def _let_time_pass(self) -> bool:
        times = [self.queue.next_visible_at(), *self.wakes.values()]
        for one in self.actors:
            times.append(one.deadline)
            if one.waits_for is None:
                times.append(one.wake_at)
        if self.schedule.sweeps and self.sweeps_in_vain < SWEEPS_IN_VAIN:
            times.append(self.next_sweep)
        following = min(times)
        if following > self.last_change + LONG_ENOUGH:
            return False
        self.clock = max(self.clock, following)
        return True

    def _expire(self) -> None:
        """A function that has run for too long: Lambda ends it, or believes that it has."""
        if self.expired_at == self.clock:
            return
        self.expired_at = self.clock
        for one in [one for one in self.actors if one.deadline <= self.clock]:
            one.deadline = float("inf")
            one.is_abandoned = True
            self.counts["deaths"] += 1
            if self.chance.random() < 0.6:
                self.note("timeout", one.name)
                one.is_killed = True
            else:
                self.note("zombie", one.name)
                one.wake_at += self.chance.choice(
                    (0, 5, 200, 700)
                )  # it goes on when nobody expects it

    # Those who run

    def spawn(self, name: str, what: Callable[[], Any], process: Process | None = None) -> Actor:
        def life() -> None:
            try:
                actor.result = what()
                self.pause()  # what was done may still be lost on the way back
                self._maybe_kill(actor)
            except Killed:
                actor.is_killed = True
            except TaskFailed as failure:
                self.note("execution failed", failure.error)
            except Exception as error:
                if process is None:  # no function, but the simulation itself
                    raise
                actor.error = error  # the caller is told
                self.note("error", actor.name, repr(error))
            actor.is_done = True
            self.actors.remove(actor)

        actor = Actor(name, greenlet(self._as_running(life), parent=self.main), process)
        actor.wake_at = self.clock
        self.actors.append(actor)
        return actor

    def _as_running(self, life: Callable[[], None]) -> Callable[[], None]:
        def run() -> None:
            self.running = self._current()
            life()

        return run

    def _current(self) -> Actor:
        here = getcurrent()
        return next(one for one in self.actors if one.greenlet is here)

    def pause(self, seconds: float = 0.0, waits_for: Actor | None = None) -> None:
        """Let others go on."""
        actor = self.running
        assert actor is not None
        if self.is_over:  # what is left of an actor is being taken away
            raise Killed
        actor.wake_at, actor.waits_for = self.clock + seconds, waits_for
        self.main.switch()
        self.running = actor
        actor.waits_for = None
        if actor.is_killed:
            raise Killed

    def invoke(self, function: str, event: Any, request: str = "") -> Actor:
        """Have a function of the stack called, by a process that is warm or cold."""
        self.counts["invocations"] += 1
        context = Context(request or f"request-{self.counts['invocations']}")
        idle = self.idle.setdefault(function, [])
        is_warm = idle and (self.schedule.is_orderly or self.chance.random() < 0.8)
        process = idle.pop() if is_warm else Process(self._world())
        process.told = event
        handler = HANDLERS.get(function) or self._run_custom_rule

        def work() -> Any:
            result = handler(event, context)
            idle.append(process)
            return result

        actor = self.spawn(function, work, process)
        actor.deadline = self.clock + TIMEOUTS.get(function, 60)
        self.note("invoke", function, event)
        return actor

    def _run_custom_rule(self, job: Any, context: object) -> dict[str, Any]:
        """Run the custom rule in this process: starting one each time would take too long."""
        heard = running.Heard(job)
        is_slow = not self.schedule.is_orderly and self.chance.random() < 0.3
        begun = time.monotonic() - (job["limits"]["work"] + 1 if is_slow else 0.0)
        try:
            child.work_off(job, _Straight(heard), begun)  # type: ignore[arg-type]
        except running.Died as death:
            heard.died = str(death)
        return heard.answer()

    # Faults

    def call(self, port: str, method: Callable[..., Any], arguments: Any, named: Any) -> Any:
        """A call of a port, and everything that may become of it."""
        self.pause()
        actor = self.running
        assert actor is not None
        self.counts["calls"] += 1
        fault = self._fault()
        if fault == "kill":
            self.note("kill before", actor.name, port, method.__name__, arguments)
            self.counts["deaths"] += 1
            actor.is_killed = True
            raise Killed
        if fault == "refused":  # the function ends in an error, with the lease in its hand
            self.counts["deaths"] += 1
            self.note("refused", actor.name, port, method.__name__)
            raise _failure(port)
        result = method(*arguments, **named)
        if fault == "repeated":  # of a lease, it looks as if somebody else had taken it
            self.counts["deaths"] += 1
            self.note("repeated", actor.name, port, method.__name__)
            result = method(*arguments, **named)
        if fault == "unanswered":
            self.counts["deaths"] += 1
            self.note("unanswered", actor.name, port, method.__name__)
            raise _failure(port)
        if self.keeps_history:
            self.note(actor.name, port, method.__name__, arguments, named)
        return result

    def _fault(self) -> str:
        if not self.faults or self.chance.random() > 0.03:
            return ""
        self.faults -= 1
        fault = self.chance.choice(("kill", "kill", "refused", "repeated", "unanswered"))
        self.counts[fault] += 1
        return fault

    def _maybe_kill(self, actor: Actor) -> None:
        if self.faults and self.chance.random() < 0.03:
            self.faults -= 1
            self.note("kill after", actor.name)
            self.counts["deaths"] += 1
            raise Killed

    # What happens in the stack

    def _put(self) -> None:
        """A worker puts its next file."""
        at = 0 if self.schedule.is_orderly else self.chance.randrange(len(self.writers))
        prefix, key, data = self.writers[at].pop()
        if not self.writers[at]:
            del self.writers[at]
        self._write(prefix, key, data)

    def _change(self) -> None:
        """Somebody changes the rules."""
        self._write(*self.changes[0].pop())
        if not self.changes[0]:
            del self.changes[0]

    def _resume(self) -> None:
        """The training is started again, from its checkpoint: that takes a moment."""
        self.clock += TRAINED_AGAIN[0] if self.schedule.is_orderly else self._chosen(TRAINED_AGAIN)
        self.writers, self.resumed = self.resumed, []
        self._put()

    def _change_at_last(self) -> None:
        """Somebody changes the rules of a run that has ended."""
        if not self.schedule.is_orderly:
            self.clock += self._chosen((0.0, 5.0, 100.0, 1000.0))
        self.writers, self.last_writers = self.last_writers, []
        self._put()

    def _chosen(self, among: tuple[float, ...]) -> float:
        return self.chance.choice(among)

    def _end(self) -> None:
        """The chief puts the end marker, after the others."""
        self._write(self.ends.pop().prefix, *END)

    def _write(self, prefix: str, key: str, data: bytes) -> None:
        self.last_change = self.clock
        self.sweeps_in_vain = 0
        told = self.bucket.put(prefix, key, data)
        lost = self.schedule.loses_notifications and self.chance.random() < 0.15
        self.note("put", key, "(notification lost)" if lost else "")
        if lost:
            return
        copies = 1 if self.schedule.is_orderly or self.chance.random() > 0.1 else 2
        for _ in range(copies):
            late = 0.0 if self.schedule.is_orderly else self.chance.choice((0, 0, 0, 0.2, 2, 30))
            self.send(told, late)

    def send(self, body: str, delay: float) -> None:
        self.sweeps_in_vain = 0
        self.queue.send(body, delay)

    def _receive(self) -> None:
        """Lambda receives a batch from the queue and calls ingest with it."""
        visible = self.queue.visible()
        if not self.schedule.is_orderly:
            self.chance.shuffle(visible)
            visible = visible[: self.chance.choice((1, 2, 10))]
        dead = len(self.dead_letters)
        batch = self.queue.receive(visible)
        if len(self.dead_letters) > dead:
            self.counts["dead letters"] += len(self.dead_letters) - dead
            self.note("dead letters", len(self.dead_letters))
        if batch:
            self.receiving += 1
            self.spawn("queue", lambda: self._hand_over(batch))

    def _hand_over(self, batch: list[Received]) -> None:
        records = [
            {
                "messageId": one.id,
                "body": one.body,
                "attributes": {"ApproximateReceiveCount": str(one.received)},
            }
            for one in batch
        ]
        called = self.invoke("Ingest", {"Records": records})
        self.pause(waits_for=called)
        self.receiving -= 1
        if not called.is_done or called.is_killed or called.error:
            return  # all are seen again when they become visible
        failed = {one["itemIdentifier"] for one in called.result["batchItemFailures"]}
        was_lost = self.faults and self.chance.random() < 0.02
        for message in batch:
            if message.id in failed:
                self.queue.show_again(message.receipt, 1)
            elif not was_lost:
                self.queue.delete(message.receipt)

    def _redrive(self) -> None:
        """Somebody has heard the alarm."""
        self.counts["redriven"] += 1
        if self.counts["redriven"] > 3:
            raise NeverQuiet("what was redriven became dead letters again, and again")
        self.faults = 0
        self.dead_letters.redrive(self.queue)
        self.last_change = self.clock

    def _wake(self) -> None:
        run = min(self.wakes, key=lambda one: self.wakes[one])
        del self.wakes[run]
        self.sweeps_in_vain = 0
        self.spawn("scheduler", lambda: self._retried("Watch", {"run": run}))

    def _sweep(self) -> None:
        self.next_sweep = self.clock + SWEEP_EVERY

        def sweep() -> None:
            told = self._retried("Sweep", {})
            self.sweeps_in_vain = self.sweeps_in_vain + 1 if told == {"missed": 0} else 0

        self.spawn("rule", sweep)

    def _retried(self, function: str, event: Any) -> Any:
        """An asynchronous invocation: tried three times."""
        self.counts["asked"] += 1
        request = f"asked-{self.counts['asked']}"
        for _ in range(3):
            called = self.invoke(function, event, request)
            self.pause(waits_for=called)
            if called.is_done and not called.is_killed and not called.error:
                return called.result or {}
            self.pause(60)
        self.note("given up", function, event)
        return None

    # The bus

    def put_events(self, entries: list[Mapping[str, Any]]) -> None:
        """Whoever listens is told of each at least once, in any order."""
        self.events += [dict(one) for one in entries]
        if not self.scenario.has_listeners:
            return
        for entry in entries:
            self.counts["put"] += 1
            event = {
                "id": f"event-{self.counts['put']}",
                "detail-type": entry["DetailType"],
                "detail": json.loads(entry["Detail"]),
            }
            self._tell("Notify", event)
            if event["detail"].get("has_actions"):
                self._tell("Act", event)

    def _tell(self, function: str, event: Any) -> None:
        copies = 1 if self.schedule.is_orderly or self.chance.random() > 0.2 else 2
        for _ in range(copies):
            late = 0.0 if self.schedule.is_orderly else self.chance.choice((0, 0, 1, 40))
            self.spawn("bus", lambda late=late: self._deliver(function, event, late))

    def _deliver(self, function: str, event: Any, late: float) -> None:
        """What nobody takes in three times is a dead letter, is told by an alarm and sent again."""
        self.pause(late)
        while self._retried(function, event) is None:
            self.counts["dead letters"] += 1
            self.pause(600)

    def start(self, name: str, told: Mapping[str, Any]) -> None:
        """Of the state machine. Standard knows each name once; Express starts another each time."""
        if name in (self.used_names if self.schedule.is_standard else ()):
            return
        self.used_names.add(name)
        plain = json.loads(json.dumps(told))
        actor = self.spawn("execution", lambda: state_machine.execute(plain, Execution(self)))
        actor.deadline = self.clock + EXECUTION

    # The ports

    def _world(self) -> World:
        def port(name: str, real: Any) -> Any:
            return Port(self, name, real)

        return World(
            index=StepIndex(port("table", self.items), kept_for=KEPT_FOR, now=lambda: self.clock),
            objects=port("bucket", self.bucket),
            workflow=port("workflow", _Workflow(self)),
            checks=port("queue", _Checks(self)),
            schedules=port("schedules", _Schedules(self)),
            clock=_Clock(self),
            open_run=lambda run: Place(self, bucket_and_prefix(run)[1].rstrip("/")),  # type: ignore[arg-type,return-value]
            lender=MemoryLender(),
            settings=settings(default_rules=(), sandbox="RunCustomRule"),
        )

    def action_ports(self) -> ActionPorts:
        """What the function that acts has been given."""
        return ActionPorts(
            jobs=Port(self, "jobs", _Jobs(self)),  # type: ignore[arg-type]
            control=Port(self, "control", _Control(self)),  # type: ignore[arg-type]
            topic=Port(self, "topic", _Topic(self)),  # type: ignore[arg-type]
            outcomes=OutcomesInIndex(Port(self, "table", self.items)),  # type: ignore[arg-type]
            checks=Port(self, "queue", _Checks(self)),  # type: ignore[arg-type]
            clock=_Clock(self),
            endpoints=Endpoints(emails=(TOLD,)),
        )

    def notification_ports(self) -> NotificationPorts:
        """What the function that tells people has been given."""
        return NotificationPorts(
            Port(self, "topic", _Topic(self)),  # type: ignore[arg-type]
            Port(self, "table", self.items),  # type: ignore[arg-type]
            _Clock(self),
        )

    def note(self, *told: Any) -> None:
        if self.keeps_history:
            words = " ".join(str(one)[:300] for one in told)
            self.history.append(f"{self.clock - BEGIN:9.2f} {words}")

    @property
    def index(self) -> StepIndex:
        """What the table holds, for whoever looks at it afterwards."""
        return StepIndex(self.items, kept_for=KEPT_FOR, now=lambda: self.clock)

    @property
    def outcomes(self) -> OutcomesInIndex:
        """What became of actions, for whoever looks at it afterwards."""
        return OutcomesInIndex(self.items)

    def details(self, detail_type: str) -> list[dict[str, Any]]:
        return [
            json.loads(one["Detail"]) for one in self.events if one["DetailType"] == detail_type
        ]


class _Straight:
    """Takes what a rule answers to whoever hears it, without a pipe."""

    def __init__(self, heard: running.Heard):
        self._heard = heard
        self.written = 0

    def give(self, answer: Mapping[str, Any]) -> None:
        line = json.dumps(answer, allow_nan=False).encode() + b"\n"
        self.written += len(line)
        self._heard.take(line)


class Execution:
    """What one execution of the state machine asks of the stack."""

    def __init__(self, simulation: Simulation):
        self._simulation = simulation

    def invoke(self, function: str, payload: Any) -> Any:
        called = self._simulation.invoke(function, payload)
        self._simulation.pause(waits_for=called)
        if not called.is_done or called.is_abandoned:
            raise TaskFailed("Sandbox.Timedout")
        if called.is_killed:
            raise TaskFailed("Runtime.ExitError")
        if called.error is not None:
            raise TaskFailed(type(called.error).__name__)
        return json.loads(json.dumps(called.result))

    def send(self, message: Any, delay: float) -> None:
        self._simulation.pause()
        self._simulation.send(json.dumps(message), delay)

    def put_events(self, entries: list[Mapping[str, Any]]) -> None:
        self._simulation.pause()
        self._simulation.put_events(entries)
        self._simulation.pause()

    def sleep(self, seconds: float) -> None:
        self._simulation.pause(seconds)


class Port:
    """A port at every call of which something may happen."""

    def __init__(self, simulation: Simulation, name: str, real: Any):
        self._simulation = simulation
        self._name = name
        self._real = real

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._real, name)

        def call(*arguments: Any, **named: Any) -> Any:
            return self._simulation.call(self._name, real, arguments, named)

        setattr(self, name, call)
        return call


class Bucket:
    """Where trainings save to."""

    def __init__(self, simulation: Simulation):
        self._simulation = simulation
        self._objects = MemoryObjects()
        self._written = 0

    def put(self, prefix: str, key: str, data: bytes) -> str:
        """Write an object; what S3 tells of it."""
        full = f"{prefix}/{key}"
        self.write(full, data)
        self._written += 1
        told = {
            "eventName": "ObjectCreated:Put",
            "eventTime": datetime.fromtimestamp(self._simulation.clock, UTC).isoformat(),
            "s3": {
                "bucket": {"name": "runs"},
                "object": {"key": full, "sequencer": f"{self._written:016X}"},
            },
        }
        return json.dumps({"Records": [told]})

    def read(self, bucket: str, key: str) -> bytes:
        return self._objects.read(bucket, key)

    def write(self, key: str, data: bytes) -> None:
        self._objects.write("runs", key, data, self._simulation.clock)

    def list(self, bucket: str, prefix: str, after: str | None = None) -> list[MemoryObject]:
        return [*self._objects.list(bucket, prefix, after)]


class Place(MemoryStorage):
    """The prefix of one run, as the storage that functions open."""

    def __init__(self, simulation: Simulation, prefix: str):
        super().__init__(prefix)
        self._simulation = simulation
        self._prefix = prefix

    @property
    def location(self) -> str:
        return f"s3://runs/{self._prefix}"

    def read(self, key: str, span: Any = None) -> bytes:
        data: bytes = self._call(self._simulation.bucket.read, "runs", f"{self._prefix}/{key}")
        return data if span is None else data[span[0] : span[1]]

    def size(self, key: str) -> int:
        return len(self.read(key))

    def exists(self, key: str) -> bool:
        try:
            self.read(key)
        except ObjectMissing:
            return False
        return True

    def write(self, key: str, data: Any) -> None:
        self._call(self._simulation.bucket.write, f"{self._prefix}/{key}", bytes(data))

    def list(self, prefix: str = "", after: str | None = None) -> Iterator[str]:
        start = f"{self._prefix}/"
        listed = self._call(
            self._simulation.bucket.list, "runs", start + prefix, after and start + after
        )
        return (one.key.removeprefix(start) for one in listed)

    def _call(self, method: Callable[..., Any], *arguments: Any) -> Any:
        return self._simulation.call("storage", method, arguments, {})


@dataclass
class _Workflow:
    simulation: Simulation

    def start(self, name: str, told: Mapping[str, Any]) -> None:
        self.simulation.start(name, told)


@dataclass
class _Checks:
    simulation: Simulation

    def leave(self, message: Mapping[str, Any], *, after_seconds: int) -> None:
        self.simulation.send(json.dumps(message), after_seconds)


@dataclass
class _Schedules:
    simulation: Simulation

    def wake(self, run: str, *, at: float) -> None:
        self.simulation.wakes[run] = at


@dataclass
class _Clock:
    simulation: Simulation

    def now(self) -> float:
        return self.simulation.clock


@dataclass
class _Jobs:
    """SageMaker, where the first run's training job is in progress."""

    simulation: Simulation

    def in_progress(self, prefix: str) -> list[str]:
        return [one.prefix for one in self.simulation.scenario.trainings][:1]

    def stop(self, name: str) -> None:
        self.simulation.stopped_jobs.append(name)


@dataclass
class _Control:
    simulation: Simulation

    def write_stop(self, run: str, body: bytes) -> None:
        self.simulation.bucket.write(f"{bucket_and_prefix(run)[1]}control/stop", body)


@dataclass
class _Topic:
    simulation: Simulation

    def publish(self, *, subject: str, email: str, sms: str, to: str | None = None) -> None:
        actor = self.simulation.running
        assert actor is not None
        assert actor.process is not None
        about = actor.process.told["detail"]
        self.simulation.letters.append((about.get("id", subject), to or "everybody"))
        self.simulation.note("letter", to, subject)


def _failure(port: str) -> Exception:
    if port in ("storage", "bucket"):
        return StorageUnavailable("s3://runs", "the simulation says so")
    return TooMuch(f"{port}: the simulation says so")


class _Nowhere(io.TextIOBase):
    def write(self, text: str) -> int:
        return len(text)


@contextmanager
def surroundings(simulation: Simulation) -> Iterator[None]:
    """The handlers find this stack where they look for theirs, and the spies among the built-in rules."""

    def world(environment: type[IndexAccess]) -> World:
        assert simulation.running is not None
        assert simulation.running.process is not None
        return simulation.running.process.world

    def opened(location: str) -> Place:
        return Place(simulation, bucket_and_prefix(location.removeprefix("s3://"))[1].rstrip("/"))

    instead = (
        (wiring, "world", world),
        (wiring, "action_ports", simulation.action_ports),
        (wiring, "notification_ports", simulation.notification_ports),
        (smdebug.storage, "open_storage", opened),
    )
    before = [(place, name, getattr(place, name)) for place, name, _ in instead]
    for place, name, ours in instead:
        setattr(place, name, ours)
    logger = get_logger()
    handlers, level = logger.handlers, logger.level
    logger.handlers, logger.level = [logging.NullHandler()], logging.CRITICAL
    try:
        with in_the_catalog(), redirect_stdout(_Nowhere()), redirect_stderr(_Nowhere()):
            yield
    finally:
        simulation.is_over = True
        for place, name, theirs in before:
            setattr(place, name, theirs)
        sys.modules.pop("custom_rule", None)
        logger.handlers, logger.level = handlers, level
        logger.manager._clear_cache()  # type: ignore[attr-defined]
        for actor in simulation.actors:
            actor.is_killed = True
