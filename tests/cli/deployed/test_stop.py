"""`smdebug stop` of a training that saves to a folder."""

from __future__ import annotations

import json

import pytest

import smdebug
from smdebug.exceptions import TrainingStopped


def request(run):
    return json.loads((run / "control/stop").read_text())


def test_the_training_gets_the_request_with_its_reason(ask, tmp_path):
    config = smdebug.SaveConfig(save_interval=1)
    hook = smdebug.Hook(str(tmp_path / "run"), save_config=config, look_for_stop=0)
    with pytest.raises(TrainingStopped, match="seen enough"), hook:
        for step in range(1000):
            with hook.step():
                hook.record("loss", 1.0)
            if step == 3:
                hook.flush()
                answer = ask("stop", tmp_path / "run", "--reason", "seen enough", "--yes")
                assert (answer.code, answer.err) == (0, "")
                assert f"{tmp_path / 'run'} stops at its next saved step" in answer.out


def test_the_request_is_for_this_attempt_and_for_that_step(ask, tmp_path):
    place = tmp_path / "run"
    hook = smdebug.Hook(str(place), save_config=smdebug.SaveConfig(save_interval=1))
    with hook.step():
        hook.record("loss", 1.0)
    hook.flush()
    answer = ask("stop", place, "--at-step", 50, "--yes", "--json")
    hook.close()
    assert request(place) == {
        "reason": "no reason was given",
        "finding_id": None,
        "stop_at_step": 50,
        "run_id": hook.run_id,
        "training_run": 0,
    }
    assert answer.json == {"run": str(place), **request(place)}


def test_a_run_that_has_ended_cannot_be_stopped(ask, failing):
    answer = ask("stop", failing, "--yes")
    assert (answer.code, "no training is left to stop" in answer.err) == (3, True)
    assert not (failing / "control").exists()


def test_a_folder_without_a_run_is_named_and_stays_as_it_is(ask, tmp_path):
    answer = ask("stop", tmp_path, "--yes")
    assert (answer.code, f"There is no run at {tmp_path}" in answer.err) == (3, True)
    assert list(tmp_path.iterdir()) == []
