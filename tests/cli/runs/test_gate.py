"""`smdebug gate`: which exit code a pipeline gets."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest

import smdebug
from smdebug.files.names import END_MARKER, index_key
from tests.rules.made_runs import MadeRun

RULE = ("--rule", "ExplodingTensor")


@pytest.fixture
def healthy(tmp_path):
    MadeRun(tmp_path / "run").save(0, {"loss": np.ones(2)}).save(10, {"loss": np.ones(2)}).end()
    return tmp_path / "run"


def aged(run, seconds: float) -> None:
    """Make the index files of the run say that it was saved so long ago."""
    for file in (run / "index").rglob("*.json"):
        content = json.loads(file.read_bytes())
        content["meta"]["saved_at"] = time.time() - seconds
        file.write_text(json.dumps(content))


def test_a_healthy_run_passes(ask, healthy):
    aged(healthy, 60)
    answer = ask("gate", healthy, *RULE, "--max-age", "1h", "--ended")
    assert (answer.code, "passes the gate: 1 rule passed." in answer.out) == (0, True)


def test_a_failing_run_names_its_problem(ask, failing):
    answer = ask("gate", failing, "--rules", "usual")
    assert answer.code == 1
    assert "does not pass the gate (failing): " in answer.out
    assert "Gradients vanish, since step 40" in answer.out


def test_a_run_that_no_rule_can_check_does_not_pass(ask, healthy):
    answer = ask("gate", healthy, "--rule", "VanishingGradient")
    assert (answer.code, "(not checked)" in answer.out) == (5, True)


def test_a_run_of_an_earlier_night_is_too_old_and_one_in_progress_has_stalled(ask, healthy):
    aged(healthy, 7200)
    assert ask("gate", healthy, *RULE, "--max-age", "3h").code == 0
    answer = ask("gate", healthy, *RULE, "--max-age", "10m")
    assert answer.code == 6
    assert "The run is too old: its newest step (10) was saved 2 h ago, more than 10 min." in answer.out
    (healthy / END_MARKER).unlink()
    answer = ask("gate", healthy, *RULE, "--max-age", "10m")
    assert (answer.code, "The run has stalled" in answer.out) == (6, True)


def test_a_run_without_times_cannot_be_young_enough(ask, healthy):
    answer = ask("gate", healthy, *RULE, "--max-age", "10m")
    assert (answer.code, "does not record when step 10 was saved" in answer.out) == (6, True)
    assert ask("gate", healthy, *RULE).code == 0


def test_a_run_that_was_killed_passes_unless_it_must_have_ended(ask, healthy):
    (healthy / END_MARKER).unlink()
    assert ask("gate", healthy, *RULE).code == 0
    answer = ask("gate", healthy, *RULE, "--ended")
    assert (answer.code, "(not ended)" in answer.out) == (7, True)


def test_a_training_that_raised_never_passes(ask, tmp_path):
    def train():
        with smdebug.Hook(str(tmp_path / "run")) as hook:
            for step in range(12):
                with hook.step():
                    hook.record("loss", 1.0 / (1 + step))
            raise ValueError("no more data")

    with pytest.raises(ValueError, match="no more data"):
        train()
    for options in ([], ["--ended"]):
        answer = ask("gate", tmp_path / "run", "--rule", "NonFiniteValues", *options)
        assert answer.code == 7
        assert "(not ended): The training has failed: it raised an error or was terminated." in answer.out


def test_a_run_with_missing_steps_does_not_pass(ask, tmp_path):
    every_step = smdebug.SaveConfig(save_interval=1)
    with smdebug.Hook(str(tmp_path / "run"), save_config=every_step) as hook:
        for step in range(6):
            with hook.step():
                hook.record("loss", np.full(2, 1 / (step + 1)))
    assert ask("gate", tmp_path / "run", *RULE).code == 0
    (tmp_path / "run" / index_key(3, "worker_0")).unlink()
    answer = ask("gate", tmp_path / "run", *RULE)
    assert (answer.code, "(unreadable): Part of the run is missing" in answer.out) == (3, True)


def test_the_rules_are_a_set_or_a_file(ask, failing, tmp_path):
    (tmp_path / "rules.json").write_text(json.dumps({"version": 1, "rules": ["VanishingGradient"]}))
    assert ask("gate", failing, "--rules", tmp_path / "rules.json").code == 1
    answer = ask("gate", failing, "--rules", "usual", "--json")
    assert {"ExplodingTensor", "LossNotDecreasing"} <= set(answer.json["passed"])
    missing = ask("gate", failing, "--rules", tmp_path / "none.json")
    assert (missing.code, "There is no file" in missing.err) == (2, True)


def test_json_has_the_decision_and_what_it_is_based_on(ask, failing):
    aged(failing, 60)
    answer = ask("gate", failing, "--rule", "VanishingGradient", "--max-age", "90s", "--json")
    document = answer.json
    assert answer.code == document["exit_code"] == 1
    assert document["outcome"] == "failing"
    assert document["issues"][0]["since"] == 40
    assert document["max_age_seconds"] == 90
    assert document["age_seconds"] >= 60
