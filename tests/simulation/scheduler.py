"""Running actors one at a time, with faults, under a clock of our own.

Each handler and each execution of the state machine is an actor: a greenlet that gives way at every call
of a port. There the scheduler may let another actor run, kill the caller, or have the call fail before or
after it took effect. The same seed gives the same schedule.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from greenlet import getcurrent, greenlet

from functions.ports import TooMuch
from functions.world import World
from smdebug.exceptions import StorageUnavailable
from tests.simulation.schedule import Schedule
from tests.simulation.state_machine import TaskFailed

BEGIN = 1_700_000_000.0


class Killed(BaseException):
    """The actor's process is gone."""


class NeverQuiet(AssertionError):
    """The simulation does not come to an end."""


@dataclass(eq=False)
class Process:
    """The process of a function: one invocation at a time, with caches that stay warm between them."""

    world: World
    event: Any = None  # of its current invocation


@dataclass(eq=False)
class Actor:
    """A function or an execution that runs."""

    name: str
    greenlet: greenlet
    process: Process | None = None
    wake_at: float = 0.0
    waits_for: Actor | None = None
    deadline: float = float("inf")
    is_abandoned: bool = False  # its caller waits no longer
    is_killed: bool = False
    is_done: bool = False
    result: Any = None
    error: Exception | None = None

    def is_ready(self, now: float) -> bool:
        """Whether the actor can run now."""
        if self.waits_for is not None:
            return self.waits_for.is_done or self.waits_for.is_abandoned
        return self.wake_at <= now


class Scheduler:
    """The clock, the actors, and the faults that may befall them."""

    def __init__(self, schedule: Schedule, *, keeps_history: bool = False):
        self.schedule = schedule
        self.chance = random.Random(schedule.seed * 7919 + 1)
        self.faults, self.jumps = schedule.faults, schedule.jumps
        self.clock = BEGIN
        self.actors: list[Actor] = []
        self.running: Actor | None = None
        self.is_over = False
        self.counts: Counter[str] = Counter()
        self.keeps_history = keeps_history
        self.history: list[str] = []
        self._expired_at = 0.0
        self.killed_every = 0.0  # seconds, until `killed_until`: whatever runs then is killed
        self.killed_until = BEGIN
        self._next_kill = BEGIN
        self._main = getcurrent()

    def now(self) -> float:
        return self.clock

    def choose(self, among: tuple[float, ...]) -> float:
        return self.chance.choice(among)

    def note(self, *parts: Any) -> None:
        """Add a line to the history."""
        if self.keeps_history:
            words = " ".join(str(part)[:300] for part in parts)
            self.history.append(f"{self.clock - BEGIN:9.2f} {words}")

    # Actors

    def spawn(self, name: str, what: Callable[[], Any], process: Process | None = None) -> Actor:
        """Add an actor that does `what`; one with a process hands its errors to its caller."""

        def life() -> None:
            try:
                actor.result = what()
                self.pause()  # the result may still be lost on the way back
                self._maybe_kill(actor)
            except Killed:
                actor.is_killed = True
            except TaskFailed as failure:
                self.note("execution failed", failure.error)
            except Exception as error:
                if process is None:  # no function, but the simulation itself
                    raise
                actor.error = error
                self.note("error", actor.name, repr(error))
            actor.is_done = True
            self.actors.remove(actor)

        actor = Actor(name, greenlet(self._as_running(life), parent=self._main), process)
        actor.wake_at = self.clock
        self.actors.append(actor)
        return actor

    def pause(self, seconds: float = 0.0, waits_for: Actor | None = None) -> None:
        """Let other actors run."""
        actor = self.running
        assert actor is not None
        if self.is_over:  # the actors that are left are being removed
            raise Killed
        actor.wake_at, actor.waits_for = self.clock + seconds, waits_for
        self._main.switch()
        self.running = actor
        actor.waits_for = None
        if actor.is_killed:
            raise Killed

    def expire(self) -> None:
        """Time out the actors that have run too long: they are killed, or only abandoned."""
        if self._expired_at == self.clock:
            return
        self._expired_at = self.clock
        for actor in [actor for actor in self.actors if actor.deadline <= self.clock]:
            actor.deadline = float("inf")
            actor.is_abandoned = True
            self.counts["deaths"] += 1
            if self.chance.random() < 0.6:
                self.note("timeout", actor.name)
                actor.is_killed = True
            else:
                self.note("zombie", actor.name)
                # It continues when nobody expects it.
                actor.wake_at += self.chance.choice((0, 5, 200, 700))

    def _as_running(self, life: Callable[[], None]) -> Callable[[], None]:
        def run() -> None:
            self.running = self._current()
            life()

        return run

    def _current(self) -> Actor:
        here = getcurrent()
        return next(actor for actor in self.actors if actor.greenlet is here)

    # Faults

    def call(self, port: str, method: Callable[..., Any], arguments: Any, named: Any) -> Any:
        """Call a port, with every fault that may happen there."""
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
        if fault == "refused":  # the function ends with an error and keeps its lease
            self.counts["deaths"] += 1
            self.note("refused", actor.name, port, method.__name__)
            raise _failure(port)
        result = method(*arguments, **named)
        if fault == "repeated":  # a repeated lease seems to belong to another holder
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
        if self.killed_every and self.clock < self.killed_until:
            self.clock += self.chance.uniform(0.0, 0.1)  # as long as a call takes
            if self.clock >= self._next_kill:
                self._next_kill = self.clock + self.killed_every
                self.counts["kill"] += 1
                return "kill"
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


def _failure(port: str) -> Exception:
    if port in ("storage", "bucket"):
        return StorageUnavailable("s3://runs", "injected by the simulation")
    return TooMuch(f"{port}: injected by the simulation")
