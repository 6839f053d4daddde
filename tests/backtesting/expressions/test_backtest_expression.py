"""An expression on saved runs, and the index of their series."""

from __future__ import annotations

import shutil
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from smdebug.backtesting.backtest import Backtest, Options
from smdebug.backtesting.expressions import backtest_expression as expressions
from smdebug.backtesting.expressions.backtest_expression import Computed, ReadRun, backtest_expression
from smdebug.backtesting.expressions.columns import Values
from smdebug.backtesting.expressions.grammar import parse
from smdebug.backtesting.question import Question
from smdebug.exceptions import SMDebugCustomerError
from smdebug.files.names import event_key
from smdebug.runs.conditions import parse_condition
from tests.backtesting.many_runs import make_run, make_runs

JUMPS = "loss > 4 * lag(loss, 1)"


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return make_runs(tmp_path / "runs", 6)


def ask(
    runs: Path, text: str = JUMPS, progress: Callable[..., object] = print, **conditions: object
) -> Backtest:
    options = Options(jobs=1, journal=runs.parent / "index.db", progress=progress)
    return backtest_expression(text, Question((), **conditions), [str(runs)], options)  # type: ignore[arg-type]


def test_a_run_has_a_finding_where_the_expression_holds(runs: Path):
    rows = ask(runs).rows
    assert [row.fires for row in rows] == [True, False, False] * 2
    assert (rows[0].onset, rows[0].looked, rows[0].limit) == (20, 4, 4.0)
    assert rows[0].highest == pytest.approx(1.8 * 5 / 1.9, rel=1e-6)


def test_series_are_read_of_each_run_once_until_it_changes(runs: Path):
    first = ask(runs)
    assert [first.reused, ask(runs, "loss > 100").reused] == [0, 6]
    assert ask(runs, 'stat("loss", max) > 100').reused == 0, "another column"
    shutil.rmtree(runs / "run-01")
    make_run(runs / "run-01", [1.0, 9.0])
    changed = ask(runs)
    assert (changed.reused, changed.rows[1].fires) == (5, True)
    assert ask(runs, "loss > 100").reused == 6


def test_series_that_were_read_before_an_interruption_are_kept(runs: Path):
    def interrupt(done: int, _: int | None) -> None:
        if done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ask(runs, progress=interrupt)
    resumed = ask(runs)
    assert resumed.reused >= 4
    assert [row.fires for row in resumed.rows] == [True, False, False] * 2


def test_rows_do_not_depend_on_how_many_runs_are_computed_at_a_time(
    runs: Path, monkeypatch: pytest.MonkeyPatch
):
    make_run(runs / "run-07", [2.0, 1.9, 9.9])
    (runs / "run-02/collections/000000000/worker_0_collections.json").write_bytes(b"foreign")
    together = [replace(row, seconds=0.0) for row in ask(runs).rows]
    monkeypatch.setattr(expressions, "_AT_ONCE", 1)
    assert [replace(row, seconds=0.0) for row in ask(runs).rows] == together
    assert [row.status for row in together[1:3]] == ["NoIssuesFound", "Unread"]


def test_the_series_of_all_runs_are_never_in_memory_together(monkeypatch: pytest.MonkeyPatch):
    """400 runs have 64 MB."""
    monkeypatch.setattr(expressions, "_AT_ONCE", 1 << 17)
    steps = np.arange(10_000)
    tracemalloc.start()
    try:
        computed = Computed(parse("loss > 2"))
        for number in range(400):
            columns = {"series:loss": Values(steps.copy(), np.full(len(steps), number / 200))}
            computed.add(ReadRun(number, f"run-{number}", "", columns, ()))
        rows = computed.in_order(None)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [row.highest for row in rows] == [number / 200 for number in range(400)]
    assert peak < 20_000_000


def test_a_file_of_something_else_is_not_written_to(runs: Path):
    foreign = runs.parent / "index.db"
    foreign.write_text("notes")
    with pytest.raises(SMDebugCustomerError, match="is no file of series: name another with --journal"):
        ask(runs)
    assert foreign.read_text() == "notes"


def test_a_changed_byte_of_a_kept_series_is_noticed(runs: Path):
    ask(runs)
    index = runs.parent / "index.db"
    whole, kept = index.read_bytes(), np.array([2.0, 1.9], np.float32).astype(float).tobytes()
    assert kept in whole
    index.write_bytes(whole.replace(kept, bytes(len(kept))))
    with pytest.raises(SMDebugCustomerError, match=r"a series is damaged.*Delete the file"):
        ask(runs)


def test_series_of_a_run_as_it_was_before_are_not_mixed_with_new_ones(runs: Path):
    ask(runs, "loss > 1")
    ask(runs, 'stat("loss", max) > 1')
    make_run(runs / "run-01", [2.0, 1.9, 1.8, 1.7, 9.0])
    ask(runs, "loss > 1")
    both = 'loss - stat("loss", max) < 0'
    assert ask(runs, both).reused == 5, "the statistic is as of before"
    assert ask(runs, both).rows[1].looked == 5


def test_a_damaged_index_is_made_again(runs: Path):
    first = ask(runs)
    index = runs.parent / "index.db"
    index.write_bytes(index.read_bytes()[:200])
    again = ask(runs)
    assert again.reused == 0
    assert [row.highest for row in again.rows] == [row.highest for row in first.rows]


def test_runs_without_the_series_or_in_a_bad_state_get_a_row_that_says_so(runs: Path):
    (runs / "run-02/collections/000000000/worker_0_collections.json").write_bytes(b"foreign")
    rows = ask(runs, "accuracy > 1").rows
    assert [row.status for row in rows] == ["NotChecked"] * 2 + ["Unread"] + ["NotChecked"] * 3
    assert rows[0].note == "the run has no series accuracy"


def test_a_run_of_which_files_are_left_out_has_not_passed_and_is_read_again(runs: Path):
    damaged, missing = (runs / run / event_key(10, "worker_0") for run in ("run-01", "run-02"))
    whole = damaged.read_bytes()
    damaged.write_bytes(b"damaged")
    missing.unlink()
    (runs / "run-00" / event_key(30, "worker_0")).write_bytes(b"damaged")
    first = ask(runs)
    assert [row.status for row in first.rows[:4]] == [
        "IssuesFound",
        "Incomplete",
        "Incomplete",
        "IssuesFound",
    ]
    assert first.rows[1].note.startswith("1 file left out: events/")
    assert ask(runs).reused == 3
    damaged.write_bytes(whole)
    assert [row.status for row in ask(runs).rows[1:3]] == ["NoIssuesFound", "Incomplete"]
    assert ask(runs).reused == 4


def test_conditions_choose_the_runs(runs: Path):
    assert len(ask(runs, where=(parse_condition("loss>5"),)).rows) == 2
