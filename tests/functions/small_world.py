"""The application in memory: its real functions over ports in memory, and a bucket with notifications."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from functions.adapters.in_memory import (
    HandClock,
    MemoryItems,
    MemoryLender,
    MemoryObject,
    MemorySchedules,
    MemoryWorkflow,
)
from functions.arrivals.missed_files import sweep
from functions.arrivals.recording import record_arrivals
from functions.custom_rules import running
from functions.custom_rules.claiming import claim
from functions.custom_rules.judging import commit_answer
from functions.decisions.messages import arrivals_in, bucket_and_prefix, by_run
from functions.evaluation.built_in import evaluate
from functions.lifecycle.silence import watch
from functions.lifecycle.summary import finish_run
from functions.lifecycle.upkeep import tend
from functions.rule_groups import GroupBusy
from functions.step_index import StepIndex
from functions.world import AppSettings, World
from smdebug.exceptions import ObjectMissing
from smdebug.storage.folder import FolderStorage
from smdebug.storage.memory import MemoryStorage
from tests.functions import deployed_settings

Notify = Callable[[str], None]


class BucketOfMemory:
    """A bucket with a `MemoryStorage` for each run, which notifies of every put."""

    def __init__(self, name: str, clock: HandClock, folder: Path | None = None):
        self.name = name
        self._clock = clock
        self._folder = folder
        self._runs: dict[str, Any] = {}
        self._modified: dict[str, float] = {}
        self._written = 0
        self.notifications: list[str] = []

    def run(self, prefix: str) -> Any:
        if prefix not in self._runs:
            inside = self._folder and _NotifyingFolder(self, prefix, self._folder)
            self._runs[prefix] = inside or _Telling(self, prefix)
        return self._runs[prefix]

    def note(self, prefix: str, key: str) -> None:
        full = f"{prefix}/{key}"
        self._modified[full] = self._clock.now()
        self._written += 1
        self.notifications.append(
            json.dumps(
                {
                    "Records": [
                        {
                            "eventName": "ObjectCreated:Put",
                            "eventTime": datetime.fromtimestamp(self._clock.now(), UTC).isoformat(),
                            "s3": {
                                "bucket": {"name": self.name},
                                "object": {"key": full, "sequencer": f"{self._written:016X}"},
                            },
                        }
                    ]
                }
            )
        )

    def hold_back(self, of: str = "") -> list[str]:
        """Remove the pending notifications that contain `of`, and return them."""
        held = [body for body in self.notifications if of in body]
        self.notifications = [body for body in self.notifications if of not in body]
        return held

    def release(self, bodies: list[str]) -> None:
        """Make these notifications pending."""
        self.notifications += bodies

    # As `functions.ports.Objects`

    def read(self, bucket: str, key: str) -> bytes:
        for prefix, storage in self._runs.items():
            if key.startswith(f"{prefix}/"):
                return storage.read(key.removeprefix(f"{prefix}/"))
        raise ObjectMissing(f"s3://{bucket}/{key}")

    def modified(self, bucket: str, key: str) -> float | None:
        return self._modified.get(key)

    def list(self, bucket: str, prefix: str, after: str | None = None) -> Iterator[MemoryObject]:
        for run, storage in self._runs.items():
            for key in storage.list(""):
                full = f"{run}/{key}"
                if full.startswith(prefix) and (after is None or full > after):
                    yield MemoryObject(full, self._modified.get(full, 0.0))


class _Telling(MemoryStorage):
    def __init__(self, bucket: BucketOfMemory, prefix: str):
        super().__init__(prefix)
        self._bucket = bucket
        self._place = prefix

    @property
    def location(self) -> str:
        return f"s3://{self._bucket.name}/{self._place}"

    def write(self, key: str, data: Any) -> None:
        super().write(key, data)
        self._bucket.note(self._place, key)


class _NotifyingFolder(FolderStorage):
    """The same in a folder, for other processes to read."""

    def __init__(self, bucket: BucketOfMemory, prefix: str, folder: Path):
        super().__init__(folder / prefix)
        self._bucket = bucket
        self._notified_as = prefix

    def write(self, key: str, data: Any) -> None:
        super().write(key, data)
        self._bucket.note(self._notified_as, key)

    def create(self, key: str) -> Any:
        sink = super().create(key)
        commit = sink.commit

        def commit_and_notify() -> None:
            commit()
            self._bucket.note(self._notified_as, key)

        sink.commit = commit_and_notify  # type: ignore[method-assign]
        return sink


@dataclass
class SmallWorld:
    """A stack in memory; with a folder, runs are saved there, for custom rules in their own processes."""

    settings: AppSettings = field(default_factory=deployed_settings.settings)
    folder: Path | None = None

    def __post_init__(self) -> None:
        self.clock = HandClock()
        self.bucket = BucketOfMemory("runs", self.clock, self.folder)
        self.deployed: dict[str, Path] = {}  # the file of a function that runs a rule
        self.broken: set[str] = set()  # groups whose function cannot be called
        self.run_rule: Callable[..., Any] = running.run
        self.items = MemoryItems()
        self.workflow = MemoryWorkflow()
        self.schedules = MemorySchedules()
        self.checks = self.schedules  # as of the functions that the queue calls
        self.lender = MemoryLender()
        self.events: list[dict[str, Any]] = []
        self.world = World(
            index=StepIndex(self.items, kept_for=deployed_settings.KEPT_FOR, now=self.clock.now),
            objects=self.bucket,
            workflow=self.workflow,
            checks=self.checks,
            schedules=self.schedules,
            clock=self.clock,
            open_run=lambda run: self.bucket.run(bucket_and_prefix(run)[1].rstrip("/")),
            lender=self.lender,
            settings=self.settings,
        )

    @property
    def index(self) -> StepIndex:
        return self.world.index

    def place(self, name: str = "mnist") -> Any:
        """Return the storage of a run."""
        return self.bucket.run(name)

    def deliver(self, *, order: Callable[[list[str]], list[str]] = list, batch: int = 10) -> None:
        """Deliver the notifications so far to ingest, in batches."""
        bodies, self.bucket.notifications = order(self.bucket.notifications), []
        for at in range(0, len(bodies), batch):
            arrivals = [arrival for body in bodies[at : at + batch] for arrival in arrivals_in(body)]
            for run, together in by_run(arrivals).items():
                record_arrivals(self.world, run, together)

    def execute(self) -> None:
        """Run the executions that were started, as the state machine would."""
        while self.workflow.started:
            name = next(iter(self.workflow.started))
            request = self.workflow.started.pop(name)
            has_failed = False
            for group in request["groups"]:
                if group["group"] in self.broken:
                    self.checks.leave({"check": request["run"]}, after_seconds=60)
                    has_failed = True
                    continue
                asked = (self.world, request["run"], group["group"], request["step"])
                how = self.evaluate_custom if group["kind"] == "custom" else evaluate
                self._until_done(partial(how, *asked))
            if request["finish"] and not has_failed:
                self._until_done(partial(finish_run, self.world, request["run"]))

    def evaluate_custom(self, world: World, run: str, group: str, step: int) -> dict[str, Any]:
        """Claim, run and commit; their payloads pass through JSON."""
        handed = _through_json(claim(world, run, group, step))
        if "function" not in handed:
            return handed
        file = self.deployed.get(handed["function"])
        ran = {"answer": self.run_rule(handed["job"], file=str(file) if file else None)}
        return _through_json(commit_answer(world, run, group, handed["claim"], _through_json(ran)))

    def _until_done(self, ask: Callable[[], dict[str, Any]]) -> None:
        more = True
        while more:
            try:
                reply = ask()
            except GroupBusy:
                return  # the workflow retries, and at last leaves a check
            self.events += reply["outbox"]
            if reply["mark"]["ids"] or reply["mark"]["begun"]:
                self.index.mark_published(**reply["mark"])
            more = reply["more"]

    def settle(self) -> None:
        """Deliver everything pending, and run everything that was started."""
        for _ in range(50):
            self.deliver()
            self.execute()
            if not self.bucket.notifications and not self.workflow.started:
                return

    def pass_time(self, seconds: float) -> None:
        """Let time pass, with the checks and wake-ups that become due."""
        until = self.clock.now() + seconds
        for _ in range(2000):
            due = [(self.clock.now() + after, message) for after, message in self.checks.waiting]
            due += [(at, {"watch": run}) for run, at in self.schedules.at.items()]
            due = [item for item in due if item[0] <= until]
            if not due:
                break
            at, message = min(due, key=lambda item: item[0])
            wait = max(0.0, at - self.clock.now())
            self.clock.time += wait
            if "watch" in message:
                self._let_checks_wait(wait)
                del self.schedules.at[message["watch"]]
                watch(self.world, message["watch"])
            else:
                self.checks.waiting.remove(min(self.checks.waiting, key=lambda item: item[0]))
                self._let_checks_wait(wait)
                tend(self.world, message)
            self.settle()
        rest = max(0.0, until - self.clock.now())
        self.clock.time += rest
        self._let_checks_wait(rest)

    def _let_checks_wait(self, seconds: float) -> None:
        self.checks.waiting = [
            (max(0, round(after - seconds)), message) for after, message in self.checks.waiting
        ]

    def sweep(self) -> int:
        missed = sweep(self.world)
        self.settle()
        return missed

    def details(self, detail_type: str) -> list[dict[str, Any]]:
        """Return the details of the published events of that type."""
        return [json.loads(event["Detail"]) for event in self.events if event["DetailType"] == detail_type]

    def statuses(self, run: str = "runs/mnist") -> dict[str, str]:
        return {
            rule.name: rule.status.value for group in self.index.groups.all_of(run) for rule in group.rules
        }


def _through_json(value: Any) -> Any:
    return json.loads(json.dumps(value, allow_nan=False))
