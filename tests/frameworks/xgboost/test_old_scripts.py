"""Training scripts as people wrote them for the old library, with XGBoost."""

import json

import numpy as np
import pytest
import xgboost

import smdebug.xgboost as smd
from smdebug.exceptions import SMDebugValueError
from smdebug.saving.hooks.error_agent import BASE_ERROR_MESSAGE, ErrorHandlingAgent


@pytest.fixture(autouse=True)
def _library_switched_on(monkeypatch):
    agent = ErrorHandlingAgent.get_error_handling_agent()
    monkeypatch.setattr(agent, "disable_smdebug", False)


@pytest.fixture
def default_hook(tmp_path, monkeypatch):
    """Return the hook of a SageMaker job without configuration."""
    path = tmp_path / "debughookconfig.json"
    path.write_text(json.dumps({"LocalPath": str(tmp_path / "run")}))
    monkeypatch.setenv("SMDEBUG_CONFIG_FILE_PATH", str(path))
    return smd.get_hook()


def train(hook, rounds=12):
    values = np.random.default_rng(0).random((40, 4))
    data = xgboost.DMatrix(values, label=values[:, 0] > 0.5)
    return xgboost.train(
        {"objective": "binary:logistic", "nthread": 1},
        data,
        rounds,
        evals=[(data, "train")],
        callbacks=[hook],
        verbose_eval=False,
    )


def fail(*args, **kwargs):
    raise RuntimeError("a defect of the hook")


@pytest.mark.parametrize("method", ["begin_step", "record", "end_step", "flush"])
def test_an_error_in_a_hook_made_by_default_is_logged_and_the_training_continues(
    default_hook, monkeypatch, caplog, method
):
    monkeypatch.setattr(default_hook, method, fail)
    assert train(default_hook).num_boosted_rounds() == 12
    problems = [record for record in caplog.records if record.levelname in ("WARNING", "ERROR")]
    (logged,) = (each for each in problems if "a defect" in f"{each.exc_info} {each.getMessage()}")
    assert logged.levelname == ("WARNING" if method == "record" else "ERROR"), "of what is recorded, a part"


def test_after_an_error_a_hook_made_by_default_is_switched_off(default_hook, monkeypatch, caplog):
    monkeypatch.setattr(default_hook, "begin_step", fail)
    train(default_hook)
    train(default_hook)
    assert ErrorHandlingAgent.get_error_handling_agent().disable_smdebug
    assert [record.getMessage() for record in caplog.records].count(BASE_ERROR_MESSAGE) == 1


def test_an_error_in_a_configured_hook_is_raised(tmp_path):
    hook = smd.Hook(str(tmp_path / "run"), include_collections=["mine"])
    hook.get_collection("mine").include("(x")
    with pytest.raises(SMDebugValueError):
        train(hook)


def test_old_names_for_preparing_and_closing_work(default_hook, tmp_path):
    default_hook._prepare_collections()
    train(default_hook)
    default_hook._cleanup()
    trial = smd.create_trial(str(tmp_path / "run"))
    assert trial.loaded_all_steps
    assert trial.tensor("train-logloss").steps() == [0, 10]
