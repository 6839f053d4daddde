"""A backtest in the account: the same table as here."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from typing import Any

import pytest

from smdebug.backtesting import kept_rows
from smdebug.backtesting.backtest import Options
from smdebug.backtesting.deployed import account as deployed_account
from smdebug.backtesting.deployed import plan
from smdebug.backtesting.deployed.account import cancel, collect
from smdebug.backtesting.deployed.plan import Estimate
from smdebug.backtesting.deployed.task import Task, encoded_verdicts, write_task
from smdebug.backtesting.finding_runs import FoundRun
from smdebug.backtesting.journal import Journal
from smdebug.backtesting.judging import Judged
from smdebug.backtesting.labels import Labels
from smdebug.backtesting.question import Question
from smdebug.backtesting.rows import Row
from smdebug.cli.runs.backtest_deployed import in_words
from smdebug.exceptions import SMDebugValueError
from smdebug.runs.conditions import parse_condition
from smdebug.runs.requests.annotating import annotate
from smdebug.service.backtests import Execution
from smdebug.storage import open_storage
from tests.backtesting.deployed.asking import BUILT_IN, ask, here, without_seconds
from tests.backtesting.many_runs import write_rule


def test_rules_of_ones_own_have_the_rows_of_a_backtest_here(account, runs, custom):
    table = ask(account, custom, runs)
    assert without_seconds(table) == here(custom, runs)
    assert [row.fires for row in table.rows] == [True, False, False, True]
    (policy, *others) = account.lender.policies.values()
    assert len(others) == 3  # one for each run
    assert not any("s3:PutObject" in statement["Action"] for statement in policy["Statement"])


def test_built_in_rules_have_the_rows_of_a_backtest_here(account, runs):
    assert without_seconds(ask(account, BUILT_IN, runs)) == here(BUILT_IN, runs)


@pytest.mark.usefixtures("judged_here")
def test_a_dry_run_writes_and_starts_nothing(account, runs):
    estimated = ask(account, BUILT_IN, runs, is_dry=True)
    assert isinstance(estimated, Estimate)
    assert (estimated.runs, estimated.steps) == (4, 16)
    assert not account.executions
    assert not (account.folder / "backtests").exists()


@pytest.mark.usefixtures("judged_here")
def test_two_labels_of_a_run_are_refused_before_anything_is_started(account, runs):
    named = sorted(path.name for path in runs.iterdir())[0]
    labels = Labels({named: "failing", f"{runs}/{named}": "healthy"})
    with pytest.raises(SMDebugValueError, match="The labels contradict each other"):
        ask(account, BUILT_IN, runs, labels=labels)
    assert not account.executions


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
    with pytest.raises(SMDebugValueError, match="There is no backtest nightly-2026-01-01: a day whose"):
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
