"""A logger of Lightning's Trainer has its run open in a tool: the sinks log to that one."""

import sys
import types

import lightning
import pytest
from lightning.pytorch.loggers import CSVLogger

from smdebug.saving.process.sinks import ScriptRuns
from smdebug.sinks.sink import SinkChoice
from tests.frameworks.lightning.test_callback import Module, data


class MLFlowLogger(CSVLogger):
    """What is asked of Lightning's logger of this name, whose library is not installed here."""

    _tracking_uri = "sqlite:///mlflow.db"

    def __init__(self, folder, run_id):
        super().__init__(folder)
        self.run_id = run_id


class Asked(lightning.Callback):
    """Asks for the script's run when the training begins, as the first step of a hook does."""

    def on_train_start(self, trainer, module):
        self.settings = found()


def found():
    return ScriptRuns([SinkChoice("mlflow", "")], "run").settings


def trainer_with(logger, asked):
    return lightning.Trainer(
        accelerator="cpu",
        max_epochs=1,
        logger=logger,
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=False,
        callbacks=[asked],
    )


@pytest.fixture(autouse=True)
def mlflow(monkeypatch):
    """MLflow without an active run: the logger talks to the server by a client of its own."""
    made = types.ModuleType("mlflow")
    made.active_run = lambda: None
    monkeypatch.setitem(sys.modules, "mlflow", made)


def test_the_run_of_the_trainer_that_runs_is_used_and_no_other(tmp_path):
    trainers = []  # as in a search: the earlier ones are still there
    for run_id in ("first", "second"):
        asked = Asked()
        trainers.append(trainer_with([CSVLogger(tmp_path), MLFlowLogger(tmp_path, run_id)], asked))
        trainers[-1].fit(Module(), data())
        assert asked.settings == [{"name": "mlflow", "target": "sqlite:///mlflow.db", "run_id": run_id}]
    assert found() == [{"name": "mlflow", "target": ""}]


def test_a_trainer_that_logs_elsewhere_has_no_run_in_mlflow(tmp_path):
    asked = Asked()
    trainer_with(CSVLogger(tmp_path), asked).fit(Module(), data())
    assert asked.settings == [{"name": "mlflow", "target": ""}]
