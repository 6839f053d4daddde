"""The requests of a judged run, counted where they are made, are those of which the price is estimated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from smdebug.backtesting.deployed import plan
from smdebug.backtesting.deployed.plan import (
    Capacity,
    Estimate,
    PlannedRun,
    Work,
    chunks_of,
    estimate,
    work_of,
)
from smdebug.backtesting.finding_runs import FoundRun
from smdebug.backtesting.judging import judge
from smdebug.backtesting.question import Question
from smdebug.storage import s3_clients
from tests.backtesting.many_runs import make_run
from tests.support.mocked_aws import mocked_aws

ROOT = Path(__file__).parents[3]
BUNDLES = "s3://runs/backtests/bundles"
KEYS_OF_LISTING = 10
READS = ("GetObject", "HeadObject")


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """The requests to S3, whose listings have few keys, so that a short run needs several."""
    seen: Counter[str] = Counter()
    monkeypatch.setenv("MOTO_S3_DEFAULT_MAX_KEYS", str(KEYS_OF_LISTING))
    monkeypatch.setattr(plan, "KEYS_OF_LISTING", KEYS_OF_LISTING)
    make = s3_clients._make_client

    def made(given: Any) -> Any:
        client = make(given)

        def note(model: Any, **_: Any) -> None:
            seen[model.name] += 1

        client.meta.events.register("before-call.s3", note)
        return client

    monkeypatch.setattr(s3_clients, "_make_client", made)
    with mocked_aws():
        boto3.client("s3").create_bucket(Bucket="runs")
        yield seen


@pytest.mark.parametrize("steps", [20, 45])
@pytest.mark.parametrize("rules", ["all", "default"])
def test_a_run_takes_the_requests_of_the_estimate_the_first_time_and_later(
    requests: Counter[str], steps: int, rules: str
):
    found = FoundRun("s3://runs/a", "a", "s3://runs/a")
    make_run("s3://runs/a", [2.0] * steps)  # type: ignore[arg-type]

    def counted() -> Work:
        requests.clear()
        judge(Question((rules,), bundles=BUNDLES, keeps_bundles=True), found)
        gets = sum(requests[name] for name in READS)
        lists, puts = requests["ListObjectsV2"], requests["PutObject"]
        assert sum(requests.values()) == gets + lists + puts
        return Work(gets=gets, lists=lists, puts=puts)

    for is_bundled in (False, True):
        work, planned = counted(), work_of(PlannedRun(found, steps, is_bundled), 10)
        assert (work.gets, work.lists, work.puts) == (planned.gets, planned.lists, planned.puts)


def estimated(*, is_bundled: bool) -> Estimate:
    """Return the estimate of the budget: 5,000 runs, 2,000 steps, 10 rules, 500 children."""
    places = [f"s3://r/{number}" for number in range(5_000)]
    runs = [PlannedRun(FoundRun(place, place, place), 2_000, is_bundled) for place in places]
    return estimate(chunks_of(runs, 10), 10, Capacity(500, 1024), custom=False)


def test_five_thousand_runs_with_bundles_cost_less_than_three_dollars_and_take_less_than_ten_minutes():
    later, first = estimated(is_bundled=True), estimated(is_bundled=False)
    assert later.dollars < 3
    assert later.seconds < 600
    page = " ".join((ROOT / "docs" / "backtest.md").read_text(encoding="utf-8").split())
    assert f"cost **${later.dollars:.2f} with bundles**, or ${first.dollars:.2f} without" in page
    assert f"take about {round(later.seconds, -1):.0f} s with 500 calls at once" in page


def test_the_formula_on_the_page_gives_the_estimate():
    r, s, n, calls = 5_000, 2_000, 10, 2_500
    seconds = r * (0.3 + s * (0.0015 + 0.0004 * n))
    with_bundles = r * (4 * 0.0000004 + (1 + s / 500) * 0.000005)
    without = r * ((8 + 2 * s) * 0.0000004 + (2 + s / 500) * 0.000005)
    for is_bundled, requests in ((True, with_bundles), (False, without)):
        dollars = seconds * 0.0000144 + requests + calls * 0.00004
        assert dollars == pytest.approx(estimated(is_bundled=is_bundled).dollars, rel=0.03)
