"""A backtest in the account: the same table as here, whatever interrupts it."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from smdebug.backtesting import kept_rows
from smdebug.backtesting.backtest import Backtest, Options
from smdebug.backtesting.deployed import account as deployed_account
from smdebug.backtesting.deployed import plan
from smdebug.backtesting.deployed.account import DeployedOptions, backtest_in_account, cancel, collect
from smdebug.backtesting.deployed.plan import Estimate
from smdebug.backtesting.deployed.task import Task, encoded_verdicts, write_task
from smdebug.backtesting.finding_runs import FoundRun, find_runs
from smdebug.backtesting.journal import Journal
from smdebug.backtesting.judging import Judged, judge
from smdebug.backtesting.labels import Labels
from smdebug.backtesting.question import Question
from smdebug.backtesting.rows import Row
from smdebug.cli.runs.backtest_deployed import in_words
from smdebug.exceptions import SMDebugValueError
from smdebug.runs.conditions import parse_condition
from smdebug.runs.requests.annotating import annotate
from smdebug.service.backtests import Execution
from smdebug.storage import open_storage
from tests.backtesting.deployed.folder_account import FolderAccount
from tests.backtesting.many_runs import make_run, make_runs, write_rule

BUILT_IN = Question(({"rule": "ExplodingTensor", "parameters": {}},))


@pytest.fixture
def account(tmp_path: Path) -> FolderAccount:
    return FolderAccount(tmp_path / "bucket")


class PoolHere:
    """Judges in this process: starting others is what most of these tests would spend their time on."""

    def __init__(self, question: Question, jobs: int):
        self._question = question

    def judge_each(self, runs: Iterable[FoundRun], known: object) -> Iterator[Any]:
        for number, run in enumerate(runs):
            yield number, run, judge(self._question, run)


@pytest.fixture
def judged_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("functions.backtests.judging.JudgingPool", PoolHere)


@pytest.fixture
def runs(account: FolderAccount) -> Path:
    return make_runs(account.folder / "runs", 4)


@pytest.fixture
def custom(tmp_path: Path) -> Question:
    return Question(({"rule": "LossSpike", "parameters": {}},), write_rule(tmp_path / "rule.py"))


@pytest.fixture
def a_run_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of one run."""
    monkeypatch.setattr(plan, "CHUNK_SECONDS", 0.1)


def ask(account: FolderAccount, question: Question, runs: Path, **options: Any) -> Any:
    journal = account.folder.parent / "journal.jsonl"
    own = {key: options.pop(key) for key in list(options) if key in vars(DeployedOptions())}
    return backtest_in_account(
        question,
        [str(runs)],
        account,
        Options(journal=journal, **options),
        DeployedOptions(pause=lambda: None, **own),
    )


def without_seconds(table: Backtest) -> list[Row]:
    return [replace(row, seconds=0.0) for row in table.rows]


def here(question: Question, runs: Path) -> list[Row]:
    """What a backtest here says, without its processes."""
    rows = (judge(question, run).rows for run in find_runs([str(runs)]))
    return [replace(row, seconds=0.0) for found in rows for row in found]


def test_rules_of_ones_own_have_the_rows_of_a_backtest_here(account, runs, custom):
    table = ask(account, custom, runs)
    assert without_seconds(table) == here(custom, runs)
    assert [row.fires for row in table.rows] == [True, False, False, True]
    (policy, *others) = account.lender.policies.values()
    assert len(others) == 3  # one for each run
    assert not any("s3:PutObject" in statement["Action"] for statement in policy["Statement"])


def test_built_in_rules_have_the_rows_of_a_backtest_here(account, runs):
    assert without_seconds(ask(account, BUILT_IN, runs)) == here(BUILT_IN, runs)


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


@pytest.mark.usefixtures("judged_here")
def test_a_dry_run_writes_and_starts_nothing(account, runs):
    estimated = ask(account, BUILT_IN, runs, is_dry=True)
    assert isinstance(estimated, Estimate)
    assert (estimated.runs, estimated.steps) == (4, 16)
    assert not account.executions
    assert not (account.folder / "backtests").exists()


@pytest.mark.usefixtures("judged_here")
def test_what_costs_more_than_the_budget_is_not_started(account, runs):
    with pytest.raises(SMDebugValueError, match=r"the budget is \$0\.000000001: choose fewer runs"):
        ask(account, BUILT_IN, runs, budget=1e-9)
    assert not account.executions


@pytest.mark.usefixtures("judged_here")
def test_where_it_would_slow_live_runs_it_is_started_only_if_that_was_asked_for(account, runs):
    account.capacity = {**account.capacity, "slows_live_runs": True}
    with pytest.raises(SMDebugValueError, match="2 calls of a backtest slow down live runs: ask AWS for"):
        ask(account, BUILT_IN, runs)
    assert not account.executions
    estimated = ask(account, BUILT_IN, runs, is_dry=True)
    assert in_words(estimated).endswith("live runs are slowed down meanwhile")
    assert ask(account, BUILT_IN, runs, may_slow_live_runs=True).runs == 4


@pytest.mark.usefixtures("judged_here")
def test_where_it_slows_nothing_it_says_nothing(account, runs):
    assert "live runs" not in in_words(ask(account, BUILT_IN, runs, is_dry=True))


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


@pytest.mark.usefixtures("judged_here")
def test_conditions_and_labels_are_those_of_a_backtest_here(account, runs):
    labels = Labels({str(account.folder / "runs" / "run-00"): "failing"})
    table = ask(account, BUILT_IN, runs, labels=labels)
    assert [row.label for row in table.rows] == ["failing", "", "", ""]
    none = replace(BUILT_IN, since=4e9)
    assert ask(account, none, runs).rows == ()
    assert ask(account, BUILT_IN, runs, limit=2).runs == 2
    with pytest.raises(SMDebugValueError, match="No run has a value named lr"):
        ask(account, replace(BUILT_IN, where=(parse_condition("lr<1"),)), runs)


@pytest.mark.usefixtures("judged_here")
def test_damaged_empty_and_vanished_runs_have_a_row_and_the_rest_goes_on(account, runs, monkeypatch):
    (
        account.folder / "runs" / "run-01" / "collections" / "000000000" / "worker_0_collections.json"
    ).write_bytes(b"{")
    write = deployed_account.write_task

    def vanish(*arguments: Any) -> None:
        write(*arguments)
        for file in sorted((account.folder / "runs" / "run-02").rglob("*"), reverse=True):
            file.unlink() if file.is_file() else file.rmdir()

    monkeypatch.setattr(deployed_account, "write_task", vanish)
    table = ask(account, BUILT_IN, runs)
    assert [row.status for row in table.rows] == ["NoIssuesFound", "Unread", "Unread", "NoIssuesFound"]
    assert all(row.note for row in table.rows if row.status == "Unread")


@pytest.mark.usefixtures("judged_here")
def test_a_rule_that_hangs_on_a_run_is_a_row(account, runs, tmp_path):
    first = "if self.base_trial.name == 'run-01': exec('while True: pass')"
    file = write_rule(tmp_path / "hangs.py", first=first)
    question = Question(({"rule": "LossSpike", "parameters": {}},), file, timeout=3.0)
    table = ask(account, question, runs)
    assert [row.status for row in table.rows] == ["IssuesFound", "TimedOut", "NoIssuesFound", "IssuesFound"]
    assert "within 3 s" in table.rows[1].note


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


@pytest.mark.usefixtures("judged_here")
def test_places_outside_the_bucket_are_refused(account, tmp_path):
    with pytest.raises(SMDebugValueError, match="reads its own bucket only"):
        ask(account, BUILT_IN, tmp_path / "elsewhere")


@pytest.mark.usefixtures("judged_here")
def test_another_version_of_the_library_refuses_the_plan(account, runs, monkeypatch):
    monkeypatch.setattr("functions.backtests.judging.smdebug.__version__", "0.0.1")
    table = ask(account, BUILT_IN, runs)
    assert "OtherVersion" in table.rows[0].note


@pytest.mark.usefixtures("judged_here")
def test_code_of_ones_own_is_never_run_by_the_trusted_function(account, runs, custom):
    from functions.backtests.judging import CustomCode, judge_chunk

    ask(account, custom, runs)
    (name,) = account.executions
    with pytest.raises(CustomCode):
        judge_chunk(account.ports, {"backtest": name, "chunk": 9, "dollars": 0, "runs": []})


@pytest.mark.usefixtures("judged_here")
def test_cancel_stops_what_runs_and_says_if_nothing_does(account, runs):
    ask(account, BUILT_IN, runs)
    journal = account.folder.parent / "journal.jsonl"
    assert cancel(BUILT_IN, account, journal) == ""
    (name,) = account.executions
    account.executions[name] = Execution("RUNNING")
    assert cancel(BUILT_IN, account, journal) == name
    assert account.executions[name].status == "ABORTED"


@pytest.mark.usefixtures("judged_here")
def test_a_backtest_is_collected_by_its_id(account, runs):
    ask(account, BUILT_IN, runs)
    (name,) = account.executions
    assert len(collect(account, name, Options()).rows) == 4
    with pytest.raises(SMDebugValueError, match="There is no backtest nightly-2026-01-01"):
        collect(account, "nightly-2026-01-01", Options())


@pytest.mark.usefixtures("judged_here")
@pytest.mark.parametrize("is_custom", [True, False])
def test_what_is_collected_has_the_labels_of_tags(account, runs, custom, is_custom):
    annotate(open_storage(runs / "run-01"), {"tags": ["failing"]}, "")
    (runs / "run-02" / "collections" / "000000000" / "worker_0_collections.json").write_bytes(b"{")
    ask(account, custom if is_custom else BUILT_IN, runs)
    (name,) = account.executions
    assert [row.label for row in collect(account, name, Options()).rows] == ["", "failing", "", ""]


@pytest.mark.usefixtures("judged_here")
def test_a_fresh_verdict_takes_the_place_of_the_one_in_the_journal(account, runs):
    judged = without_seconds(ask(account, BUILT_IN, runs))
    digest = BUILT_IN.digest()
    with Journal(account.folder.parent / "journal.jsonl", digest) as journal:
        first = str(runs / "run-00")
        wrong = tuple(replace(row, findings=99) for row in journal.rows_of(first))
        assert wrong
        journal.add(first, journal.identity_of(first), wrong)
    assert without_seconds(ask(account, BUILT_IN, runs, fresh=True)) == judged
    assert without_seconds(ask(account, BUILT_IN, runs)) == judged


def test_a_long_table_is_collected_outside_of_memory(account, monkeypatch):
    monkeypatch.setattr(kept_rows, "_IN_MEMORY", 100_000)
    runs, of_chunk = 10_000, 50
    account.executions["night"] = Execution("SUCCEEDED")
    write_task(account.bucket, "night", Task.of(BUILT_IN, budget=5.0), [])
    for chunk in range(runs // of_chunk):
        found = [f"run-{number:05}" for number in range(chunk * of_chunk, (chunk + 1) * of_chunk)]
        verdicts = [
            (FoundRun(name, name, name), Judged((Row(name, "A", "passed", note="n" * 300),), "as it is"))
            for name in found
        ]
        account.bucket.write(plan.rows_key("night", chunk), encoded_verdicts(verdicts))
    tracemalloc.start()
    try:
        table = collect(account, "night", Options())
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most / runs < 200  # bytes, where a row alone has 1,000
    assert [row.run for row in table.rows] == [f"run-{number:05}" for number in range(runs)]


@pytest.mark.usefixtures("judged_here")
def test_two_versions_are_compared_in_the_account(account, runs, tmp_path):
    new, old = write_rule(tmp_path / "new.py", 4), write_rule(tmp_path / "old.py", 100)
    question = Question(({"rule": "LossSpike", "parameters": {}},), new, old)
    table = ask(account, question, runs)
    assert [row.status_before for row in table.rows if row.changed] == ["NoIssuesFound", "NoIssuesFound"]
