"""A backtest in the account leaves bundles, which the next one reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from functions.backtests.sandboxed import prepare_chunk
from smdebug.backtesting.backtest import Backtest, Options
from smdebug.backtesting.bundles.bundle_file import bundle_name
from smdebug.backtesting.deployed.account import DeployedOptions, backtest_in_account
from smdebug.backtesting.deployed.task import Task, write_task
from smdebug.backtesting.question import Question
from smdebug.storage import open_storage
from tests.backtesting.deployed.asking import without_seconds
from tests.backtesting.deployed.folder_account import FolderAccount
from tests.backtesting.many_runs import make_run, write_rule

EXPLODING = Question(({"rule": "ExplodingTensor", "parameters": {}},))
DECREASING = Question(({"rule": "LossNotDecreasing", "parameters": {}},))


def runs_in(folder: Path) -> Path:
    for number in range(2):
        make_run(folder / f"run-{number}", [2.0 + number * step for step in range(20)])
    return folder


def ask(account: FolderAccount, question: Question, runs: Path) -> Backtest:
    journal = account.folder.parent / f"{question.digest()}-{account.has_bundles}.jsonl"
    options, deployed = Options(journal=journal), DeployedOptions(pause=lambda: None)
    table = backtest_in_account(question, [str(runs)], account, options, deployed)
    assert isinstance(table, Backtest)
    return table


def bundles_in(account: FolderAccount) -> list[str]:
    return list(account.bucket.list("backtests/bundles/"))


@pytest.mark.usefixtures("judged_here")
def test_the_first_backtest_leaves_a_bundle_of_each_run_and_another_finds_the_same_with_them(tmp_path: Path):
    account = FolderAccount(tmp_path / "bucket")
    runs = runs_in(account.folder / "runs")
    ask(account, EXPLODING, runs)
    names = [f"backtests/bundles/{bundle_name(str(run))}" for run in sorted(runs.iterdir())]
    assert sorted(names) == bundles_in(account)
    with_bundles = ask(account, DECREASING, runs)
    bare = FolderAccount(account.folder, has_bundles=False)
    assert without_seconds(with_bundles) == without_seconds(ask(bare, DECREASING, runs))


@pytest.mark.usefixtures("judged_here")
def test_a_problem_with_a_bundle_is_logged(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    account = FolderAccount(tmp_path / "bucket")
    runs = runs_in(account.folder / "runs")
    name = bundle_name(str(runs / "run-0"))
    open_storage(account.ports.bundles).write(name, b"not a bundle")
    ask(account, EXPLODING, runs)
    assert "A run was read without its bundle" in capsys.readouterr().out


@pytest.mark.usefixtures("judged_here")
def test_a_stack_that_keeps_none_writes_none(tmp_path: Path):
    account = FolderAccount(tmp_path / "bucket", has_bundles=False)
    ask(account, EXPLODING, runs_in(account.folder / "runs"))
    assert bundles_in(account) == []


def test_code_of_ones_own_reads_a_bundle_and_writes_none(tmp_path: Path):
    account = FolderAccount(tmp_path / "bucket")
    runs = runs_in(account.folder / "runs")
    custom = Question(({"rule": "LossSpike", "parameters": {}},), write_rule(tmp_path / "rule.py"))
    table = ask(account, custom, runs)
    assert [row.looked for row in table.rows] == [20, 20]
    assert bundles_in(account) == []


def test_a_job_of_the_sandbox_names_the_bundles_of_the_stack_whatever_the_plan_says(tmp_path: Path):
    account = FolderAccount(tmp_path / "bucket")
    file = write_rule(tmp_path / "rule.py")
    question = Question(
        ({"rule": "LossSpike", "parameters": {}},), file, bundles="s3://elsewhere", keeps_bundles=True
    )
    write_task(account.bucket, "1", Task.of(question, 1.0), [])
    runs = runs_in(account.folder / "runs")
    event = {"backtest": "1", "chunk": 0, "dollars": 0.1, "runs": [[str(runs / "run-0")] * 3]}
    asked = prepare_chunk(account.ports, event)["task"]["question"]
    assert (asked["bundles"], asked["keeps_bundles"]) == (account.ports.bundles, False)
