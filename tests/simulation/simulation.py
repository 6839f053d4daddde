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
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from greenlet import getcurrent, greenlet

import functions.evaluate
import functions.finish_run
import functions.ingest
import functions.mark_published
import functions.sweep
import functions.watch
from functions import wiring
from functions.adapters.in_memory import MemoryItems, MemoryLender
from functions.decisions.arrivals import bucket_and_prefix
from functions.ports import TooMuch
from functions.step_index import StepIndex
from functions.world import Settings, World
from smdebug.exceptions import ObjectMissing, StorageUnavailable
from smdebug.logger import get_logger
from smdebug.storage.memory import MemoryStorage
from tests.simulation import state_machine
from tests.simulation.spy_rules import in_the_catalog
from tests.simulation.state_machine import TaskFailed
from tests.simulation.trainings import END, Scenario

HANDLERS: dict[str, Callable[[Any, Any], Any]] = {
    "Ingest": functions.ingest.handler,
    "Evaluate": functions.evaluate.handler,
    "MarkPublished": functions.mark_published.handler,
    "FinishRun": functions.finish_run.handler,
    "Watch": functions.watch.handler,
    "Sweep": functions.sweep.handler,
}
TIMEOUTS = {"Evaluate": 120, "FinishRun": 120, "Sweep": 300}
VISIBILITY = 360.0
RECEIVED_AT_MOST = 5
EXECUTION = 280.0
SWEEP_EVERY = 300.0
BEGIN = 1_700_000_000.0
LONG_ENOUGH = 2 * 3600.0  # for everything to become quiet
JUMPS = (0.05, 0.5, 3.0, 20.0, 140.0, 400.0)


class Killed(BaseException):
    """The process is gone."""


class NeverQuiet(AssertionError):
    """Work goes on and on."""


@dataclass(eq=False)
class Process:
    """A running environment of a function: one invocation at a time, warm caches from one to the next."""

    world: World


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


@dataclass(eq=False)
class Message:
    id: str
    body: str
    visible_at: float
    received: int = 0


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
        self.queue: list[Message] = []
        self.dead_letters: list[Message] = []
        self.wakes: dict[str, float] = {}
        self.used_names: set[str] = set()
        self.actors: list[Actor] = []
        self.running: Actor | None = None
        self.idle: dict[str, list[Process]] = {}
        self.receiving = 0
        self.next_sweep = BEGIN + SWEEP_EVERY
        self.last_change = BEGIN
        self.writers = [
            list(reversed(files)) for one in scenario_files(self.scenario) for files in one
        ]
        self.ends = [one for one in self.scenario.trainings if one.ends]
        self.main = getcurrent()

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
                    if not self.dead_letters:
                        return self
                    self._redrive()
        raise NeverQuiet(f"after {self.clock - BEGIN:.0f} s: {[one.name for one in self.actors]}")

    def _ready(self) -> list[Callable[[], Any]]:
        now = self.clock
        ready: list[Callable[[], Any]] = [
            one.greenlet.switch
            for one in self.actors
            if (one.waits_for is None and one.wake_at <= now)
            or (one.waits_for is not None and (one.waits_for.is_done or one.waits_for.is_abandoned))
        ]
        if self.receiving < 3 and any(one.visible_at <= now for one in self.queue):
            ready.append(self._receive)
        if any(at <= now for at in self.wakes.values()):
            ready.append(self._wake)
        if self.schedule.sweeps and self.next_sweep <= now:
            ready.append(self._sweep)
        if ready and self.schedule.is_orderly:
            return ready
        if self.writers:
            ready.append(self._put)
        elif self.ends:
            ready.append(self._end)
        return ready

    def _let_time_pass(self) -> bool:
        times = [one.wake_at for one in self.actors if one.waits_for is None]
        times += [one.deadline for one in self.actors]
        times += [one.visible_at for one in self.queue]
        times += self.wakes.values()
        if self.schedule.sweeps:
            times.append(self.next_sweep)
        following = min(times, default=float("inf"))
        if following > self.last_change + LONG_ENOUGH:
            return False
        self.clock = max(self.clock, following)
        return True

    def _expire(self) -> None:
        """A function that has run for too long: Lambda ends it, or believes that it has."""
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
        actor.wake_at, actor.waits_for = self.clock + seconds, waits_for
        self.main.switch()
        self.running = actor
        actor.waits_for = None
        if actor.is_killed:
            raise Killed

    def invoke(self, function: str, event: Any) -> Actor:
        """Have a function of the stack called, by a process that is warm or cold."""
        idle = self.idle.setdefault(function, [])
        is_warm = idle and (self.schedule.is_orderly or self.chance.random() < 0.8)
        process = idle.pop() if is_warm else Process(self._world())

        def work() -> Any:
            result = HANDLERS[function](event, None)
            idle.append(process)
            return result

        actor = self.spawn(function, work, process)
        actor.deadline = self.clock + TIMEOUTS.get(function, 60)
        self.note("invoke", function, event)
        return actor

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

    def _end(self) -> None:
        """The chief puts the end marker, after the others."""
        self._write(self.ends.pop().prefix, *END)

    def _write(self, prefix: str, key: str, data: bytes) -> None:
        self.last_change = self.clock
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
        self.queue.append(Message(f"m{self.counts['messages']}", body, self.clock + delay))
        self.counts["messages"] += 1

    def _receive(self) -> None:
        """Lambda receives a batch from the queue and calls ingest with it."""
        visible = [one for one in self.queue if one.visible_at <= self.clock]
        if not self.schedule.is_orderly:
            self.chance.shuffle(visible)
            visible = visible[: self.chance.choice((1, 2, 10))]
        batch = []
        for message in visible:
            message.received += 1
            message.visible_at = self.clock + VISIBILITY
            if message.received > RECEIVED_AT_MOST:
                self.queue.remove(message)
                self.dead_letters.append(message)
                self.counts["dead letters"] += 1
                self.note("dead letter", message.body)
            else:
                batch.append(message)
        if batch:
            self.receiving += 1
            self.spawn("queue", lambda: self._hand_over(batch))

    def _hand_over(self, batch: list[Message]) -> None:
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
                message.visible_at = self.clock + 1
            elif not was_lost and message in self.queue:
                self.queue.remove(message)

    def _redrive(self) -> None:
        """Somebody has heard the alarm."""
        self.faults = 0
        for message in self.dead_letters:
            message.received, message.visible_at = 0, self.clock
        self.queue += self.dead_letters
        self.dead_letters = []
        self.last_change = self.clock

    def _wake(self) -> None:
        run = min(self.wakes, key=lambda one: self.wakes[one])
        del self.wakes[run]
        self.spawn("scheduler", lambda: self._retried("Watch", {"run": run}))

    def _sweep(self) -> None:
        self.next_sweep = self.clock + SWEEP_EVERY
        self.spawn("rule", lambda: self._retried("Sweep", {}))

    def _retried(self, function: str, event: Any) -> None:
        """An asynchronous invocation: tried three times."""
        for _ in range(3):
            called = self.invoke(function, event)
            self.pause(waits_for=called)
            if called.is_done and not called.is_killed and not called.error:
                return
            self.pause(60)

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
            index=StepIndex(port("table", self.items), now=lambda: self.clock),
            objects=port("bucket", self.bucket),
            workflow=port("workflow", _Workflow(self)),
            checks=port("queue", _Checks(self)),
            schedules=port("schedules", _Schedules(self)),
            clock=_Clock(self),
            open_run=lambda run: Place(self, bucket_and_prefix(run)[1].rstrip("/")),  # type: ignore[arg-type,return-value]
            lender=MemoryLender(),
            settings=Settings(default_rules=()),
        )

    def note(self, *told: Any) -> None:
        if self.keeps_history:
            words = " ".join(str(one)[:300] for one in told)
            self.history.append(f"{self.clock - BEGIN:9.2f} {words}")

    @property
    def index(self) -> StepIndex:
        """What the table holds, for whoever looks at it afterwards."""
        return StepIndex(self.items, now=lambda: self.clock)

    def details(self, detail_type: str) -> list[dict[str, Any]]:
        return [
            json.loads(one["Detail"]) for one in self.events if one["DetailType"] == detail_type
        ]


def scenario_files(scenario: Scenario) -> list[list[list[tuple[str, str, bytes]]]]:
    """Each training's writers, with what they put."""
    return [
        [[(one.prefix, key, data) for key, data in writer] for writer in one.files]
        for one in scenario.trainings
    ]


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
        self._simulation.events += [dict(one) for one in entries]
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
        self._objects: dict[str, tuple[bytes, float]] = {}
        self._written = 0

    def put(self, prefix: str, key: str, data: bytes) -> str:
        """Write an object; what S3 tells of it."""
        full = f"{prefix}/{key}"
        self._objects[full] = (data, self._simulation.clock)
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
        if key not in self._objects:
            raise ObjectMissing(f"s3://{bucket}/{key}")
        return self._objects[key][0]

    def write(self, key: str, data: bytes) -> None:
        self._objects[key] = (data, self._simulation.clock)

    def list(self, bucket: str, prefix: str, after: str | None = None) -> list[Listed]:
        return [
            Listed(key, self._objects[key][1])
            for key in sorted(self._objects)
            if key.startswith(prefix) and (after is None or key > after)
        ]


@dataclass(frozen=True)
class Listed:
    key: str
    modified: float


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

    def world() -> World:
        assert simulation.running is not None
        assert simulation.running.process is not None
        return simulation.running.process.world

    before, wiring.world = wiring.world, world  # type: ignore[assignment]
    logger = get_logger()
    handlers, level = logger.handlers, logger.level
    logger.handlers, logger.level = [logging.NullHandler()], logging.CRITICAL
    try:
        with in_the_catalog(), redirect_stdout(_Nowhere()):
            yield
    finally:
        wiring.world = before
        logger.handlers, logger.level = handlers, level
        logger.manager._clear_cache()  # type: ignore[attr-defined]
        for actor in simulation.actors:
            actor.is_killed = True
