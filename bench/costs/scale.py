"""`make bench-scale`: the cost of ending a long run whose workers left no closing notes.

The functions of the deployed application list and check a run in memory. Their processor time is measured,
that of boto3 too; the duration of AWS's own calls is assumed. The clock of the functions advances by both, so
that they stop and continue as they would on Lambda. Small runs are counted, and long ones extrapolated: calls
and time grow with the number of files, and no invocation takes longer than its working time and one page.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import math
import time
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from bench.costs import boto_cpu
from bench.costs.cost import CPU_OF_A_GB, DYNAMODB_CALL
from functions.adapters.in_memory import HandClock, MemoryItems, MemoryObject
from functions.lifecycle.last_listing import finish
from functions.lifecycle.summary import finish_run
from functions.step_index import StepIndex
from functions.world import World
from smdebug.files.names import event_key, index_key
from smdebug.service.records import GroupRecord, RuleRecord, RuleStatus, RunRecord, RunState
from smdebug.service.step_index import items
from smdebug.service.step_index.item_reader import KeyRange
from smdebug.service.step_index.items import token_of
from smdebug.storage.memory import MemoryStorage
from tests.functions.deployed_settings import KEPT_FOR, settings
from tests.support.item_size import item_size

GIGABYTES = 0.5  # of the function that ends runs
LIST_CALL = 0.1  # seconds for a page of a listing
QUERY_PAGE = 1_000_000  # bytes
QUERY_SECONDS_A_MB = 0.1
MOST_SECONDS, MOST_MEGABYTES = 60.0, 512.0
BASE_MEGABYTES = 110.0  # of a warm process: Python, boto3, NumPy and the layer
RUN = "runs/long"
#: Workers, the steps that are counted, and the steps of the run that it stands for.
RUNS = ((1, 8_000, 1_000_000), (64, 400, 100_000), (1024, 24, 10_000))
_BEGIN = 1_700_000_000.0


@dataclass
class Spent:
    """The time and memory that one invocation uses."""

    calls: Counter[str] = field(default_factory=Counter)
    waiting: float = 0.0  # for AWS
    processor: float = 0.0  # of boto3


class Meter:
    """The clock of the functions, at Lambda's speed."""

    def __init__(self, clock: HandClock, boto: dict[str, float]):
        self.clock, self.boto = clock, boto
        self.spent = Spent()
        self._since = time.process_time()

    def begin(self) -> None:
        """Begin an invocation."""
        self.spent = Spent()
        self._since = time.process_time()
        self._begun = self.clock.time

    def seconds(self) -> float:
        """Return how long the invocation has taken."""
        own = time.process_time() - self._since
        return (own + self.spent.processor) / (CPU_OF_A_GB * GIGABYTES) + self.spent.waiting

    def call(self, what: str, *, waiting: float, objects: int = 0, of: str = "") -> None:
        """Count a call with its waiting time and the number of objects that boto3 parses."""
        self.spent.calls[what] += 1
        self.spent.waiting += waiting
        self.spent.processor += self.boto["call"] + objects * self.boto.get(of, 0.0)

    def now(self) -> float:
        """Return the time of day."""
        return self._begun + self.seconds()


class MeteredItems(MemoryItems):
    """A table whose calls take time."""

    meter: Meter

    def get(self, pk: str, sk: str) -> Any:
        self.meter.call("table", waiting=DYNAMODB_CALL)
        return super().get(pk, sk)

    def read_range(self, keys: KeyRange) -> list[Any]:
        found = super().read_range(keys)
        size = sum(map(item_size, found))
        pages = max(1, math.ceil(size / QUERY_PAGE))
        for _ in range(pages):
            waiting = DYNAMODB_CALL + size / pages / 1e6 * QUERY_SECONDS_A_MB
            self.meter.call("table", waiting=waiting, objects=len(found) // pages, of="item")
        return found

    def update(self, pk: str, sk: str, **how: Any) -> Any:
        self.meter.call("table", waiting=DYNAMODB_CALL)
        return super().update(pk, sk, **how)


class LongRun:
    """The listing of a run in a bucket, generated while it is read."""

    def __init__(self, meter: Meter, workers: int, steps: int):
        self._meter, self._steps = meter, steps
        self._workers = sorted(f"worker_{number}" for number in range(workers))

    def read(self, bucket: str, key: str) -> bytes:
        raise AssertionError("no file of an old step is read")

    def modified(self, bucket: str, key: str) -> float | None:
        return None

    def list(self, bucket: str, prefix: str, after: str | None = None) -> Iterator[MemoryObject]:
        key_of = event_key if "/events/" in prefix else index_key
        if "/collections/" in prefix:
            self._meter.call("LIST", waiting=LIST_CALL)
            return
        listed = 0
        for step in range(_step_in(after), self._steps):
            for worker in self._workers:
                key = f"long/{key_of(step, worker)}"
                if after is not None and key <= after:
                    continue
                if listed % 1000 == 0:
                    self._meter.call("LIST", waiting=LIST_CALL, objects=1000, of="key")
                listed += 1
                yield MemoryObject(key, _BEGIN - 10_000)


def _step_in(key: str | None) -> int:
    if key is None:
        return 0
    digits = [part[:12] for part in key.split("/") if part[:12].isdigit() and len(part) >= 12]
    return int(digits[-1]) if digits else 0


class _Leaves:
    """The schedules that continue the work in AWS."""

    def __init__(self) -> None:
        self.left: list[dict[str, Any]] = []

    def leave(self, message: Any, *, after_seconds: int) -> None:
        self.left.append(dict(message))

    def wake(self, run: str, *, at: float) -> None:
        raise AssertionError("an ended run is not watched for silence")


class _Starts:
    def start(self, name: str, request: Any) -> None:
        pass


@dataclass(frozen=True)
class Result:
    """The end of a run: of all its invocations."""

    files: int
    calls: Counter[str]
    seconds: float
    longest: float
    invocations: int
    megabytes: float


def end_of(workers: int, steps: int, boto: dict[str, float]) -> Result:
    """End a run in memory twice, as tracing memory takes time; return what that took."""
    timed = _end_of(workers, steps, boto, traced=False)
    return replace(timed, megabytes=_end_of(workers, steps, boto, traced=True).megabytes)


def _end_of(workers: int, steps: int, boto: dict[str, float], *, traced: bool) -> Result:
    clock = HandClock(_BEGIN)
    meter = Meter(clock, boto)
    table = MeteredItems()
    table.meter = meter
    leaves = _Leaves()
    meter.begin()
    world = World(
        index=StepIndex(table, kept_for=KEPT_FOR, now=meter.now),
        objects=LongRun(meter, workers, steps),
        workflow=_Starts(),
        checks=leaves,
        schedules=leaves,
        clock=meter,
        open_run=lambda run: MemoryStorage(run),
        lender=None,  # type: ignore[arg-type]
        settings=settings(default_rules=("ExplodingTensor",)),
    )
    _fill(table, workers, steps)
    calls: Counter[str] = Counter()
    taken: list[float] = []
    peak = 0.0
    messages = [{"finish": RUN}]
    while messages:
        message = messages.pop(0)
        leaves.left.clear()
        if traced:
            tracemalloc.start()
        meter.begin()
        with contextlib.redirect_stdout(io.StringIO()):
            if "finish" in message:
                finish(world, message["finish"], "bench")
                messages += [left for left in leaves.left if "finish" in left] or [{"sum": RUN}]
            else:
                finish_run(world, message["sum"])
        taken.append(meter.seconds())
        calls += meter.spent.calls
        if traced:
            peak = max(peak, tracemalloc.get_traced_memory()[1] / 1e6)
            tracemalloc.stop()
        clock.time += taken[-1] + 60
    record = world.index.run(RUN)
    assert record is not None
    assert record.state is RunState.FINISHED, record.state
    files = 2 * workers * steps
    return Result(files, calls, sum(taken), max(taken), len(taken), peak)


def _fill(table: MemoryItems, workers: int, steps: int) -> None:
    """Put a fully evaluated run that waits for its end into the table."""
    names = [f"worker_{number}" for number in range(workers)]
    shards: dict[int, frozenset[str]] = {}
    for name in names:
        tokens = {token_of(name, is_index=is_index) for is_index in (False, True)}
        shard = items.shard_of(name)
        shards[shard] = shards.get(shard, frozenset()) | tokens
    pk = items.run_pk(RUN)
    for step in range(steps):
        for shard, files in shards.items():
            more = {"m": "TRAIN", "ms": step, "l": "0" * 16} if shard == 0 else {}
            item = {"pk": pk, "sk": items.step_sk(0, step, shard), "f": files}
            MemoryItems.put(table, {**item, "up": 0.5, "ix": 0.5, "expires": 2e9, **more})
    rule = RuleRecord("r", "r", status=RuleStatus.NO_ISSUES_FOUND)
    # A lost first step is the doubt that has the whole run listed.
    group = GroupRecord("builtin", cursor=steps - 1, rules=(rule,), evaluated=steps - 1, finished=True)
    group = replace(group, lost=frozenset({0}))
    MemoryItems.put(table, items.item_of_group(RUN, group))
    record = RunRecord(
        RUN,
        groups=("builtin",),
        state=RunState.ENDING,
        ended_at=_BEGIN - 3600,
        first_seen=_BEGIN - 86_400,
        num_workers=workers,
        run_id="r",
        wide=len(shards) > 1,
    )
    MemoryItems.put(table, items.item_of_run(record))


def boto_times() -> dict[str, float]:
    """Measure the processor time of boto3: of a call, and of each item and key in an answer."""
    item: dict[str, dict[str, Any]] = {
        "pk": {"S": "RUN#runs/long"},
        "sk": {"S": "STEP#0000#000000000001#0000"},
    }
    item |= {
        "f": {"SS": ["e0", "i0"]},
        "up": {"N": "0.5"},
        "ix": {"N": "0.5"},
        "l": {"S": "0" * 16},
    }
    page = json.dumps({"Items": [item] * 500, "Count": 500}).encode()
    key = "<Contents><Key>long/events/000000000001/000000000001_worker_0.tfevents</Key><LastModified>"
    key += "2026-11-22T00:00:00.000Z</LastModified><ETag>&quot;0&quot;</ETag><Size>1</Size></Contents>"
    listing = f"<ListBucketResult>{key * 1000}</ListBucketResult>".encode()
    call = boto_cpu.seconds_of_table_call()
    return {
        "call": call,
        "item": max(0.0, boto_cpu.seconds_of_query(page) - call) / 500,
        "key": max(0.0, boto_cpu.seconds_of_listing(listing) - call) / 1000,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description="Count what the end of a long run takes.")
    parser.add_argument("--part", type=float, default=1.0, help="count this part of each run")
    arguments = parser.parse_args()
    boto = boto_times()
    print(
        "\nThe end of a run without closing notes whose first step was lost: all files are listed.\n\n"
        "Counted, per million files:\n"
    )
    columns = ("workers", "steps", "files", "LISTs", "table calls", "seconds", "MB", "longest")
    print("".join(column.rjust(13) for column in columns))
    failed, rows = [], []
    for workers, counted, steps in RUNS:
        result = end_of(workers, max(10, int(counted * arguments.part)), boto)
        scale = 1e6 / result.files
        megabytes = BASE_MEGABYTES + result.megabytes
        cells = (
            f"{workers:,}",
            f"{result.files // 2 // workers:,}",
            f"{result.files:,}",
            f"{result.calls['LIST'] * scale:,.0f}",
            f"{result.calls['table'] * scale:,.0f}",
            f"{result.seconds * scale:,.0f}",
            f"{megabytes:,.0f}",
            f"{result.longest:,.1f} s",
        )
        print("".join(cell.rjust(13) for cell in cells))
        files = 2 * workers * steps
        seconds = result.seconds * files / result.files
        page = result.seconds / max(1, result.calls["LIST"])
        work = settings().work
        longest = min(work, seconds) + page
        rows.append((workers, steps, files, seconds, math.ceil(seconds / work), longest, megabytes))
        if longest > MOST_SECONDS or result.longest > MOST_SECONDS:
            failed.append(f"{workers} workers: an invocation takes {longest:.0f} s")
        if megabytes > MOST_MEGABYTES:
            failed.append(f"{workers} workers: an invocation takes {megabytes:.0f} MB")
    print("\nExtrapolated, in proportion to the files:\n")
    headings = ("workers", "steps", "files", "seconds", "invocations", "longest", "MB")
    print("".join(column.rjust(13) for column in headings))
    for workers, steps, files, seconds, invocations, longest, megabytes in rows:
        last = (f"{invocations:,}", f"{longest:,.1f} s", f"{megabytes:,.0f}")
        numbers = (f"{workers:,}", f"{steps:,}", f"{files:,}", f"{seconds:,.0f}", *last)
        print("".join(cell.rjust(13) for cell in numbers))
    print(
        f"\nAssumed: {GIGABYTES} GB and {CPU_OF_A_GB} of this machine's core for each GB; a table call takes "
        f"{DYNAMODB_CALL * 1000:.0f} ms and {QUERY_SECONDS_A_MB * 1000:.0f} ms more for each MB, a page of a "
        f"listing {LIST_CALL * 1000:.0f} ms; boto3 takes {boto['call'] * 1000:.1f} ms of processor time a "
        f"call, {boto['item'] * 1e6:.0f} us for an item and {boto['key'] * 1e6:.0f} us for a listed key; a "
        f"process has {BASE_MEGABYTES:.0f} MB before it begins.\nAn invocation stops after "
        f"{settings().work:.0f} s of work and its last page, and leaves the rest to the next one. "
        f"Promised: <= {MOST_SECONDS:.0f} s and <= {MOST_MEGABYTES:.0f} MB."
    )
    for problem in failed:
        print(f"NOT HELD: {problem}")
    return bool(failed)


if __name__ == "__main__":
    raise SystemExit(main())
