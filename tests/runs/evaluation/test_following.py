"""Rules on a run that grows: each step once, problems that open and resolve."""

from __future__ import annotations

import numpy as np
import pytest

import smdebug
from smdebug.runs.evaluation.following import ChangeKind, Following
from smdebug.runs.live_run import LiveRun, State
from smdebug.runs.opening import open_run

RULE = """
from smdebug.rules import Finding, Rule

class High(Rule):
    advice = {"": ("Lower it.",)}

    def __init__(self, base_trial):
        super().__init__(base_trial)
        self.seen = []

    def invoke_at_step(self, step):
        self.seen.append(step)
        loss = self.base_trial.tensor("loss").value(step).item()
        if loss > 10:
            self.findings.append(Finding("loss", message=f"loss {loss} at {len(self.seen)}"))
        return bool(self.findings)

class Fails(Rule):
    def invoke_at_step(self, step):
        if step == 2:
            raise KeyError("gone")
        return False
"""


class Training:
    """A training that saves a loss at each step."""

    def __init__(self, path):
        config = smdebug.SaveConfig(save_interval=1)
        self.hook = smdebug.Hook(str(path), save_all=True, save_config=config)

    def step(self, *losses):
        for loss in losses:
            with self.hook.step():
                self.hook.record("loss", loss)
        self.hook.flush()


@pytest.fixture
def rules(tmp_path):
    file = tmp_path / "rules.py"
    file.write_text(RULE)
    return str(file)


def test_a_problem_opens_and_resolves_while_the_run_grows(tmp_path, rules):
    training = Training(tmp_path / "run")
    training.step(1.0)
    following = Following(open_run(tmp_path / "run"), ["High"], file=rules)
    assert following.advance() == []
    training.step(1.0, 11.0)
    (opened,) = following.advance()
    assert (opened.kind, opened.step, opened.issue.what) == (ChangeKind.OPENED, 2, "loss 11.0 at 3")
    assert opened.issue.advice == ("Lower it.",)
    training.step(12.0)
    assert (following.advance(), len(following.open_issues)) == ([], 1)
    training.step(2.0)
    (resolved,) = following.advance()
    assert (resolved.kind, resolved.step, following.open_issues) == (ChangeKind.RESOLVED, 4, ())
    assert [issue.last for issue in following.issues] == [3]
    training.hook.close()
    following.advance()
    assert (following.has_ended, following.results[0].looked) == (True, 5)


def test_a_problem_that_came_and_went_between_two_looks_is_reported(tmp_path, rules):
    training = Training(tmp_path / "run")
    training.step(1.0, 11.0, 1.0)
    following = Following(open_run(tmp_path / "run"), ["High"], file=rules)
    assert [change.kind for change in following.advance()] == [ChangeKind.OPENED, ChangeKind.RESOLVED]
    assert following.advance() == []
    training.step(12.0)
    assert [change.kind for change in following.advance()] == [ChangeKind.OPENED]
    assert len(following.open_issues) == 1


def test_following_in_pieces_has_the_result_of_evaluating_at_once(tmp_path, rules):
    training = Training(tmp_path / "run")
    training.step(*range(30))
    training.hook.close()
    following = Following(open_run(tmp_path / "run"), ["High"], file=rules)
    while not following.has_ended:
        following.advance(most_steps=7)
    (pieces,) = following.results
    (whole,) = smdebug.diagnose(tmp_path / "run", ["High"], file=rules).results
    assert (pieces.steps_found, pieces.found) == (whole.steps_found, whole.found)


def test_a_rule_that_fails_ends_alone(tmp_path, rules):
    training = Training(tmp_path / "run")
    training.step(1.0, 1.0, 1.0, 99.0)
    training.hook.close()
    following = Following(open_run(tmp_path / "run"), ["Fails", "High"], file=rules)
    assert [change.kind for change in following.advance()] == [ChangeKind.OPENED]
    assert following.failed == {"Fails": "at step 2: KeyError: 'gone'"}


def test_a_run_is_awaited_followed_and_ended(tmp_path, rules):
    run = LiveRun(str(tmp_path / "run"), ["High"], rules)
    assert (run.advance(), run.state) == ([], State.AWAITED)
    training = Training(tmp_path / "run")
    training.step(3.0, 2.0)
    run.advance()
    assert (run.state, run.last_step, run.loss, run.steps_saved) == (State.LIVE, 1, 2.0, 2)
    training.step(float("nan"))
    run.advance()
    np.testing.assert_array_equal(run.losses, [3.0, 2.0, np.nan])
    training.hook.close()
    run.advance()
    assert run.has_ended
