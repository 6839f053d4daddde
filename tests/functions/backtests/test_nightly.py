"""The nightly backtest: yesterday's runs, by the default rules of today."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from functions.adapters.in_memory import HandClock, MemoryItems, MemoryWorkflow
from functions.backtests.nightly import NightlyPorts, plan_nightly
from functions.step_index import StepIndex
from smdebug.backtesting.deployed.plan import Capacity, manifest_key
from smdebug.backtesting.deployed.task import read_task
from smdebug.exceptions import SMDebugValueError
from smdebug.service.records import RunRecord
from smdebug.service.step_index import items
from smdebug.storage.memory import MemoryStorage

NOW = datetime(2026, 2, 1, 2, 30, tzinfo=UTC).timestamp()


class Bucket(MemoryStorage):
    """Objects in memory that say to be those of a bucket."""

    @property
    def location(self) -> str:
        return "s3://runs"


@pytest.fixture
def ports(request: pytest.FixtureRequest) -> NightlyPorts:
    return NightlyPorts(
        Bucket(request.node.name),
        MemoryItems(),
        MemoryWorkflow(),
        HandClock(NOW),
        ("default",),
        Capacity(2, 1024),
        budget=5.0,
    )


def saved(ports: NightlyPorts, run: str, moment: str, steps: int = 3) -> None:
    """Record a run whose last step was saved then."""
    index: Any = StepIndex(ports.index, kept_for=1e9)  # type: ignore[arg-type]
    when = datetime.fromisoformat(moment).replace(tzinfo=UTC).timestamp()
    index.list_run(run, when)
    index.begin_run(RunRecord(run, num_workers=1, training_run=1))
    for step in range(steps):
        name = f"{run.partition('/')[2]}/index/000000000/{step:012}_worker_0.json"
        ports.bucket.write(name, b"{}")
        tokens = frozenset(items.token_of("worker_0", is_index=is_index) for is_index in (True, False))
        index.note_arrivals(run, 1, step, 0, tokens, uploaded=when, indexed=when)


def test_the_runs_of_the_day_before_are_planned_and_started(ports: NightlyPorts):
    saved(ports, "runs/a", "2026-01-31T00:00:00")
    saved(ports, "runs/b", "2026-01-31T23:59:59")
    saved(ports, "runs/before", "2026-01-30T23:59:59")
    saved(ports, "runs/today", "2026-02-01T00:00:00")
    saved(ports, "other-bucket/a", "2026-01-31T12:00:00")
    ports.index.delete(items.RUNS, "runs/a")  # it has ended
    for run in ("runs/a", "runs/b"):  # the other one is being moved
        ports.index.put({"pk": items.PAST_RUNS, "sk": run})
    said = plan_nightly(ports)
    assert (said["backtest"], said["runs"], said["steps"]) == ("nightly-2026-01-31", 2, 6)
    (chunk,) = json.loads(bytes(ports.bucket.read(manifest_key("nightly-2026-01-31"))))
    assert [run[2] for run in chunk["runs"]] == ["s3://runs/a", "s3://runs/b"]
    assert read_task(ports.bucket, "nightly-2026-01-31").question.rules == ("default",)
    assert ports.workflow.started == {"nightly-2026-01-31": {"backtest": "nightly-2026-01-31"}}


def test_planned_twice_it_is_one_backtest(ports: NightlyPorts):
    saved(ports, "runs/a", "2026-01-31T12:00:00")
    plan_nightly(ports)
    first = bytes(ports.bucket.read(manifest_key("nightly-2026-01-31")))
    saved(ports, "runs/late", "2026-01-31T13:00:00")
    plan_nightly(ports)
    assert bytes(ports.bucket.read(manifest_key("nightly-2026-01-31"))) == first
    assert len(ports.workflow.started) == 1


def test_a_day_without_runs_starts_nothing(ports: NightlyPorts):
    assert plan_nightly(ports) == {"backtest": "nightly-2026-01-31", "runs": 0}
    assert not ports.workflow.started


def test_a_night_beyond_its_budget_is_left_out(ports: NightlyPorts):
    saved(ports, "runs/a", "2026-01-31T12:00:00")
    with pytest.raises(SMDebugValueError, match="the budget is"):
        plan_nightly(NightlyPorts(**{**vars(ports), "budget": 1e-6}))
    assert not ports.workflow.started
