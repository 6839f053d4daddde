"""The cost of sweeping, which checks each live run every five minutes."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO
from typing import Any

from bench.costs.bill import PRICED
from bench.costs.cost import CPU_OF_A_GB, DYNAMODB_CALL, S3_CALL, BilledWorld
from functions.arrivals.missed_files import sweep
from smdebug.storage.memory import MemoryStorage
from tests.functions.saver import HEALTHY, Saver

RUNS = 40  # that are counted
SWEEPS_A_DAY = 24 * 60 / 5
GIGABYTES = 0.5
PROMISED = 0.65  # dollars a day for 1,000 runs


class _BilledObjects:
    """The bucket, which bills its requests."""

    def __init__(self, objects: Any, bill: Any):
        self._objects, self._bill = objects, bill

    def read(self, bucket: str, key: str) -> bytes:
        self._bill.used["S3 GET"] += 1
        return bytes(self._objects.read(bucket, key))

    def modified(self, bucket: str, key: str) -> float | None:
        self._bill.used["S3 GET"] += 1
        found: float | None = self._objects.modified(bucket, key)
        return found

    def list(self, bucket: str, prefix: str, after: str | None = None) -> Iterable[Any]:
        self._bill.used["S3 LIST"] += 1
        return list(self._objects.list(bucket, prefix, after))


def dollars_a_day() -> float:
    """Return the cost of sweeping 1,000 complete runs that save a step a minute."""
    world = BilledWorld()
    places: list[MemoryStorage] = [world.place(f"run-{number}") for number in range(RUNS)]
    for place in places:
        worker = Saver(place).begin()
        worker.save(0, HEALTHY)
        with redirect_stdout(StringIO()):  # the handlers' log
            world.settle()
    world.clock.time += 60
    billed = _BilledObjects(world.bucket, world.bill)
    swept = replace(
        world.world,
        objects=billed,
        settings=replace(world.world.settings, swept_at_once=1),
    )
    world.bill.used.clear()
    begin = time.process_time()
    with redirect_stdout(StringIO()):
        sweep(swept)
    own = time.process_time() - begin
    bill = world.bill
    requests = bill["S3 GET"] + bill["S3 LIST"]
    processor = own + bill["table call"] * world.boto[0] + requests * world.boto[1]
    waiting = bill["table call"] * DYNAMODB_CALL + requests * S3_CALL
    seconds = processor / (CPU_OF_A_GB * GIGABYTES) + waiting / world.world.settings.swept_at_once
    bill.used["GB-second"] = seconds * GIGABYTES
    total = sum(PRICED[what] * count for what, count in bill.used.items() if what in PRICED)
    return total / RUNS * 1000 * SWEEPS_A_DAY


def report() -> list[str]:
    """Print the price; return the promises that do not hold."""
    dollars = dollars_a_day()
    print(f"\nSweeping 1,000 live runs: ${dollars:.2f} a day, promised: <= ${PROMISED}")
    return [] if dollars <= PROMISED else [f"sweeping 1,000 runs costs ${dollars:.2f} a day"]


if __name__ == "__main__":
    for problem in report():
        print(f"NOT HELD: {problem}")
