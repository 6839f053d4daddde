"""A rule at one step, as it was deployed."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from smdebug.backtesting.replaying import RuleDebugger, replay
from smdebug.exceptions import SMDebugValueError
from tests.backtesting.many_runs import make_run, write_rule


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return make_run(tmp_path / "run", [2.0, 1.0, 8.0, 4.0])


@pytest.fixture
def rule(tmp_path: Path) -> str:
    return write_rule(tmp_path / "rule.py", first="assert self.base_trial.steps()[-1] == step")


def test_the_rule_has_the_state_of_the_steps_before_and_sees_none_after(run: Path, rule: str):
    found = replay(run, 20, "LossSpike", file=rule)
    assert (found.outcome, found.steps_before) == ("found", 2)
    assert found.findings[0]["value"] == 8.0
    assert (found.state_before["last"], found.state_after["last"]) == (1.0, 8.0)


def test_a_step_that_passes_has_no_findings(run: Path, rule: str):
    found = replay(run, 20, "LossSpike", {"factor": "9"}, file=rule)
    assert (found.outcome, found.findings) == ("passed", ())


def test_a_step_that_was_not_saved_is_named_with_those_near_it(run: Path, rule: str):
    with pytest.raises(SMDebugValueError, match="Saved steps near it: 0, 10, 20, 30"):
        replay(run, 15, "LossSpike", file=rule)


def test_a_debugger_stops_in_the_rule_at_that_step_alone(run: Path, rule: str):
    shown = io.StringIO()
    debugger = RuleDebugger(
        stdin=io.StringIO("p step, self.last\ncontinue\n"), stdout=shown, nosigint=True, readrc=False
    )
    found = replay(run, 20, "LossSpike", file=rule, debugger=debugger)
    assert "invoke_at_step()" in shown.getvalue()
    assert "(20, 1.0)" in shown.getvalue()
    assert (found.outcome, found.left_out) == ("found", ())
    assert found == replay(run, 20, "LossSpike", file=rule)


def test_quitting_the_debugger_ends_the_replay(run: Path, rule: str):
    debugger = RuleDebugger(stdin=io.StringIO("quit\n"), stdout=io.StringIO(), nosigint=True, readrc=False)
    with pytest.raises(KeyboardInterrupt):
        replay(run, 20, "LossSpike", file=rule, debugger=debugger)
