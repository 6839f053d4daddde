"""The table as a page and as files."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from smdebug.backtesting.backtest import Backtest
from smdebug.backtesting.drawing import Scale
from smdebug.backtesting.page import page_of
from smdebug.backtesting.rows import COLUMNS, FOUND, PASSED, UNREAD, Row
from smdebug.backtesting.table_files import write_table
from smdebug.exceptions import SMDebugValueError

ROWS = (
    Row("runs/<b>", "Rule", FOUND, "a & b", 3, 2, 1, 1, 9, 0.5, highest=5.0, limit=4.0, label="failing"),
    Row("runs/fine", "Rule", PASSED, looked=9, highest=1.0, lowest=0.5, label="healthy"),
)


def test_the_page_draws_each_label_and_the_rules_own_limit():
    page = page_of(Backtest(ROWS, 2))
    assert "<title>1 failing runs</title>" in page
    assert "<title>1 healthy runs</title>" in page
    assert "limit 4</text>" in page


def test_the_slider_is_as_wide_as_the_axis_whose_limits_it_chooses():
    """Its ends are half a thumb beyond those of the axis, in the 1,000 units of the drawing."""
    page = page_of(Backtest(ROWS, 2))
    scale = Scale.of([0.0, 1.0])
    assert 'viewBox="0 0 1000 ' in page
    assert f"margin: 0 0 0 calc(var(--drawing) * {scale.left / 1000:g} - 8px)" in page
    assert f"width: calc(var(--drawing) * {scale.width / 1000:g} + 16px)" in page


ENDS = st.floats(-1e30, 1e30) | st.floats(1e-30, 1e30) | st.floats(0.001, 1000)


@given(st.tuples(ENDS, ENDS))
@example((5.0, 5.0))
@example((1e-300, 1e300))
@example((123456.0, 123457.0))
def test_the_axis_has_some_round_numbers(ends):
    scale = Scale.of(ends)
    marks = scale.marks()
    assert 2 <= len(marks) <= 7
    assert marks == sorted({*marks})
    assert scale.value(0) <= marks[0]
    assert marks[-1] <= scale.value(1)
    apart = {f"{after - before:.3g}" for before, after in pairwise(marks)}
    if scale.is_log:
        assert {f"{mark:e}"[:3] for mark in marks} <= {"1.0", "2.0", "3.0", "5.0"}
    else:
        assert len(apart) == 1
        assert f"{float(*apart):e}"[:8] in ("1.000000", "2.000000", "5.000000")


def test_numbers_of_the_axis_that_are_close_have_the_digits_that_tell_them_apart():
    rows = [replace(ROWS[1], highest=123456.0 + place) for place in (0, 1)]
    assert re.findall(r'text-anchor="middle">([^<]+)<', page_of(Backtest(rows, 2))) == [
        "123456",
        "123456.2",
        "123456.4",
        "123456.6",
        "123456.8",
        "123457",
    ]


def test_text_of_runs_is_escaped_and_nothing_is_fetched():
    page = page_of(Backtest(ROWS, 2))
    assert "runs/&lt;b&gt;" in page
    assert "a &amp; b" in page
    assert "<b>" not in page
    assert not re.search(r"(src|href)=|@import|url\(", page)
    assert "default-src 'none'" in page


def test_without_labels_nothing_is_said_of_failing_and_healthy_runs():
    labelled = page_of(Backtest(ROWS, 2))
    page = page_of(Backtest([replace(row, label="") for row in ROWS], 2))
    assert "No run has a label" in page
    assert "alarms on runs without a label, of 2" in page
    for words in ("failing runs found", "alarms on healthy runs", ">label</th>", "failing solid"):
        assert words in labelled
        assert words not in page
    assert (labelled.count("1 run</text>"), page.count("1 run</text>")) == (2, 1)  # above and below the axis


def test_the_lines_of_the_shares_differ_by_more_than_colour():
    page = page_of(Backtest([*ROWS, replace(ROWS[1], label="")], 3))
    assert "by limit: failing solid, healthy dashed, unlabelled dotted</text>" in page
    assert "svg polyline.healthy { stroke-dasharray: 8 4; }" in page


def test_the_failing_runs_that_passed_come_before_the_healthy_ones():
    rows = [replace(ROWS[1], run="runs/missed", label="failing"), *ROWS, Row("runs/gone", "Rule", UNREAD)]
    page = page_of(Backtest([rows[2], rows[0], rows[1], rows[3]], 4))
    places = [page.index(f"<td>runs/{name}</td>") for name in ("&lt;b&gt;", "gone", "missed", "fine")]
    assert places == sorted(places)


def test_names_cannot_rewrite_the_page():
    page = page_of(Backtest([Row("a\x1b[31m\u202eb\nc", "Rule", PASSED, highest=1.0)], 1))
    assert "<td>a\\x1b[31m\\u202eb c</td>" in page
    assert '<p class="quiet">1 run</p>' in page


def test_a_page_without_runs_has_no_empty_table():
    assert "<table" not in page_of(Backtest((), 0))


def test_a_rule_without_numbers_is_told_how_to_give_one():
    assert "self.checked_value" in page_of(Backtest((Row("run", "Rule", PASSED),), 1))


def test_parquet_and_json_hold_every_column(tmp_path: Path):
    parquet = pytest.importorskip("pyarrow.parquet")
    write_table(Backtest(ROWS, 2), tmp_path / "table.parquet")
    write_table(Backtest(ROWS, 2), tmp_path / "table.json")
    rows = parquet.read_table(tmp_path / "table.parquet").to_pylist()
    assert tuple(map(Row.from_dict, rows)) == ROWS
    assert json.loads((tmp_path / "table.json").read_text())["rows"] == rows
    assert tuple(rows[0]) == COLUMNS


def test_a_file_of_an_unknown_form_is_refused(tmp_path: Path):
    with pytest.raises(SMDebugValueError, match=r"\.parquet"):
        write_table(Backtest(ROWS, 2), tmp_path / "table.xlsx")
