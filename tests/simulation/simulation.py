"""One schedule: the deployed handlers and state machine over ports in memory, until all is quiet."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import functions.handlers.act
import functions.handlers.claim
import functions.handlers.commit
import functions.handlers.evaluate
import functions.handlers.finish_run
import functions.handlers.ingest
import functions.handlers.mark_published
import functions.handlers.notify
import functions.handlers.read_shard
import functions.handlers.sweep
import functions.handlers.watch
from functions.adapters.in_memory import MemoryLender
from functions.custom_rules import child, running
from functions.decisions.action_plan import Endpoints
from functions.decisions.messages import bucket_and_prefix
from functions.followup.action_outcomes import OutcomesInIndex
from functions.followup.actions import ActionPorts
from functions.followup.notifications import NotificationPorts
from functions.step_index import StepIndex
from functions.world import NoReaders, World
from tests.functions.deployed_settings import settings
from tests.simulation import limits, ports, state_machine
from tests.simulation.delivery import Delivery
from tests.simulation.saving import Trainings
from tests.simulation.scenarios import Scenario
from tests.simulation.schedule import Schedule
from tests.simulation.scheduler import BEGIN, Actor, NeverQuiet, Process
from tests.simulation.stack import Stack
from tests.simulation.state_machine import TaskFailed
from tests.simulation.surroundings import surroundings
from tests.simulation.trainings import ALERTED, SOURCES

HANDLERS: dict[str, Callable[[Any, Any], Any]] = {
    "Ingest": functions.handlers.ingest.handler,
    "Evaluate": functions.handlers.evaluate.handler,
    "ReadShard": functions.handlers.read_shard.handler,
    "Claim": functions.handlers.claim.handler,
    "Commit": functions.handlers.commit.handler,
    "MarkPublished": functions.handlers.mark_published.handler,
    "FinishRun": functions.handlers.finish_run.handler,
    "Watch": functions.handlers.watch.handler,
    "Sweep": functions.handlers.sweep.handler,
    "Act": functions.handlers.act.handler,
    "Notify": functions.handlers.notify.handler,
}
TIMEOUTS = {"Evaluate": 120, "ReadShard": 20, "FinishRun": 120, "Sweep": 300, "RunCustomRule": 120}
EXECUTION = 290.0
LONG_ENOUGH = 2 * 3600.0  # for everything to become quiet
JUMPS = (0.05, 0.5, 3.0, 20.0, 140.0, 400.0)


@dataclass(frozen=True)
class Context:
    """What Lambda passes with an invocation: a repeated one has the same id."""

    aws_request_id: str


class Simulation(Stack):
    """A stack, the trainings that save to it, and a record of what happened."""

    def __init__(self, scenario: Scenario, schedule: Schedule, keeps_history: bool = False):
        super().__init__(schedule, keeps_history=keeps_history)
        self.scenario = scenario
        self.items = limits.LimitedItems()
        self.bucket = ports.Bucket(self)
        self.delivery = Delivery(self)
        self.events: list[dict[str, Any]] = []
        self.letters: list[tuple[str, str]] = []  # the id of an event, and who was notified
        self.stopped_jobs: list[str] = []
        self.last_change = BEGIN
        if scenario.killed_every and not schedule.is_orderly:
            self.killed_every = scenario.killed_every
            self.killed_until = BEGIN + self.chance.choice((5.0, 40.0, 150.0))
        self._used_names: set[str] = set()
        self._idle: dict[str, list[Process]] = {}
        self._trainings = Trainings(self)
        self.bucket.write("/".join(SOURCES[:2]), SOURCES[2])

    def run(self) -> Simulation:
        """Run until all is quiet."""
        with surroundings(self):
            for _ in range(200_000):
                self.expire()
                ready = self._ready()
                if ready:
                    chosen = 0 if self.schedule.is_orderly else self.chance.randrange(len(ready))
                    ready[chosen]()
                    if self.jumps and self.chance.random() < 0.03:
                        self.jumps -= 1
                        self.clock += self.chance.choice(JUMPS)
                elif not self._let_time_pass():
                    if len(self.dead_letters):
                        self.delivery.redrive()
                    elif not self._trainings.go_on():
                        return self
        names = [actor.name for actor in self.actors]
        raise NeverQuiet(f"after {self.clock - BEGIN:.0f} s: {names}")

    def _ready(self) -> list[Callable[[], Any]]:
        ready: list[Callable[[], Any]] = [
            actor.greenlet.switch for actor in self.actors if actor.is_ready(self.clock)
        ]
        ready += self.delivery.possible()
        if ready and self.schedule.is_orderly:
            return ready
        return ready + self._trainings.possible(is_idle=not ready)

    def _let_time_pass(self) -> bool:
        times = self.delivery.times()
        for actor in self.actors:
            times.append(actor.deadline)
            if actor.waits_for is None:
                times.append(actor.wake_at)
        following = min(times)
        if following > self.last_change + LONG_ENOUGH:
            return False
        self.clock = max(self.clock, following)
        return True

    # What trainings, functions and the workflow do

    def write(self, prefix: str, key: str, data: bytes) -> None:
        """Write a file of a run; its notification may be lost, late, or delivered twice."""
        self.last_change = self.clock
        self.delivery.sweeps_in_vain = 0
        notification = self.bucket.put(prefix, key, data)
        lost = self.schedule.loses_notifications and self.chance.random() < 0.15
        self.note("put", key, "(notification lost)" if lost else "")
        if lost:
            return
        copies = 1 if self.schedule.is_orderly or self.chance.random() > 0.1 else 2
        for _ in range(copies):
            late = 0.0 if self.schedule.is_orderly else self.chance.choice((0, 0, 0, 0.2, 2, 30))
            self.delivery.send(notification, late)

    def invoke(self, function: str, event: Any, request: str = "") -> Actor:
        """Invoke a function of the stack, in a warm or a cold process."""
        self.counts["invocations"] += 1
        context = Context(request or f"request-{self.counts['invocations']}")
        idle = self._idle.setdefault(function, [])
        is_warm = idle and (self.schedule.is_orderly or self.chance.random() < 0.8)
        process = idle.pop() if is_warm else Process(self._world(function))
        process.event = event
        handler = HANDLERS.get(function) or self._run_custom_rule

        def work() -> Any:
            result = handler(event, context)
            idle.append(process)
            return result

        actor = self.spawn(function, work, process)
        actor.deadline = self.clock + TIMEOUTS.get(function, 60)
        self.note("invoke", function, event)
        return actor

    def start(self, name: str, request: Mapping[str, Any]) -> None:
        """Start an execution. Standard workflows accept each name once, Express ones any number."""
        if name in (self._used_names if self.schedule.is_standard else ()):
            return
        self._used_names.add(name)
        limits.accept_state(request, "the input of an execution")
        plain = json.loads(json.dumps(request))
        actor = self.spawn("execution", lambda: state_machine.execute(plain, Execution(self)))
        actor.deadline = self.clock + EXECUTION

    def put_events(self, entries: list[Mapping[str, Any]]) -> None:
        """Publish events: each listener gets each at least once, in any order."""
        limits.accept_events(entries)
        self.events += [dict(entry) for entry in entries]
        if self.scenario.has_listeners:
            self.delivery.publish(entries)

    def _run_custom_rule(self, job: Any, context: object) -> dict[str, Any]:
        """Run the custom rule in this process: starting one each time would take too long."""
        output = running.RuleOutput(job)
        is_slow = not self.schedule.is_orderly and self.chance.random() < 0.3
        begun = time.monotonic() - (job["limits"]["work"] + 1 if is_slow else 0.0)
        try:
            child.work_off(job, _DirectAnswers(output), begun)  # type: ignore[arg-type]
        except running.Died as death:
            output.died = str(death)
        return output.answer()

    # The ports

    def _port(self, name: str, real: Any) -> Any:
        return ports.Port(self, name, real)

    def _world(self, function: str) -> World:
        def place(run: str) -> Any:
            return ports.Place(self, bucket_and_prefix(run)[1].rstrip("/"))

        return World(
            index=StepIndex(self._port("table", self.items), kept_for=self.scenario.kept_for, now=self.now),
            objects=self._port("bucket", self.bucket),
            workflow=self._port("workflow", ports.Workflow(self)),
            checks=self._checks_of(function),
            schedules=self._port("schedules", ports.Schedules(self)),
            clock=ports.Clock(self),
            open_run=place,
            lender=MemoryLender(),
            settings=settings(
                default_rules=(),
                sandbox="RunCustomRule",
                swept_at_once=1,
                fewest_in_shards=2,
                files_a_shard=1,
            ),
            readers=ports.Readers(self) if self.scenario.has_readers else NoReaders(),
        )

    def _checks_of(self, function: str) -> Any:
        """Return where the function leaves messages for later, as `functions.wiring` does."""
        if function in ("Ingest", "Sweep", "Watch"):
            return self._port("schedules", ports.Schedules(self))
        return self._port("queue", ports.Checks(self))

    def action_ports(self) -> ActionPorts:
        """Return the ports of the function that carries out actions."""
        return ActionPorts(
            jobs=self._port("jobs", ports.Jobs(self)),
            batch=self._port("jobs", ports.Jobs(self)),  # no queue is named, so none is asked
            control=self._port("control", ports.Control(self)),
            topic=self._port("topic", ports.Topic(self)),
            outcomes=OutcomesInIndex(self._port("table", self.items)),
            checks=self._port("queue", ports.Checks(self)),
            clock=ports.Clock(self),
            endpoints=Endpoints(emails=(ALERTED,)),
        )

    def notification_ports(self) -> NotificationPorts:
        """Return the ports of the function that notifies people."""
        topic = self._port("topic", ports.Topic(self))
        return NotificationPorts(topic, self._port("table", self.items), ports.Clock(self))

    # What happened

    @property
    def dead_letters(self) -> Any:
        return self.delivery.dead_letters

    @property
    def index(self) -> StepIndex:
        """The step index, read without faults."""
        return StepIndex(self.items, kept_for=self.scenario.kept_for, now=self.now)

    @property
    def outcomes(self) -> OutcomesInIndex:
        """The outcomes of actions, read without faults."""
        return OutcomesInIndex(self.items)

    def details(self, detail_type: str) -> list[dict[str, Any]]:
        """Return the details of the published events of that type."""
        return [json.loads(event["Detail"]) for event in self.events if event["DetailType"] == detail_type]


class _DirectAnswers:
    """The answers of a custom rule, passed on without a pipe."""

    def __init__(self, output: running.RuleOutput):
        self._output = output
        self.written = 0

    def give(self, answer: Mapping[str, Any]) -> None:
        line = json.dumps(answer, allow_nan=False).encode() + b"\n"
        self.written += len(line)
        self._output.take(line)


class Execution:
    """What one execution of the state machine calls."""

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
        limits.accept_state(called.result, f"the result of {function}")
        return json.loads(json.dumps(called.result))

    def send(self, message: Any, delay: float) -> None:
        self._simulation.pause()
        self._simulation.delivery.send(json.dumps(message), delay)

    def put_events(self, entries: list[Mapping[str, Any]]) -> None:
        self._simulation.pause()
        self._simulation.put_events(entries)
        self._simulation.pause()

    def sleep(self, seconds: float) -> None:
        self._simulation.pause(seconds)

    def now(self) -> float:
        return self._simulation.clock
