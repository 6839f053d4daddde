"""`make bench-cost`: the cost of a saved step, counted from the calls of the real handlers.

The handlers run over a table, buckets and queues in memory that count as AWS bills: write and read
units by the size of the items, requests, invocations, bytes of logs. boto3's own processor time is measured.
The duration of AWS's own calls is assumed, and printed with the table.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import io
import json
import math
import random
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from bench.costs import boto_cpu, default_set, idle, plan_cost
from bench.costs.bill import KINDS, LOG_EVENT, LOG_LINES, Bill, dollars_of, stored_bytes
from bench.costs.shards import billed_readers
from functions.adapters.in_memory import MemoryItems
from functions.ports import ALWAYS, Only
from functions.step_index import StepIndex
from smdebug.service.costs import MONTHS_KEPT, POLLERS, PRICED_IN, PRICES
from smdebug.service.records import StepLayout
from smdebug.service.step_index import items
from smdebug.service.step_index.item_reader import Item
from smdebug.service.step_index.items import token_of
from smdebug.storage.memory import MemoryStorage
from smdebug.storage.s3_clients import REQUESTS_AT_A_TIME
from tests.functions.deployed_settings import KEPT_FOR, settings
from tests.functions.saver import Saver
from tests.functions.small_world import SmallWorld
from tests.support.item_size import item_size

DYNAMODB_CALL = 0.004  # seconds, within a region
S3_CALL = 0.1  # AWS names 100 to 200 ms for a small object
CPU_OF_A_GB = 0.6  # of a core of this machine
INGEST_GB = 0.5
EVALUATE_GB = 1.0
_TINY = [
    {
        "name": f"vanishing {n}",
        "rule": "VanishingGradient",
        "parameters": {"threshold": 10.0**-n},
    }
    for n in (7, 8, 9)
]
_OTHERS = [
    {"name": name, "rule": name} for name in ("ExplodingTensor", "WeightUpdateRatio", "LossNotDecreasing")
]
_OF_TENSORS = [
    {"name": f"{rule} of {tensor}", "rule": rule, "parameters": {"tensor_regex": tensor}}
    for rule in ("AllZero", "UnchangedTensor")
    for tensor in ("weight", "gradient")
]
DIGESTS = {"smdebug/digests/parameters": np.ones((8, 2), np.int64)}
RULES: list[dict[str, Any]] = [*_TINY, *_OTHERS, *_OF_TENSORS]


@functools.cache
def boto_seconds() -> tuple[float, float]:
    """The processor time of boto3 itself: for a call of the table, and for one of S3."""
    return boto_cpu.seconds_of_table_call(), boto_cpu.seconds_of_s3_call()


def size_of(item: Item | None) -> int:
    """The bytes of an item; 0 for None."""
    return item_size(item) if item else 0


class BilledItems(MemoryItems):
    """A table that bills its writes and reads."""

    def __init__(self, bill: Bill):
        super().__init__()
        self.bill = bill

    def get(self, pk: str, sk: str) -> Item | None:
        item = super().get(pk, sk)
        self._read(size_of(item))
        return item

    def query(self, pk: str, **how: Any) -> list[Item]:
        items = super().query(pk, **how)
        self._read(sum(map(size_of, items)))
        return items

    def put(self, item: Item, only: Only = ALWAYS) -> None:
        before = size_of(super().get(item["pk"], item["sk"]))
        self._write(item["pk"], max(before, size_of(item)))
        super().put(item, only)

    def update(self, pk: str, sk: str, **how: Any) -> Item:
        before = size_of(super().get(pk, sk))
        try:
            after = super().update(pk, sk, **how)
        except Exception:
            self._write(pk, before)
            raise
        self._write(pk, max(before, size_of(after)))
        return after

    def _read(self, size: int) -> None:
        self.bill.used["read unit"] += max(1, math.ceil(size / 4096))
        self.bill.used["table call"] += 1

    def _write(self, pk: str, size: int) -> None:
        units = max(1, math.ceil(size / 1024))
        self.bill.used["write unit"] += units
        self.bill.used["table call"] += 1
        self.bill.writes_by_key[pk] += 1


class CountedStorage:
    """The storage of a run, which names each of its requests before it is made."""

    concurrency = REQUESTS_AT_A_TIME

    def __init__(self, storage: MemoryStorage, count: Callable[[str], None]):
        self._storage = storage
        self._count = count
        self.location = storage.location

    def __getattr__(self, name: str) -> Any:
        what = {"read": "S3 GET", "view": "S3 GET", "size": "S3 GET", "exists": "S3 GET"}
        billed = what.get(name) or {"write": "S3 PUT", "list": "S3 LIST"}[name]

        def request(*arguments: Any) -> Any:
            self._count(billed)
            return getattr(self._storage, name)(*arguments)

        return request


class BilledWorld(SmallWorld):
    """The stack in memory, with a bill."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.bill = Bill()
        self.boto = boto_seconds()
        self.items = BilledItems(self.bill)
        plain, bill = self.world.open_run, self.bill
        self.readers = billed_readers(plain, bill, self.boto[1], CPU_OF_A_GB, S3_CALL)
        self.world = replace(
            self.world,
            index=StepIndex(self.items, kept_for=KEPT_FOR, now=self.clock.now),
            open_run=lambda run: CountedStorage(plain(run), bill.count),  # type: ignore[arg-type]
            readers=self.readers,
        )

    @contextmanager
    def invocation(self, gigabytes: float) -> Iterator[None]:
        """Bill one invocation of a function: its own time, and that of its calls."""
        before = self.bill.used.copy()
        self.readers.begin()
        begin = time.process_time()
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            yield
        lines = printed.getvalue().splitlines()
        self.bill.used["log byte"] += LOG_LINES + 3 * LOG_EVENT
        self.bill.used["log byte"] += sum(len(line.encode()) + LOG_EVENT for line in lines)
        calls, requests = (
            sum(self.bill.used[kind] - before[kind] for kind in kinds)
            for kinds in (("table call",), ("S3 GET", "S3 PUT", "S3 LIST"))
        )
        requests -= self.readers.files
        processor = time.process_time() - begin - self.readers.processor + self.readers.seconds_of_asking()
        # The tables and buckets in memory make no calls: boto3's own time comes on top.
        processor += calls * self.boto[0] + requests * self.boto[1]
        seconds = processor / (CPU_OF_A_GB * gigabytes) + calls * DYNAMODB_CALL + self.readers.waited
        seconds += math.ceil(requests / REQUESTS_AT_A_TIME) * S3_CALL
        self.bill.used["invocation"] += 1
        self.bill.used["GB-second"] += seconds * gigabytes
        self.bill.used["seconds"] += seconds

    def ingest(self, batches: list[list[str]]) -> None:
        """Deliver batches of messages as Lambda receives them from the queue."""
        for batch in batches:
            calls = math.ceil(len(batch) / 10)
            self.bill.used["SQS request"] += len(batch) + 2 * calls  # sent, received, deleted
            self.bucket.notifications = batch
            with self.invocation(INGEST_GB):
                self.deliver(batch=len(batch))

    def evaluate(self) -> None:
        """Execute the started workflows, as the state machine does."""
        for started in list(self.workflow.started.values()):
            before = self.bill["seconds"]
            with self.invocation(EVALUATE_GB):
                self.workflow.started = {
                    name: other for name, other in self.workflow.started.items() if other is started
                }
                self.execute()
            self.bill.used["execution"] += 1
            seconds = math.ceil((self.bill["seconds"] - before + 0.05) * 10) / 10
            self.bill.used["execution GB-second"] += seconds * 0.0625
        self.workflow.started = {}
        self.bill.used["SQS request"] += 3 * len(self.checks.waiting)
        self.checks.waiting = []


def measure(
    workers: int, steps: int, rules: int, *, first: int = 0, replicas: bool = False
) -> tuple[Bill, int]:
    """Return the bill of `steps` steps of a run in progress, and the most writes of one key per step.

    Of `replicas` the first worker saves tensors and the others digests.
    """
    chance = random.Random(workers)
    world = BilledWorld()
    place = world.place("experiments/2026-11-21/mnist")
    chosen = [{**RULES[n % len(RULES)], "name": f"rule {n}"} for n in range(rules)]
    place.write("rules.json", json.dumps({"version": 1, "default_rules": False, "rules": chosen}).encode())
    kind: dict[str, Any] = {"replicas": workers} if replicas and workers > 1 else {"num_workers": workers}
    savers = [Saver(place, f"worker_{n}", **kind) for n in range(workers)]
    for saver in savers[:1] if workers > 100 else savers:
        saver.begin()
    world.settle()
    pretend_to_be_at(world, savers, first)
    tensors = {
        "gradient/fc": np.ones(16, np.float32),
        "weight/fc": np.ones(16, np.float32),
        "loss": np.ones(1, np.float32),
    }
    hottest = stored = 0
    for step in range(steps + 3):
        if step == 3:  # the first steps create what later ones reuse
            world.bill.used.clear()
            stored = stored_bytes(world.items)
        world.bill.writes_by_key.clear()
        for name, value in tensors.items():
            tensors[name] = value * 0.99
        for saver in savers:
            saver.save(first + step, DIGESTS if replicas and saver is not savers[0] else tensors)
        world.ingest(cut(world.bucket.notifications, workers, chance))
        world.evaluate()
        hottest = max(hottest, *world.bill.writes_by_key.values())
        world.clock.time += 1
    group = world.index.groups.get("runs/experiments/2026-11-21/mnist", "builtin")
    assert group is not None
    assert group.cursor == first + steps + 2, "not every step was evaluated"
    assert len(group.rules) == rules
    world.bill.used["table byte"] = stored_bytes(world.items) - stored
    return world.bill, hottest


def pretend_to_be_at(world: BilledWorld, savers: list[Saver], first: int) -> None:
    """Fill the step index with the steps before `first`, all evaluated."""
    if first == 0:
        return
    run = "runs/experiments/2026-11-21/mnist"
    tokens = frozenset(token_of(saver.worker, is_index=index) for saver in savers for index in (False, True))
    for step in range(first):
        described: dict[str, Any] = {"m": "TRAIN", "ms": step, "l": "0" * 16, "up": 0.5, "ix": 0.5}
        item: dict[str, Any] = {
            "pk": items.run_pk(run),
            "sk": items.step_sk(0, step),
            "f": tokens,
            **described,
        }
        MemoryItems.put(world.items, item)
    group = world.index.groups.get(run, "builtin")
    assert group is not None
    MemoryItems.put(world.items, items.item_of_group(run, replace(group, cursor=first - 1)))
    names = ("gradient/fc", "loss", "weight/fc")
    layout = StepLayout("0" * 16, names, "TRAIN", 0, tuple(saver.worker for saver in savers))
    MemoryItems.put(world.items, items.item_of_layout(run, layout))
    for saver in savers:
        saver.save(first - 1, {"gradient/fc": 1.0, "weight/fc": 1.0, "loss": 1.0})
    world.bucket.notifications.clear()


def cut(tokens: list[str], workers: int, chance: random.Random) -> list[list[str]]:
    """Return the messages of a step in batches: single without a window, per poller with 2 s."""
    if workers == 1:
        return [[message] for message in tokens]
    tokens = list(tokens)
    chance.shuffle(tokens)
    if workers <= 16:
        return [tokens[at : at + 10] for at in range(0, len(tokens), 10)]
    return [tokens[poller::POLLERS] for poller in range(POLLERS)]


BUDGETS = {1: (6, 14), 8: (None, 28), 1024: (120, 2300)}
"""The most write units that a step may take, and dollars for a million steps, by the number of workers."""
STEPS = {1: 60, 8: 40, 1024: 4}
"""The steps that are measured, by the number of workers."""
COUNTED = {
    "write units": "write unit",
    "read units": "read unit",
    "S3 GETs": "S3 GET",
    "SQS": "SQS request",
    "invocations": "invocation",
    "GB-s": "GB-second",
}
"""What the tables show of a bill, by the headings of their columns."""


def main() -> int:
    """Print the tables; return 1 if something costs more than promised."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rules", type=int, default=10)
    rules = parser.parse_args().rules
    bills = report_counts(rules)
    failed = [*report_dollars(bills), *report_rules_and_length()]
    print(assumptions())
    plan_cost.report(rules, measure)
    failed += default_set.report(lambda: BilledWorld(settings=settings(default_rules=("default",))))
    failed += idle.report()
    for problem in failed:
        print(f"NOT HELD: {problem}")
    return bool(failed)


def report_counts(rules: int) -> dict[int, Bill]:
    """Print what a step takes, by the number of workers; return the bills of `STEPS`."""
    print(f"\nA saved step, {rules} rules, no findings; counted, per step:\n")
    print_row("workers", *COUNTED, "hottest key")
    bills = {}
    for workers, steps in STEPS.items():
        bills[workers], hottest = measured_quietly(workers, steps, rules)
        print_row(str(workers), *counts(bills[workers], steps), f"{hottest} writes")
    return bills


def report_dollars(bills: Mapping[int, Bill]) -> Iterator[str]:
    """Print what a million steps cost; yield what is above its budget."""
    print("\nDollars per million saved steps:\n")
    print_row("workers", *KINDS, "all", "promised", "EventBridge")
    for workers, bill in bills.items():
        steps = STEPS[workers]
        most_units, most_dollars = BUDGETS[workers]
        dollars = dollars_of(bill, steps)
        total = sum(dollars.values())
        with_eventbridge = total + 2 * workers * PRICES["event"] * 1e6
        parts = (f"{dollar:,.2f}" for dollar in dollars.values())
        totals = (f"{total:,.2f}", f"<= {most_dollars:,}", f"{with_eventbridge:,.2f}")
        print_row(str(workers), *parts, *totals)
        if total > most_dollars:
            yield f"{workers} workers cost ${total:,.2f}, promised are ${most_dollars:,}"
        units = bill["write unit"] / steps
        if most_units is not None and units > most_units:
            yield f"{workers} workers take {units:.2f} write units, promised are {most_units}"


def report_rules_and_length() -> Iterator[str]:
    """Print what a step takes with few and many rules, early and late; yield what reads too much."""
    print("\nThe same at 1 worker, by the number of rules and the length of the run:\n")
    print_row("rules", "at step", *COUNTED)
    steps = 20
    for rules, first in ((1, 10), (20, 10), (1, 100_000), (20, 100_000)):
        bill, _ = measured_quietly(1, steps, rules, first=first)
        print_row(str(rules), f"{first:,}", *counts(bill, steps))
        if bill["S3 GET"] / steps > 2 or bill["S3 LIST"]:
            yield f"{rules} rules at step {first} take more than 2 GETs, or a LIST"


def measured_quietly(workers: int, steps: int, rules: int, *, first: int = 0) -> tuple[Bill, int]:
    """Measure without the lines that the handlers log."""
    with contextlib.redirect_stdout(io.StringIO()):
        return measure(workers, steps, rules, first=first)


def counts(bill: Bill, steps: int) -> list[str]:
    """What one of the steps took, in the order of `COUNTED`."""
    return [f"{bill[kind] / steps:,.2f}" for kind in COUNTED.values()]


def print_row(*cells: str) -> None:
    """Print a row of a table."""
    print("".join(cell.rjust(13) for cell in cells))


def assumptions() -> str:
    """What the tables rest on that is not counted."""
    table_call, s3_call = (seconds * 1000 for seconds in boto_seconds())
    return (
        f"\nPrices: the list of {PRICED_IN}."
        f"\nAssumed: a table call takes {DYNAMODB_CALL * 1000:.0f} ms, one of S3 {S3_CALL * 1000:.0f} ms, "
        f"{REQUESTS_AT_A_TIME} at a time; {CPU_OF_A_GB} of this machine's core for each GB of memory; "
        f"boto3 takes {table_call:.1f} ms of it for a table call and {s3_call:.1f} ms for S3. Without a "
        "batch window each message comes alone (1 worker) or ten at a time (8),\n"
        f"with one of 2 s a step's messages come to {POLLERS} pollers (1,024). One step a second. "
        f"Items of the step index are kept for {MONTHS_KEPT} months, with point-in-time recovery."
    )


if __name__ == "__main__":
    sys.exit(main())
