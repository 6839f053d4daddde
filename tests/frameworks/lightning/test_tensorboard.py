"""Lightning's logger for TensorBoard beside the callback: each logs what it logs alone, once."""

import numpy as np
import pytest
from lightning.pytorch.loggers import TensorBoardLogger

import smdebug.pytorch as smd
from smdebug.lightning import Callback
from tests.frameworks.boards import scalars
from tests.frameworks.lightning.test_callback import fit


def train(folder, *callbacks):
    logger = TensorBoardLogger(str(folder), name="", version="")
    fit(folder, *callbacks, logger=logger, log_every_n_steps=1)


@pytest.fixture
def run(tmp_path):
    return tmp_path / "run"


def test_both_log_what_each_logs_alone(run, tmp_path):
    train(tmp_path / "alone")
    callback = Callback(str(run))
    train(tmp_path / "beside", callback)
    callback.close()

    logged = scalars(tmp_path / "beside")
    assert logged == scalars(tmp_path / "alone")
    assert [step for step, _ in logged["./accuracy"]] == list(range(6))
    trial = smd.create_trial(str(run))
    assert trial.series("loss").of(smd.modes.TRAIN).mode_steps.tolist() == list(range(6))
    np.testing.assert_allclose(trial.series("accuracy").of(smd.modes.TRAIN).values, 0.5)
    assert len(trial.series("val_loss")) == len(logged["./val_loss"]) == 2
