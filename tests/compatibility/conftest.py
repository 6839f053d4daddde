"""A saved run and the objects around it, for the rows of the table."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import smdebug
from smdebug.rules import Rule
from smdebug.saving.hooks import singleton
from smdebug.trials import create_trial

OLD_RUN = Path(__file__).parents[1] / "golden" / "runs" / "single_worker"


class AlwaysMet(Rule):
    """A rule whose condition is met at every step."""

    def invoke_at_step(self, step: int) -> bool:
        return True


class NeverMet(Rule):
    """A rule whose condition is never met."""

    def invoke_at_step(self, step: int) -> bool:
        return False


@pytest.fixture
def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """The names that subjects of the table may use."""
    monkeypatch.setattr(singleton, "_hook", None)
    monkeypatch.setenv("SMDEBUG_TRIAL_WAIT_SECONDS", "1")
    run = tmp_path / "run"
    shutil.copytree(OLD_RUN, run)
    trial = create_trial(str(run))
    hook = smdebug.Hook(tmp_path / "new")
    yield {
        "run": str(run),
        "folder": str(tmp_path / "folder"),
        "trial": trial,
        "tensor": trial.tensor("loss_output_0"),
        "rule": AlwaysMet(trial),
        "calm_rule": NeverMet(trial),
        "hook": hook,
    }
    hook.close()
