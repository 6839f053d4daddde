"""Which runs a call judges, and what is said about their price beforehand."""

from __future__ import annotations

from pathlib import Path

import pytest

from smdebug.backtesting.deployed.plan import (
    CHUNK_SECONDS,
    MOST_IN_CHUNK,
    MOST_IN_CUSTOM_CHUNK,
    Capacity,
    PlannedRun,
    chunks_of,
    estimate,
    in_dollars,
    refuse_expensive,
    rules_counted,
    work_of,
)
from smdebug.backtesting.finding_runs import FoundRun
from smdebug.backtesting.question import Question
from smdebug.cli.runs.backtest_deployed import in_words
from smdebug.exceptions import SMDebugValueError
from smdebug.service.costs import PRICES


def planned(*steps: int, is_bundled: bool = False) -> list[PlannedRun]:
    return [
        PlannedRun(FoundRun(f"s3://b/{number}", str(number), f"s3://b/{number}"), count, is_bundled)
        for number, count in enumerate(steps)
    ]


def test_chunks_hold_as_much_work_as_a_call_has_time_for_and_a_long_run_is_alone():
    chunks = chunks_of(planned(1000, 1000, 100_000, 10, 10), 10)
    names = [[run.run.name for run in chunk.runs] for chunk in chunks]
    assert names == [["0", "1"], ["2"], ["3", "4"]]
    assert [chunk.number for chunk in chunks] == [0, 1, 2]
    assert chunks[0].work(10).seconds <= CHUNK_SECONDS


def test_small_runs_are_divided_by_number():
    assert [len(chunk.runs) for chunk in chunks_of(planned(*[1] * 120), 1)] == [MOST_IN_CHUNK] * 2 + [20]
    custom = chunks_of(planned(*[1] * 12), 1, custom=True)
    assert [len(chunk.runs) for chunk in custom] == [MOST_IN_CUSTOM_CHUNK, 2]


def test_no_runs_cost_nothing():
    estimated = estimate([], 3, Capacity(2, 1024), custom=False)
    assert (estimated.runs, estimated.dollars, estimated.seconds) == (0, 0, 0)


def test_the_price_is_that_of_requests_and_time():
    work = work_of(*planned(1000), 10)
    assert work.gets == 2008
    dollars = work.dollars(1024, custom=False)
    assert dollars > work.gets * PRICES["S3 GET"] + work.seconds * PRICES["GB-second"]
    assert work.dollars(2048, custom=False) > dollars
    assert work.dollars(1024, custom=True) > dollars  # a process for the rule's own code


def test_a_run_with_a_bundle_costs_its_time_and_a_few_requests():
    (first,), (later,) = planned(2000), planned(2000, is_bundled=True)
    assert work_of(later, 10).seconds == work_of(first, 10).seconds
    assert work_of(later, 10).gets < 10
    some = estimate(chunks_of([first, later], 10), 10, Capacity(2, 1024), custom=False)
    both = estimate(chunks_of([later, later], 10), 10, Capacity(2, 1024), custom=False)
    assert (some.bundled, some.dollars_bundled) == (1, both.dollars)
    assert both.dollars == both.dollars_bundled < some.dollars / 3


def test_more_at_once_take_less_time_and_cost_the_same():
    chunks = chunks_of(planned(*[2000] * 100), 10)
    few, many = (estimate(chunks, 10, Capacity(n, 1024), custom=False) for n in (2, 50))
    assert many.seconds < few.seconds / 10
    assert many.dollars == few.dollars


def test_the_budget_is_named_with_the_estimate():
    estimated = estimate(chunks_of(planned(2000), 10), 10, Capacity(1, 1024), custom=False)
    refuse_expensive(estimated, 1.0)
    with pytest.raises(SMDebugValueError, match=r"estimated at \$0\.0\d+, and the budget is \$0\.0001:"):
        refuse_expensive(estimated, 0.0001)


KEEPS, KEEPS_NONE = Capacity(2, 1024), Capacity(2, 1024, keeps_bundles=False)


@pytest.mark.parametrize(
    ("capacity", "custom", "bundled", "said"),
    [
        (
            KEEPS,
            False,
            0,
            "0 of the runs have a bundle, and this backtest bundles the others: the next one costs",
        ),
        (KEEPS, True, 0, "0 of the runs have a bundle (about $0.01 if all had)"),
        (KEEPS_NONE, False, 0, "0 of the runs have a bundle (about $0.01 if all had)"),
        (KEEPS, False, 60, "60 of the runs have a bundle"),
    ],
)
def test_what_bundles_will_save_is_promised_only_where_they_are_written(capacity, custom, bundled, said):
    runs = planned(*[2000] * 60, is_bundled=bundled == 60)
    estimated = estimate(chunks_of(runs, 10, custom=custom), 10, capacity, custom=custom)
    assert said in in_words(estimated)
    promises = "next one" in said
    assert ("next one" in in_words(estimated)) is promises
    with pytest.raises(SMDebugValueError) as refused:
        refuse_expensive(estimated, 0.001)
    assert ("which would save the next one" in str(refused.value)) is promises


def test_what_the_account_says_of_bundles_is_known_and_an_older_one_says_nothing():
    assert Capacity.from_dict({"at_once": 2, "memory_mb": 1024, "bundles": False}) == KEEPS_NONE
    assert Capacity.from_dict({"at_once": 2, "memory_mb": 1024}) == KEEPS


def test_rules_of_a_set_count_as_several_and_two_versions_twice():
    assert rules_counted(Question(({"rule": "A", "parameters": {}}, {"rule": "B", "parameters": {}}))) == 2
    assert rules_counted(Question(("usual",))) == 5
    assert rules_counted(Question(({"rule": "A", "parameters": {}},), "new.py", "old.py")) == 2


def test_the_page_on_backtests_has_the_prices_of_the_formula():
    page = " ".join((Path(__file__).parents[3] / "docs/backtest.md").read_text(encoding="utf-8").split())
    prices = []
    for is_bundled in (True, False):
        chunks = chunks_of(planned(*[2_000] * 5_000, is_bundled=is_bundled), 10)
        prices.append(in_dollars(estimate(chunks, 10, Capacity(500, 1024), custom=False).dollars))
    of_reading = in_dollars(sum(chunk.work(10).gets for chunk in chunks) * PRICES["S3 GET"])
    assert f"**{prices[0]} with bundles**, or {prices[1]} without, of which {of_reading} are" in page
    assert f"and each later one takes {prices[0]}" in page
    assert f"5,000 × 2,000 × $0.0000004 = **{in_dollars(5_000 * 2_000 * PRICES['S3 GET'])}**" in page
