"""The ports of the simulated stack: in memory, with a fault possible at every call."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from functions.adapters.in_memory import MemoryObject, MemoryObjects
from functions.decisions.job_ownership import JobClaims
from functions.decisions.messages import bucket_and_prefix
from smdebug.exceptions import ObjectMissing
from smdebug.storage.memory import MemoryStorage

if TYPE_CHECKING:
    from tests.simulation.scheduler import Scheduler
    from tests.simulation.stack import Stack


class Port:
    """A port at every call of which something may happen."""

    def __init__(self, scheduler: Scheduler, name: str, real: Any):
        self._scheduler = scheduler
        self._name = name
        self._real = real

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._real, name)

        def call(*arguments: Any, **named: Any) -> Any:
            return self._scheduler.call(self._name, real, arguments, named)

        setattr(self, name, call)
        return call


class Bucket:
    """The bucket that trainings save to."""

    def __init__(self, scheduler: Scheduler):
        self._scheduler = scheduler
        self._objects = MemoryObjects()
        self._written = 0

    def put(self, prefix: str, key: str, data: bytes) -> str:
        """Write an object; return its notification."""
        full = f"{prefix}/{key}"
        self.write(full, data)
        self._written += 1
        record = {
            "eventName": "ObjectCreated:Put",
            "eventTime": datetime.fromtimestamp(self._scheduler.clock, UTC).isoformat(),
            "s3": {
                "bucket": {"name": "runs"},
                "object": {"key": full, "sequencer": f"{self._written:016X}"},
            },
        }
        return json.dumps({"Records": [record]})

    def read(self, bucket: str, key: str) -> bytes:
        return self._objects.read(bucket, key)

    def write(self, key: str, data: bytes) -> None:
        self._objects.write("runs", key, data, self._scheduler.clock)

    def modified(self, bucket: str, key: str) -> float | None:
        return self._objects.modified(bucket, key)

    def list(self, bucket: str, prefix: str, after: str | None = None) -> list[MemoryObject]:
        return [*self._objects.list(bucket, prefix, after)]


class Place(MemoryStorage):
    """The prefix of one run, as the storage that functions open."""

    def __init__(self, simulation: Stack, prefix: str):
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
        listed = self._call(self._simulation.bucket.list, "runs", start + prefix, after and start + after)
        return (found.key.removeprefix(start) for found in listed)

    def _call(self, method: Callable[..., Any], *arguments: Any) -> Any:
        return self._simulation.call("storage", method, arguments, {})


@dataclass
class Workflow:
    simulation: Stack

    def start(self, name: str, request: Mapping[str, Any]) -> None:
        self.simulation.start(name, request)


@dataclass
class Checks:
    simulation: Stack

    def leave(self, message: Mapping[str, Any], *, after_seconds: int) -> None:
        self.simulation.delivery.send(json.dumps(message), after_seconds)


@dataclass
class Schedules:
    simulation: Stack

    def wake(self, run: str, *, at: float) -> None:
        self.simulation.delivery.wakes[run] = at

    def leave(self, message: Mapping[str, Any], *, after_seconds: int) -> None:
        self.simulation.delivery.plan(message, after_seconds)


@dataclass
class Readers:
    """The functions that read shards, called one after the other: each may be killed, slow or throttled."""

    simulation: Stack
    at_once: int = 2

    def ask(self, requests: Sequence[Mapping[str, Any]]) -> list[Any]:
        return [self._answer(json.loads(json.dumps(request))) for request in requests]

    def _answer(self, request: Any) -> Any:
        called = self.simulation.invoke("ReadShard", request)
        self.simulation.pause(waits_for=called)
        is_lost = not called.is_done or called.is_abandoned or called.is_killed or called.error is not None
        return None if is_lost else json.loads(json.dumps(called.result))


@dataclass
class Clock:
    scheduler: Scheduler

    def now(self) -> float:
        return self.scheduler.clock


@dataclass
class Jobs:
    """SageMaker, with the first run's training job in progress."""

    simulation: Stack

    def in_progress(self, prefix: str) -> list[str]:
        return [training.prefix for training in self.simulation.scenario.trainings][:1]

    def claims_of(self, name: str) -> JobClaims:
        return JobClaims(name, in_progress=True, folders=(f"runs/{name}",))

    def stop(self, name: str) -> None:
        self.simulation.stopped_jobs.append(name)


@dataclass
class Control:
    simulation: Stack

    def write_zoom(self, run: str, body: bytes) -> None:
        self.simulation.bucket.write(f"{bucket_and_prefix(run)[1]}control/zoom", body)

    def write_stop(self, run: str, body: bytes) -> None:
        self.simulation.bucket.write(f"{bucket_and_prefix(run)[1]}control/stop", body)


@dataclass
class Topic:
    simulation: Stack

    def publish(self, *, subject: str, email: str, sms: str, to: str | None = None) -> None:
        actor = self.simulation.running
        assert actor is not None
        assert actor.process is not None
        detail = actor.process.event["detail"]
        self.simulation.letters.append((detail.get("id", subject), to or "everybody"))
        self.simulation.note("letter", to, subject)
