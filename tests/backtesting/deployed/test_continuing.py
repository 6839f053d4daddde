"""A backtest in the account continues, whatever interrupts it, and judges no run twice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from smdebug.backtesting.deployed import plan
from smdebug.backtesting.deployed.plan import Estimate
from smdebug.backtesting.finding_runs import FoundRun
from smdebug.backtesting.identity import within
from smdebug.backtesting.judging import Judged
from smdebug.backtesting.question import Question
from smdebug.backtesting.rows import TIMED_OUT, unread_row
from tests.backtesting.deployed.asking import BUILT_IN, PoolHere, ask, here, without_seconds
from tests.backtesting.deployed.folder_account import FolderAccount
from tests.backtesting.many_runs import make_run, write_rule


@pytest.mark.usefixtures("a_run_each", "judged_here")
def test_what_was_killed_in_the_middle_continues_without_judging_a_run_twice(account, runs):
    account.chunks_until_it_fails = 2
    first = ask(account, BUILT_IN, runs)
    assert [row.status for row in first.rows] == ["NoIssuesFound", "NoIssuesFound", "Unread", "Unread"]
    assert first.rows[2].note == "not judged yet (killed); call the command again"
    account.chunks_until_it_fails = 1_000
    table = ask(account, BUILT_IN, runs)
    assert without_seconds(table) == here(BUILT_IN, runs)
    assert account.judged == ["run-00", "run-01", "run-02", "run-03"]
    assert table.reused == 2


@pytest.mark.usefixtures("a_run_each", "judged_here")
def test_what_was_cancelled_in_the_middle_continues_without_judging_a_run_twice(account, runs):
    account.chunks_until_it_fails = 3
    fail = account.start

    def cancelled(id: str) -> None:
        fail(id)
        account.stop(id)

    account.start = cancelled
    first = ask(account, BUILT_IN, runs)
    assert [row.has_verdict for row in first.rows] == [True, True, True, False]
    assert first.rows[3].note == "not judged yet (Cancelled); call the command again"
    account.start, account.chunks_until_it_fails = fail, 1_000
    assert ask(account, BUILT_IN, runs).reused == 3
    assert account.judged == ["run-00", "run-01", "run-02", "run-03"]


@pytest.mark.usefixtures("judged_here")
def test_an_execution_whose_starter_was_killed_is_followed(account, runs):
    class Killed(BaseException):
        pass

    def die(*_: object) -> None:
        raise Killed

    original = account.start
    account.start = lambda name: (original(name), die())
    with pytest.raises(Killed):
        ask(account, BUILT_IN, runs)
    account.start = die  # nothing is started again
    assert without_seconds(ask(account, BUILT_IN, runs)) == here(BUILT_IN, runs)
    assert len(account.judged) == 4


@pytest.mark.usefixtures("judged_here")
def test_one_that_was_killed_before_it_started_is_planned_anew(account, runs):
    def die(_: str) -> None:
        raise KeyboardInterrupt

    original, account.start = account.start, die
    with pytest.raises(KeyboardInterrupt):
        ask(account, BUILT_IN, runs)
    account.start = original
    assert len(ask(account, BUILT_IN, runs).rows) == 4


@pytest.mark.usefixtures("a_run_each", "judged_here")
def test_a_backtest_stops_when_its_budget_is_spent_and_continues_with_a_new_one(account, runs):
    spent = []

    def take_long() -> None:
        spent.append(1)
        if len(spent) == 3:  # the first chunks took longer than was estimated
            (name,) = account.executions
            account.ports.purse.spend(name, 5.0)

    account.before_chunk = take_long
    table = ask(account, BUILT_IN, runs)
    assert [row.has_verdict for row in table.rows] == [True, True, False, False]
    assert "BudgetSpent: The budget of $5.00 is spent" in table.rows[2].note
    assert all(row.has_verdict for row in ask(account, BUILT_IN, runs).rows)
    assert len(account.judged) == 4


@pytest.mark.usefixtures("judged_here")
def test_a_run_that_has_gone_on_is_judged_again_and_others_are_not(account, runs):
    ask(account, BUILT_IN, runs)
    make_run(account.folder / "runs" / "run-01", [2.0, 1.9, 1.8, 1.7, 1.6])
    account.judged.clear()
    assert ask(account, BUILT_IN, runs).reused == 3
    assert account.judged == ["run-01"]


class HangsOnOne(PoolHere):
    """The rule hangs on the second run, which takes the time of those behind it."""

    def judge_each(self, runs: Iterable[FoundRun], known: object) -> Iterator[Any]:
        for number, run, judged in super().judge_each(runs, known):
            if run.name != "run-01":
                yield number, run, judged
                continue
            row = unread_row(run.path, "no verdict within 3 s", TIMED_OUT, "ExplodingTensor")
            yield number, run, Judged((row,), within(judged.identity, self._question.timeout))
            return


@pytest.mark.parametrize("is_custom", [True, False])
def test_a_run_on_which_a_rule_hung_is_not_judged_again_when_the_command_was_killed(
    account, runs, tmp_path, monkeypatch, is_custom
):
    """It hangs in the first execution, and the command is killed in the second."""
    first = "if self.base_trial.name == 'run-01': exec('while True: pass')"
    file = write_rule(tmp_path / "hangs.py", first=first)
    question = Question(({"rule": "LossSpike", "parameters": {}},), file, timeout=3.0)
    if not is_custom:
        question = replace(BUILT_IN, timeout=3.0)
        monkeypatch.setattr("functions.backtests.judging.JudgingPool", HangsOnOne)
    account.late_after = 2 if is_custom else 1_000
    begun: list[int] = []

    def killed_later(_: str, estimated: Estimate) -> None:
        begun.append(estimated.runs)
        if len(begun) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ask(account, question, runs, begun=killed_later)
    account.late_after = 1_000
    table = ask(account, question, runs, begun=lambda _, estimated: begun.append(estimated.runs))
    assert begun == [4, 2, 2]
    assert [row.status == "TimedOut" for row in table.rows] == [False, True, False, False]
    assert ask(account, question, runs).reused == 4


@pytest.fixture
def slow_runs(account: FolderAccount, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The names of runs that take so long that no other is begun after them."""
    slow: set[str] = set()

    class SlowPool(PoolHere):
        def judge_each(self, runs: Iterable[FoundRun], known: object) -> Iterator[Any]:
            for answer in super().judge_each(runs, known):
                account.clock.time += plan.BEGIN_WITHIN + 1 if answer[1].name in slow else 0
                yield answer

    monkeypatch.setattr("functions.backtests.judging.JudgingPool", SlowPool)
    return slow


def test_runs_behind_those_that_took_all_the_time_are_judged_by_further_executions(account, runs, slow_runs):
    slow_runs |= {"run-01", "run-02"}
    names: list[int] = []
    table = ask(account, BUILT_IN, runs, begun=lambda _, estimated: names.append(estimated.runs))
    assert without_seconds(table) == here(BUILT_IN, runs)
    assert names == [4, 2, 1]
    assert account.judged == ["run-00", "run-01", "run-02", "run-03", "run-02", "run-03", "run-03"]


def test_further_executions_spend_the_budget_of_the_first(account, runs, slow_runs):
    slow_runs.add("run-01")
    table = ask(account, BUILT_IN, runs, budget=0.0011)
    assert [row.has_verdict for row in table.rows] == [True, True, False, False]
    assert "BudgetSpent: The budget of $0.00 is spent: $0.0011 are used" in table.rows[2].note


def test_code_of_ones_own_is_judged_by_further_executions_as_long_as_they_get_on(account, runs, custom):
    account.late_after = 3
    assert without_seconds(ask(account, custom, runs)) == here(custom, runs)
    assert len(account.executions) == 2
    account.late_after = 0
    stuck = ask(account, custom, runs, fresh=True)
    assert len(account.executions) == 3
    assert stuck.rows[0].note == "not judged yet (the function had no time left); call the command again"
