"""An account over a folder, with a few runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from smdebug.backtesting.deployed import plan
from smdebug.backtesting.question import Question
from tests.backtesting.deployed.asking import PoolHere
from tests.backtesting.deployed.folder_account import FolderAccount
from tests.backtesting.many_runs import make_runs, write_rule


@pytest.fixture
def account(tmp_path: Path) -> FolderAccount:
    return FolderAccount(tmp_path / "bucket")


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
