"""Every night -> a backtest of the runs that saved a step on the day before, by the default rules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from functions.ports import Clock, Workflow
from smdebug.backtesting.bundles.bundle_file import bundle_name
from smdebug.backtesting.deployed.plan import (
    Capacity,
    PlannedRun,
    chunks_of,
    estimate,
    manifest_key,
    refuse_expensive,
    rules_counted,
)
from smdebug.backtesting.deployed.task import Task, bundles_in, write_task
from smdebug.backtesting.finding_runs import FoundRun
from smdebug.backtesting.question import Question
from smdebug.files.names import INDEX_FOLDER
from smdebug.service.step_index import items
from smdebug.service.step_index.item_reader import ItemReader
from smdebug.storage import Storage


@dataclass(frozen=True)
class NightlyPorts:
    """What planning the nightly backtest needs."""

    bucket: Storage
    index: ItemReader
    workflow: Workflow
    clock: Clock
    rules: tuple[str, ...]
    capacity: Capacity
    budget: float


def plan_nightly(ports: NightlyPorts) -> dict[str, Any]:
    """Write the plan of last night and start it; say what it is. Done twice, it starts one backtest."""
    now = datetime.fromtimestamp(ports.clock.now(), UTC)
    day = now.date() - timedelta(days=1)
    begin = datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()
    name = f"nightly-{day.isoformat()}"
    runs = sorted(runs_between(ports, begin, begin + 86_400), key=lambda planned: planned.run.location)
    if not runs:
        return {"backtest": name, "runs": 0}
    question = Question(ports.rules)
    rules = rules_counted(question)
    chunks = chunks_of(runs, rules)
    estimated = estimate(chunks, rules, ports.capacity, custom=False)
    refuse_expensive(estimated, ports.budget)
    memory_mb = ports.capacity.memory_mb
    priced = [(chunk, chunk.work(rules).dollars(memory_mb, custom=False)) for chunk in chunks]
    if not ports.bucket.exists(manifest_key(name)):
        write_task(ports.bucket, name, Task.of(question, ports.budget), priced)
    ports.workflow.start(name, {"backtest": name})
    return {"backtest": name, **estimated.to_dict()}


def runs_between(ports: NightlyPorts, begin: float, end: float) -> Iterator[PlannedRun]:
    """Yield the runs of the stack's bucket whose newest step was saved between these moments."""
    own = f"{ports.bucket.location.removeprefix('s3://').strip('/')}/"
    bundles = bundles_in(ports.bucket)
    seen: set[str] = set()  # a run that ends meanwhile is in both lists
    for pk in (items.RUNS, items.PAST_RUNS):
        for item in ports.index.query(pk):
            run = str(item["sk"])
            if run in seen:
                continue
            seen.add(run)
            saved = _saved_at(ports.index, run) if run.startswith(own) else None
            if saved is not None and begin <= saved < end:
                steps = sum(1 for _ in ports.bucket.list(f"{run.removeprefix(own)}/{INDEX_FOLDER}"))
                place = f"s3://{run}"
                found = FoundRun(place, run.rpartition("/")[2], place)
                yield PlannedRun(found, steps, bundle_name(place) in bundles)


def _saved_at(index: ItemReader, run: str) -> float | None:
    """Return when the newest step of a run was saved; None if it has none."""
    record = index.get(items.run_pk(run), items.RUN)
    if record is None:
        return None
    prefix = items.steps_prefix(items.run_of(record).training_run)
    newest = index.query(
        items.run_pk(run), first=prefix, last=prefix + items.LAST, limit=1, newest_first=True
    )
    return max((step.uploaded for step in items.steps_of(newest)), default=None)
