"""`make bench-throughput`: how many steps of one run a second the deployed rules evaluate.

The real handlers evaluate a backlog of saved steps. A call of S3 and of the table takes the time that
`bench.costs.cost` assumes, by sleeping, so that what the handlers do at once is done at once here. The
processor's time, with that of boto3, is scaled to the memory of the function and added: nothing is assumed
to be computed during a call.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from bench.costs.cost import (
    CPU_OF_A_GB,
    DYNAMODB_CALL,
    EVALUATE_GB,
    RULES,
    S3_CALL,
    CountedStorage,
    boto_seconds,
)
from bench.costs.shards import ACCOUNT, INVOKING, MeasuredReaders, Shard, seconds_of_invoking
from functions.adapters.in_memory import MemoryItems
from functions.evaluation.built_in import evaluate
from functions.ports import ALWAYS, Only
from functions.step_index import StepIndex
from functions.world import AppSettings, NoReaders
from smdebug.service.step_index.item_reader import Item
from smdebug.storage.s3_clients import REQUESTS_AT_A_TIME
from tests.functions.deployed_settings import KEPT_FOR
from tests.functions.saver import Saver
from tests.functions.small_world import SmallWorld

NAME = "experiments/2026-11-21/mnist"
RUN = f"runs/{NAME}"
STEPS = {1: 300, 8: 40, 64: 8, 1024: 16}
"""The steps that are evaluated, by the number of workers."""
PROMISED = {1: 60.0, 1024: 1.0}
"""The steps a second that are promised, by the number of workers."""
_FIRST = 3  # the steps before create what later ones reuse
_RULES = 10


@dataclass
class Meter:
    """The time that calls take, and how many there were."""

    is_on: bool = False
    calls: Counter[str] = field(default_factory=Counter)
    connections: threading.Semaphore = field(
        default_factory=lambda: threading.Semaphore(2 * REQUESTS_AT_A_TIME)
    )
    connections_to_lambda: threading.Semaphore = field(
        default_factory=lambda: threading.Semaphore(ACCOUNT.readers_at_once)
    )

    def call(self, service: str) -> None:
        """Take the time of a call, if the meter is on."""
        if self.is_on:
            self.calls[service] += 1
            with self.connections:
                time.sleep(S3_CALL if service == "S3" else DYNAMODB_CALL)

    def invocation(self, shard: Shard) -> None:
        """Take the time of calling a function that reads a shard."""
        if self.is_on:
            with self.connections_to_lambda:
                self.calls["shards"] += 1
                self.calls["S3 of shards"] += shard.files
                time.sleep(INVOKING + shard.seconds)

    def processor(self) -> float:
        """Return what boto3 takes of this machine's processor for the calls so far."""
        table, s3 = boto_seconds()
        invoking = self.calls["shards"] * seconds_of_invoking() if self.calls["shards"] else 0.0
        return self.calls["table"] * table + self.calls["S3"] * s3 + invoking


class MeteredItems(MemoryItems):
    """A table whose calls take their time."""

    def __init__(self, meter: Meter):
        super().__init__()
        self._meter = meter

    def get(self, pk: str, sk: str) -> Item | None:
        self._meter.call("table")
        return super().get(pk, sk)

    def query(self, pk: str, **how: Any) -> list[Item]:
        self._meter.call("table")
        return super().query(pk, **how)

    def put(self, item: Item, only: Only = ALWAYS) -> None:
        self._meter.call("table")
        super().put(item, only)

    def update(self, pk: str, sk: str, **how: Any) -> Item:
        self._meter.call("table")
        return super().update(pk, sk, **how)


@dataclass
class Measured:
    """What evaluating some steps took."""

    steps: int
    waited: float
    processor: float  # of this machine
    calls: Counter[str]

    @property
    def per_second(self) -> float:
        """The steps a second of a function with as much memory as by default."""
        return self.steps / (self.waited + self.processor / (CPU_OF_A_GB * EVALUATE_GB))


class MeteredRun:
    """A run of so many workers, in a stack whose calls take their time."""

    def __init__(self, workers: int, *, is_alone: bool = False):
        self._meter = Meter()
        self._small = small = SmallWorld()
        small.items = MeteredItems(self._meter)
        plain = small.world.open_run
        self._readers = MeasuredReaders(
            plain, self._meter.invocation, boto_seconds()[1], CPU_OF_A_GB, S3_CALL
        )
        small.world = replace(
            small.world,
            readers=NoReaders() if is_alone else self._readers,
            index=StepIndex(small.items, kept_for=KEPT_FOR, now=small.clock.now),
            open_run=lambda run: CountedStorage(plain(run), lambda _: self._meter.call("S3")),  # type: ignore[arg-type]
        )
        place = small.place(NAME)
        rules = [{**RULES[n % len(RULES)], "name": f"rule {n}"} for n in range(_RULES)]
        place.write("rules.json", json.dumps({"version": 1, "default_rules": False, "rules": rules}).encode())
        self._savers = [Saver(place, f"worker_{n}", num_workers=workers) for n in range(workers)]
        self._savers[0].begin()
        self._saved = 0
        for _ in range(_FIRST):
            self._save(1)
            small.settle()

    def evaluate(self, steps: int) -> Measured:
        """Evaluate so many steps that are all saved when it begins."""
        self._save(steps)
        self._small.deliver()
        boto_seconds()
        self._meter.is_on = True
        self._readers.begin()
        queued, processor, wall = _time_in_queue(), time.process_time(), time.perf_counter()
        while evaluate(self._small.world, RUN, "builtin", _FIRST)["more"]:
            pass
        wall = time.perf_counter() - wall - (_time_in_queue() - queued)
        processor = time.process_time() - processor
        waited = max(0.0, wall - processor)
        processor -= self._readers.processor
        self._meter.is_on = False
        group = self._small.index.groups.get(RUN, "builtin")
        assert group is not None
        assert group.cursor == _FIRST + steps - 1, "not every step was evaluated"
        calls = self._meter.calls
        return Measured(steps, waited, processor + self._meter.processor(), calls)

    def _save(self, steps: int) -> None:
        for _ in range(steps):
            size = 0.99**self._saved
            values = {
                "gradient/fc": np.full(16, size, np.float32),
                "weight/fc": np.full(16, size, np.float32),
                "loss": np.full(1, size, np.float32),
            }
            for saver in self._savers:
                saver.save(self._saved, values)
            self._saved += 1


def _ways(workers: int) -> list[tuple[int, bool]]:
    """Return the workers, with whether the function is alone: both ways, if others may read for it."""
    return [(workers, is_alone) for is_alone in (True, False)[workers < AppSettings.fewest_in_shards :]]


def _time_in_queue() -> float:
    """Return how long this thread has waited for a processor that others used."""
    try:
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError):  # another system: nothing else should run there
        return 0.0


def main() -> int:
    """Print the table; return 1 if a promise is not held."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--workers", type=int, nargs="*", default=list(STEPS), choices=list(STEPS))
    broken = []
    print(f"\nA backlog of one run, {_RULES} rules; a function of {EVALUATE_GB:g} GB; per step:\n")
    print(
        "".join(
            head.rjust(13)
            for head in ("workers", "steps/s", "waits, ms", "computes, ms", "S3", "table", "shards")
        )
    )
    for workers, is_alone in chain.from_iterable(map(_ways, parser.parse_args().workers)):
        steps = STEPS[workers] // (8 if is_alone else 1)
        with contextlib.redirect_stdout(io.StringIO()):
            measured = MeteredRun(workers, is_alone=is_alone).evaluate(steps)
        numbers = (
            f"{workers:,}{' alone' if is_alone else ''}",
            f"{measured.per_second:,.2f}",
            f"{1000 * measured.waited / measured.steps:,.1f}",
            f"{1000 * measured.processor / measured.steps / (CPU_OF_A_GB * EVALUATE_GB):,.1f}",
            *(f"{measured.calls[service] / measured.steps:,.1f}" for service in ("S3", "table", "shards")),
        )
        print("".join(number.rjust(13) for number in numbers))
        if not is_alone and measured.per_second < (promised := PROMISED.get(workers, 0.0)):
            broken.append(f"{workers} workers: {measured.per_second:.2f} steps/s, promised are {promised:g}")
    print(f"\nA call of S3 takes {1000 * S3_CALL:.0f} ms, one of the table {1000 * DYNAMODB_CALL:.0f} ms.")
    for problem in broken:
        print(f"NOT HELD: {problem}")
    return bool(broken)


if __name__ == "__main__":
    sys.exit(main())
