"""Commands on a run whose training was started again."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import smdebug
from smdebug.files.names import END_MARKER
from smdebug.runs.evaluation.rule_process import RuleProcess
from smdebug.runs.evaluation.rule_results import PartialResult
from smdebug.runs.evaluation.rule_steps import RuleRequest
from smdebug.service.records import RuleConfiguration


@pytest.fixture
def restarted(tmp_path) -> Path:
    """A run that became NaN at step 4 and was started again, with a sound loss until step 2."""
    for values in ([1.0, 1.0, 1.0, 1.0, np.nan], [3.0, 2.0, 1.0]):
        hook = smdebug.Hook(
            tmp_path / "run",
            include_regex=["loss"],
            save_config=smdebug.SaveConfig(save_interval=1),
        )
        for value in values:
            with hook.step():
                hook.record("loss", np.float32(value))
        hook.close()
        (tmp_path / "run" / END_MARKER).unlink()
    return tmp_path / "run"


def test_inspect_lists_the_attempts_and_says_which_it_shows(ask, restarted):
    answer = ask("inspect", restarted)
    assert answer.code == 0
    assert "attempt 1 of 2, not ended, 1 worker, 3 steps" in answer.out
    assert "Attempts" in answer.out
    assert "interrupted" in answer.out
    assert "2 attempts, this is number 1" in " ".join(answer.err.split())
    payload = ask("inspect", restarted, "--json").json
    first, second = payload["attempts"]
    assert (payload["attempt"], first["hidden_steps"], second["num_steps"]) == (1, 2, 3)


def test_evaluate_judges_the_newest_attempt_or_the_requested_one(ask, restarted):
    rule = ("--rule", "ExplodingTensor")
    newest = ask("evaluate", restarted, *rule)
    assert newest.code == 0
    assert "this is number 1" in " ".join(newest.err.split())
    earlier = ask("evaluate", restarted, *rule, "--attempt", 0)
    assert earlier.code == 1
    assert "this is number 0" in " ".join(earlier.err.split())


def test_other_processes_evaluate_the_same_attempt(restarted):
    configuration = RuleConfiguration(name="found", rule="ExplodingTensor")
    result = PartialResult()
    with closing(RuleProcess(RuleRequest(str(restarted), configuration, attempt=0))) as process:
        process.evaluate([3, 4], result)
    assert result.steps_found == [4]


def test_each_command_reads_the_requested_attempt(ask, restarted, tmp_path):
    values = ask("tensor", restarted, "loss", "--attempt", 0, "--json").json
    assert [point["step"] for point in values["steps"]] == [3, 4]
    assert ask("export", "npz", restarted, "--attempt", 0, "-o", tmp_path / "e.npz").code == 0
    with np.load(tmp_path / "e.npz") as exported:
        assert all("3" in name or "4" in name for name in exported.files)


def test_verify_checks_the_files_of_all_attempts(ask, restarted):
    answer = ask("verify", restarted)
    assert answer.code == 0
    assert "checked  attempt 0: 2 steps (3 to 4), 2 of them hidden by a later attempt" in answer.out
    assert [each["number"] for each in ask("verify", restarted, "--json").json["attempts"]] == [
        0,
        1,
    ]


def test_an_attempt_that_does_not_exist_is_named_with_those_that_do(ask, restarted):
    answer = ask("inspect", restarted, "--attempt", 7)
    assert answer.code == 2
    assert "no attempt 7" in answer.err
    assert "attempt 1: 3 steps (0 to 2)" in " ".join(answer.err.split())


def test_the_deployed_report_has_no_attempt_to_choose(ask, restarted):
    answer = ask("report", "some-run", "--deployed", "--attempt", 0)
    assert answer.code == 2
    assert "leave out --attempt" in " ".join(answer.err.split())
