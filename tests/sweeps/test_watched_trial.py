"""Trials of a sweep: their runs, and which problems prune them."""

from __future__ import annotations

import math

import pytest

import smdebug
from smdebug.exceptions import SMDebugTypeError, SMDebugValueError, TrainingStopped
from smdebug.files.names import END_MARKER
from smdebug.saving.hooks import singleton
from smdebug.storage import open_storage
from smdebug.sweeps import watch_trial
from smdebug.trials import create_trial


@pytest.fixture(autouse=True)
def no_hook_of_this_process():
    singleton.del_hook()
    yield
    singleton.del_hook()


def train(watched, losses):
    """Train with a hook of its own; look at the problems after each step."""
    with smdebug.Hook(watched.out_dir, config=watched.config) as hook:
        for loss in losses:
            with hook.step(smdebug.modes.TRAIN):
                hook.record("loss", loss)
            watched.prune()


FINE = [1 / (1 + step) for step in range(6)]
NAN = [1.0, 0.5, math.nan, math.nan, math.nan, math.nan]


def test_a_trial_without_a_problem_ends_and_is_a_run_of_its_group(tmp_path, capsys):
    with watch_trial(str(tmp_path), name="a", group="my sweep", params={"lr": 0.1}) as watched:
        train(watched, FINE)
        assert watched.metrics() == {"smdebug_problems": 0}
    assert "no training" not in capsys.readouterr().out  # a hook of its own is one
    trial = create_trial(str(tmp_path / "my-sweep" / "a"))
    assert trial.origin.config == {"group": "my sweep", "lr": 0.1}
    assert len(trial.series("loss")) == 6


def test_a_problem_stops_the_trial_and_its_run_has_ended(tmp_path):
    with pytest.raises(TrainingStopped) as stopped, watch_trial(str(tmp_path), name="b") as watched:
        train(watched, NAN)
    assert "NaN" in stopped.value.reason or "not finite" in stopped.value.reason.lower()
    assert stopped.value.step == 2
    assert open_storage(str(tmp_path / "sweep" / "b")).exists(END_MARKER)


def test_only_chosen_causes_prune_and_only_if_they_stay(tmp_path):
    with watch_trial(str(tmp_path), name="c", causes=["overfitting"]) as watched:
        train(watched, NAN)
        assert watched.problems()
        assert not watched.should_prune()
    with watch_trial(str(tmp_path), name="d", patience=3) as watched, pytest.raises(TrainingStopped):
        train(watched, NAN)
    assert len(create_trial(str(tmp_path / "sweep" / "d")).series("loss")) == 5  # of which three are NaN


def test_an_error_of_the_training_is_no_end_of_the_run(tmp_path):
    watched = watch_trial(str(tmp_path), name="e")
    with pytest.raises(ZeroDivisionError), watched, smdebug.Hook(watched.out_dir) as hook:
        with hook.step(smdebug.modes.TRAIN):
            hook.record("loss", 1.0)
        raise ZeroDivisionError
    assert not open_storage(str(tmp_path / "sweep" / "e")).exists(END_MARKER)


@pytest.mark.parametrize("name", ["../../etc", "a/b", "größe 1", "...", ""])
def test_names_stay_below_the_folder(tmp_path, name):
    with watch_trial(str(tmp_path / "runs"), name=name, group=name) as watched:
        train(watched, FINE)
    (group,) = (tmp_path / "runs").iterdir()
    (run,) = group.iterdir()
    assert (run / "origin.json").exists()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({}, SMDebugTypeError, "name of the trial"),
        ({"name": "a", "causes": ["overfiting"]}, SMDebugValueError, "Did you mean overfitting"),
        ({"name": "a", "patience": 0}, SMDebugValueError, "from 1 on"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path, options, error, message):
    with pytest.raises(error, match=message):
        watch_trial(str(tmp_path), **options)
