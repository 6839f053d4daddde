"""`smdebug zoom`: a request beside a run that is in progress."""

from __future__ import annotations

import pytest

from smdebug import SaveConfig
from smdebug.files.zoom_request import ZoomRequest
from tests.cli.conftest import failing_run


def request(run):
    return ZoomRequest.parse((run / "control/zoom").read_bytes())


def test_the_request_names_tensors_steps_and_workers(ask, in_progress):
    words = ("--tensor", "fc1", "--tensor", "loss", "--steps", 3, "--worker", "worker_0")
    answer = ask("zoom", in_progress, *words, "--reason", "curious")
    assert answer.code == 0
    assert request(in_progress)._replace(run_id=None, training_run=None) == ZoomRequest(
        ("fc1", "loss"), 3, "curious", workers=("worker_0",)
    )
    assert "known tensor" in answer.out
    assert "loss" in answer.out


def test_a_name_that_no_tensor_has_so_far_is_shown_with_those_there_are(ask, in_progress):
    answer = ask("zoom", in_progress, "--tensor", "convolution")
    assert answer.code == 0
    assert "no tensor seen so far matches convolution" in answer.out
    assert "loss" in answer.out


def test_a_name_that_matches_nothing_is_reported_beside_one_that_does(ask, in_progress):
    answer = ask("zoom", in_progress, "--tensor", "loss", "--tensor", "gradients/fc")
    assert answer.code == 0
    assert "1 known tensor whole" in answer.out
    assert "no tensor seen so far matches gradients/fc. Did you mean gradient/fc?" in answer.out
    assert request(in_progress).tensors == ("loss", "gradients/fc")  # it may come to exist
    answer = ask("zoom", in_progress, "--tensor", "loss", "--tensor", "xyz", "--json")
    assert answer.json["unmatched"] == ["xyz"]


def test_the_answer_as_json(ask, in_progress):
    answer = ask("zoom", in_progress, "--tensor", "^loss$", "--json")
    assert answer.json["matching"] == ["loss"]
    assert answer.json["steps"] == 10


@pytest.mark.parametrize(
    ("words", "code", "problem"),
    [
        (("--tensor", "(a+)+$"), 2, "could"),
        (("--tensor", "loss", "--steps", "0"), 2, "1<=x<=1000"),
        ((), 2, "--tensor"),
    ],
)
def test_a_wrong_request_is_refused_and_nothing_is_written(ask, in_progress, words, code, problem):
    answer = ask("zoom", in_progress, *words)
    assert (answer.code, problem in answer.err) == (code, True), answer.err
    assert not (in_progress / "control").exists()


def test_a_run_that_has_ended_has_nothing_to_zoom_into(ask, tmp_path):
    failing_run(tmp_path / "run")
    answer = ask("zoom", tmp_path / "run", "--tensor", "loss")
    assert answer.code == 3
    assert "has ended" in answer.err


def test_the_training_saves_what_was_requested(ask, tmp_path):
    import smdebug
    from smdebug.trials import create_trial

    place = tmp_path / "run"
    hook = smdebug.Hook(place, look_for_stop=0, save_config=SaveConfig(save_interval=2))
    with hook:
        for step in range(9):
            with hook.step():
                hook.record("loss", 1.0)
                hook.record("dense/weight", [[1.0, step]])
            if step == 2:
                hook.flush()
                assert ask("zoom", place, "--tensor", "weight", "--steps", 2).code == 0
    assert create_trial(str(place)).tensor("dense/weight").steps() == [4, 5]
