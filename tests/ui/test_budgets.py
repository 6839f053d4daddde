"""The table of `make bench-ui`: a budget that is exceeded is reported, and fails the command."""

from __future__ import annotations

from bench.ui import __main__ as bench
from bench.ui.data import Size, saved_steps
from bench.ui.table import Line, as_text


def test_a_budget_that_does_not_hold_is_named_and_fails(monkeypatch, capsys):
    lines = {
        "live_lines": [Line("a new step", 1.2, "s", 1), Line("no budget", 9, "s")],
        "many_lines": [Line("frames", 55, "frames/s", 30, at_least=True, peer="5 frames/s")],
    }
    for name, found in lines.items():
        monkeypatch.setattr(bench, name, lambda *_, found=found: iter(found))
    assert bench.main(["--only", "many"]) == 0
    assert bench.main(["--only", "many", "--only", "live"]) == 1
    table = capsys.readouterr().out
    assert "OVER" in table
    assert [line.holds for line in lines["live_lines"]] == [False, True]


def test_either_of_two_budgets_is_enough():
    slow = Line("pan and zoom", 20, "frames/s", 30, at_least=True)
    assert not slow.holds
    assert slow._replace(or_holds=True).holds
    assert "OVER" in as_text([slow])
    assert "OVER" not in as_text([slow._replace(or_holds=True)])


def test_the_default_plan_is_dense_at_the_beginning_and_ends_with_the_last_step():
    steps = saved_steps(Size(100_000, 1_100, 500))
    assert steps[:100] == list(range(100))
    assert steps[-1] == 99_999
    assert len(steps) in range(1_090, 1_101)
    assert saved_steps(Size(50, 50, 1)) == list(range(50))
