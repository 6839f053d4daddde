"""transformers' own TensorBoard callback beside ours: each logs what it logs alone, once."""

import numpy as np
import pytest

import smdebug.pytorch as smd
from smdebug.huggingface import Callback
from tests.frameworks.boards import scalars
from tests.frameworks.huggingface.test_callback import train


@pytest.fixture
def board(monkeypatch):
    """Train with a board in this folder."""

    def trained(folder, callback=None):
        monkeypatch.setenv("TENSORBOARD_LOGGING_DIR", str(folder))
        return train(folder / "out", callback, steps=6, report_to=["tensorboard"], evaluate=True)

    return trained


def test_both_log_what_each_logs_alone(board, tmp_path):
    board(tmp_path / "alone")
    callback = Callback(str(tmp_path / "run"))
    trainer = board(tmp_path / "beside", callback)
    callback.close()

    logged = scalars(tmp_path / "beside")
    assert logged == scalars(tmp_path / "alone")
    assert [step for step, _ in logged["./train/loss"]] == [1, 2, 3, 4, 5, 6]
    trial = smd.create_trial(str(tmp_path / "run"))
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    assert trial.series("loss").of(smd.modes.TRAIN).mode_steps.tolist() == list(range(6))
    np.testing.assert_allclose(trial.series("logged/loss").values, losses, atol=1e-6)
    assert len(trial.series("eval_loss")) == len(logged["./eval/loss"]) == 1
