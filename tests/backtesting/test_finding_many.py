"""Listing many runs of a bucket needs no more memory than listing few."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Iterable

import pytest

from smdebug.backtesting import finding_runs
from smdebug.backtesting.finding_runs import FoundRun, RunListing, find_runs
from tests.backtesting.listed_runs import ListedRuns

LISTED, ON_A_PAGE = 1800, 100
KEPT_OF_A_RUN = 50
"""Bytes, fewer than a name has."""


@pytest.mark.parametrize("kind", [find_runs, RunListing])
def test_no_run_stays_in_memory_once_it_is_listed(
    monkeypatch: pytest.MonkeyPatch, kind: Callable[[list[str]], Iterable[FoundRun]]
):
    storage = ListedRuns(LISTED, ON_A_PAGE).storage()
    monkeypatch.setattr(finding_runs, "open_storage", lambda _: storage)
    few, many = 3, LISTED // ON_A_PAGE - 1
    least: dict[int, int] = {}
    tracemalloc.start()
    try:
        for number, run in enumerate(kind(["s3://runs"])):
            assert run.name == f"run-{number:07}"
            page = number // ON_A_PAGE
            if page in (few, many):
                if page not in least:
                    gc.collect()
                used = tracemalloc.get_traced_memory()[0]
                least[page] = min(used, least.get(page, used))
    finally:
        tracemalloc.stop()
    assert number == LISTED - 1
    # Requests that are under way count now and then, so that the least of a page is compared.
    assert least[many] - least[few] < KEPT_OF_A_RUN * ON_A_PAGE * (many - few)
