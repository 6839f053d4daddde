"""Asks a question of an account that is a folder, and of the runs here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from smdebug.backtesting.backtest import Backtest, Options
from smdebug.backtesting.deployed.account import DeployedOptions, backtest_in_account
from smdebug.backtesting.finding_runs import FoundRun, find_runs
from smdebug.backtesting.judging import judge
from smdebug.backtesting.question import Question
from smdebug.backtesting.rows import Row
from tests.backtesting.deployed.folder_account import FolderAccount

BUILT_IN = Question(({"rule": "ExplodingTensor", "parameters": {}},))


class PoolHere:
    """Judges in this process: starting others is what most of these tests would spend their time on."""

    def __init__(self, question: Question, jobs: int):
        self._question = question

    def judge_each(self, runs: Iterable[FoundRun], known: object) -> Iterator[Any]:
        for number, run in enumerate(runs):
            yield number, run, judge(self._question, run)


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
