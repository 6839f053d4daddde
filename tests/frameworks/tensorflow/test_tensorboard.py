"""Keras' own TensorBoard callback beside the hook: each logs what it logs alone, once."""

import keras
import numpy as np
import pytest

import smdebug.tensorflow as smd
from tests.frameworks.boards import scalars
from tests.frameworks.tensorflow.training import fit, small_model, trial_of


def board(folder):
    return keras.callbacks.TensorBoard(str(folder), update_freq=1, histogram_freq=1)


def train(*callbacks):
    keras.utils.set_random_seed(0)
    return fit(small_model(), *callbacks, validation_split=0.5)


@pytest.mark.parametrize("hook_is_first", [True, False])
def test_both_log_what_each_logs_alone(tmp_path, hook_is_first):
    train(board(tmp_path / "alone"))
    hook = smd.KerasHook(str(tmp_path / "run"))
    together = [hook, board(tmp_path / "beside")]
    train(*(together if hook_is_first else reversed(together)))
    hook.close()
    lone = smd.KerasHook(str(tmp_path / "lone"))
    train(lone)
    lone.close()

    logged = scalars(tmp_path / "beside")
    assert logged == scalars(tmp_path / "alone")
    assert [step for step, _ in logged["train/epoch_loss"]] == [0, 1]
    ours, alone = trial_of(tmp_path / "run"), trial_of(tmp_path / "lone")
    assert ours.observations.series_names() == alone.observations.series_names()
    for mode, steps in ((smd.modes.TRAIN, [0, 1, 2, 3]), (smd.modes.EVAL, [0, 1, 2, 3])):
        losses = ours.series("loss").of(mode)
        assert losses.mode_steps.tolist() == steps
        np.testing.assert_array_equal(losses.values, alone.series("loss").of(mode).values)
