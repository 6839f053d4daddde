"""What a backtest has spent: chunks reserve what they may cost, and settle what they took."""

from __future__ import annotations

from typing import Any

import pytest

from functions.adapters.in_memory import HandClock, MemoryItems
from functions.backtests.spending import BudgetSpent, PurseInTable, reserve, settle
from smdebug.backtesting.deployed.plan import Chunk, PlannedRun
from smdebug.backtesting.finding_runs import FoundRun
from smdebug.service.costs import PRICES


@pytest.fixture
def purse() -> PurseInTable:
    return PurseInTable(MemoryItems(), HandClock().now)


def entry(*, is_bundled: bool, steps: int = 2000) -> dict[str, Any]:
    chunk = Chunk(0, (PlannedRun(FoundRun("s3://b/a", "a", "s3://b/a"), steps, is_bundled),))
    return chunk.to_dict("id", dollars=chunk.work(10).dollars(1024, custom=False), custom=False)


@pytest.mark.parametrize("is_bundled", [True, False])
def test_a_chunk_that_took_no_time_has_spent_its_requests(purse: PurseInTable, is_bundled: bool):
    chunk = entry(is_bundled=is_bundled)
    reserve(purse, "id", chunk["dollars"], 1.0)
    settle(purse, "id", chunk, 0.0, 1024)
    assert purse.spend("id", 0) == pytest.approx(chunk["requests"], abs=2e-6)
    least = (0 if is_bundled else 4_000) * PRICES["S3 GET"]
    assert least < chunk["requests"] < chunk["dollars"]


def test_time_is_spent_as_it_was_taken(purse: PurseInTable):
    chunk = entry(is_bundled=True)
    reserve(purse, "id", chunk["dollars"], 1.0)
    settle(purse, "id", chunk, 100.0, 2048)
    assert purse.spend("id", 0) == pytest.approx(chunk["requests"] + 200 * PRICES["GB-second"], abs=2e-6)


def test_a_budget_ends_a_backtest_of_which_nearly_all_is_requests(purse: PurseInTable):
    chunk = entry(is_bundled=False)
    for _ in range(3):
        reserve(purse, "id", chunk["dollars"], 3.5 * chunk["dollars"])
        settle(purse, "id", chunk, 0.1, 1024)
    with pytest.raises(BudgetSpent):
        reserve(purse, "id", chunk["dollars"], 3.5 * chunk["dollars"])
