"""The page of a backtest as a browser shows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from smdebug.backtesting.backtest import Backtest
from smdebug.backtesting.page import page_of
from smdebug.backtesting.rows import FOUND, PASSED, Row
from tests.reports.browser import Tab
from tests.ui.browsing import accessible

pytestmark = pytest.mark.browser

LOADED = "document.readyState === 'complete'"
ROWS = [
    Row(
        f"runs/{number:03}",
        rule,
        FOUND if is_failing else PASSED,
        "loss: times its median 5.0 (limit 4)" if is_failing else "",
        highest=5.0 + number if is_failing else 1 + number / 100,
        limit=4.0,
        label=("failing" if is_failing else "healthy") if number < 50 else "",
    )
    for number in range(60)
    for rule in ("LossSpike", "Other")
    for is_failing in [number % 5 == 3]
]


@pytest.mark.parametrize(("width", "dark"), [(1250, False), (1250, True), (390, False)])
def test_it_is_accessible_and_the_slider_says_its_limit(tmp_path: Path, width: int, dark: bool):
    file = tmp_path / "page.html"
    file.write_text(page_of(Backtest(ROWS, 60)), encoding="utf-8")
    with Tab(file, width=width, dark=dark, ready=LOADED) as tab:
        assert accessible(tab) == []
        assert tab.complaints == []
        said = tab.value("document.querySelector('.try').getAttribute('aria-valuetext')")
        assert (
            said
            == "limit 4.000: alarms on 10 of 10 failing runs, 0 of 40 healthy runs, 2 of 10 unlabelled runs"
        )
        assert tab.value("document.querySelector('.chart svg').getBoundingClientRect().width") >= 720
