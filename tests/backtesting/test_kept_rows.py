"""The rows of a table that are not in memory: their order, and how little of them is."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pytest

from smdebug.backtesting import kept_rows
from smdebug.backtesting.backtest import Backtest
from smdebug.backtesting.journal import Journal
from smdebug.backtesting.kept_rows import RowWriter
from smdebug.backtesting.rows import Row
from smdebug.backtesting.summary import summaries
from smdebug.backtesting.table_files import write_table
from smdebug.backtesting.thresholds import distributions


def row(number: int, rule: str = "A") -> Row:
    return Row(
        f"runs/{number:07}", rule, "IssuesFound" if number % 2 else "NoIssuesFound", highest=number / 3
    )


@pytest.fixture(params=[True, False], ids=["in memory", "in a file"])
def writer(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> RowWriter:
    if not request.param:
        monkeypatch.setattr(kept_rows, "_IN_MEMORY", 100)
    return RowWriter()


def test_rows_are_in_the_order_of_their_runs_and_as_they_were(writer: RowWriter):
    for number in (4, 0, 3, 1):
        writer.add(number, [row(number), row(number, "B")])
    writer.add(2, [])
    kept = writer.in_order()
    assert kept == [row(number, rule) for number in (0, 1, 3, 4) for rule in "AB"]
    assert list(kept) == list(kept)
    assert (kept[-1], kept[2:4]) == (row(4, "B"), [row(1), row(1, "B")])
    assert kept != [*kept[:-1], row(5, "B")]
    assert kept != kept[:-1]


def test_a_limit_takes_the_first_runs_also_those_without_rows(writer: RowWriter):
    for number in (9, 5, 7):
        writer.add(number, [row(number), row(number, "B")])
    writer.add(3, [])
    assert [each.run for each in writer.in_order(2)] == [row(5).run] * 2
    assert len(writer.in_order(4)) == 6


def test_a_part_can_be_read_after_the_whole_is_gone(writer: RowWriter):
    for number in range(50):
        writer.add(number, [row(number)])
    some = writer.in_order()[10:12]
    del writer
    assert some == [row(10), row(11)]


def test_hardly_any_memory_is_taken_by_a_row_and_its_line_in_the_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(kept_rows, "_IN_MEMORY", 100_000)
    number = 5_000
    tracemalloc.start()
    try:
        writer = RowWriter()
        with Journal(tmp_path / "journal.jsonl", "digest") as journal:
            for each in range(number):
                journal.add(f"/somewhere/{row(each).run}", "identity" * 8, (row(each),))
                writer.add(each, [row(each)])
            assert journal.rows_of(f"/somewhere/{row(17).run}") == (row(17),)
            table = Backtest(writer.in_order(), runs=number)
            (summary,) = summaries(table.rows)
            (numbers,) = distributions(table.rows)
            write_table(table, tmp_path / "table.json")
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most / number < 400  # bytes, where a row alone has 700; 10⁶ runs fit into 500 MB
    assert (summary.fires, len(numbers.unlabelled)) == (2_500, 5_000)
    written = json.loads((tmp_path / "table.json").read_text())
    assert written == table.to_dict()


def test_known_runs_are_counted_up_to_the_limit():
    writer = RowWriter()
    for number, is_known in ((4, True), (0, False), (2, True), (7, True)):
        writer.add(number, [row(number)], is_known=is_known)
    assert [writer.known(limit) for limit in (1, 2, 3, 4, None)] == [0, 1, 2, 3, 3]
    assert list(writer.in_order(3)) == [row(0), row(2), row(4)]
