"""Steps of a training whose evaluations have the number of the training step before them."""

import numpy as np
import pytest

import smdebug
from smdebug import modes
from smdebug.trials import create_trial
from tests.saving.saved_files import index_of, names_at


def numbered(place, *blocks, between=lambda hook: None):
    """Train and evaluate by turns: pairs of a mode and its number of steps; return the saved run."""
    hook = smdebug.Hook(str(place))
    hook.recorder.numbers_training = True
    with hook:
        for mode, steps in blocks:
            for _ in range(steps):
                with hook.step(mode):
                    hook.record("loss", np.float32(1 / (2 + hook.step)))
                    hook.record("x_output_0", np.ones(3, np.float32))
            between(hook)
    return hook, create_trial(str(place))


def of_mode(trial, mode):
    return [(step, trial.mode_step(step)) for step in trial.steps() if trial.mode(step) is mode]


def test_an_evaluation_is_saved_once_under_the_number_of_the_step_before_it(out_dir):
    hook, trial = numbered(out_dir, (modes.TRAIN, 15), (modes.EVAL, 4), (modes.TRAIN, 15), (modes.EVAL, 2))
    assert of_mode(trial, modes.TRAIN) == [(step, step) for step in [*range(11), 20]]
    assert of_mode(trial, modes.EVAL)[:2] == [(14, 0), (29, 4)]
    assert hook.step == 29, "evaluations are not counted"
    assert hook.mode_steps[modes.EVAL] == 5


def test_an_evaluation_before_the_training_takes_the_first_number(out_dir):
    _, trial = numbered(out_dir, (modes.EVAL, 3), (modes.TRAIN, 12))
    assert of_mode(trial, modes.EVAL) == [(0, 0)]
    assert of_mode(trial, modes.TRAIN)[:11] == [(step + 1, step) for step in range(11)]


def test_training_that_would_be_saved_under_the_number_of_an_evaluation_follows_it(out_dir):
    _, trial = numbered(out_dir, (modes.TRAIN, 20), (modes.EVAL, 2), (modes.TRAIN, 5))
    assert of_mode(trial, modes.EVAL) == [(19, 0)]
    _, trial = numbered(out_dir.parent / "other", (modes.TRAIN, 21), (modes.EVAL, 2), (modes.TRAIN, 5))
    assert of_mode(trial, modes.EVAL) == [(21, 0)], "20 is saved already"


def test_what_is_saved_after_an_evaluation_is_of_its_record(out_dir):
    def save(hook):
        hook.save_scalar(f"after_{hook.mode.name}", 0.5)

    numbered(out_dir, (modes.TRAIN, 15), (modes.EVAL, 4), between=save)
    assert "scalar/after_TRAIN" in names_at(out_dir, 14)
    assert index_of(out_dir, 15)["meta"]["mode"] == "EVAL"
    assert {"loss", "scalar/after_EVAL"} < set(names_at(out_dir, 15))


def test_the_losses_of_all_batches_are_there_each_under_its_number(out_dir):
    _, trial = numbered(out_dir, (modes.TRAIN, 15), (modes.EVAL, 4), (modes.TRAIN, 15), (modes.EVAL, 2))
    losses = trial.observations.series("loss")
    assert losses.of(modes.TRAIN).steps.tolist() == list(range(30))
    assert losses.of(modes.EVAL).steps.tolist() == [14, 29]
    assert losses.of(modes.TRAIN).values.tolist() == pytest.approx([1 / (2 + step) for step in range(30)])


def test_a_loop_that_evaluates_after_each_step_saves_no_fewer_steps_of_training(out_dir):
    blocks = [(modes.TRAIN, 1), (modes.EVAL, 1)] * 12
    _, trial = numbered(out_dir, *blocks)
    trained = [mode_step for _, mode_step in of_mode(trial, modes.TRAIN)]
    assert trained[:5] == [0, 2, 3, 4, 5]
    assert trial.steps() == sorted(set(trial.steps()))
    assert of_mode(trial, modes.EVAL)
