"""XGBoost scripts that know nothing of a hook."""

import numpy as np
import pytest
import xgboost

import smdebug
import smdebug.xgboost as smd
from tests.frameworks.scripts import watched

SCRIPT = """
import numpy as np
import pytest
import xgboost
values = np.random.default_rng(0).random((40, 3))
rows = xgboost.DMatrix(values, label=values[:, 0] > 0.5)
parameters = {"objective": "binary:logistic", "subsample": 0.5, "seed": 1}
for depth in (2, 3):
    model = xgboost.train(
        {**parameters, "max_depth": depth}, rows, 5, evals=[(rows, "train")], verbose_eval=False
    )
    print(model.save_raw("json"))
"""


def test_each_training_of_a_script_is_a_run(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    collections = "hyperparameters,average_shap,predictions,feature_importance"
    watched(script, "--out-dir", "run", "--collections", collections, "--save-interval", 2)
    for run, depth in (("run", 2), ("run-2", 3)):
        trial = smd.create_trial(str(tmp_path / run))
        assert trial.steps() == [0, 2, 4]
        assert trial.loaded_all_steps
        assert trial.tensor("hyperparameters/max_depth").value(0) == depth
        assert {"train-logloss", "predictions", "average_shap/f0"} <= set(trial.tensor_names())


def test_a_cross_validation_is_a_run_and_its_result_stays_the_same(tmp_path):
    values = np.random.default_rng(0).random((60, 3))
    rows = xgboost.DMatrix(values, label=values[:, 0] > 0.5)

    def validated():
        parameters = {"objective": "binary:logistic", "eval_metric": "logloss"}
        return xgboost.cv(parameters, rows, 6, nfold=3, as_pandas=False, seed=1)

    expected = validated()
    with smdebug.start(tmp_path / "run") as watching:
        assert validated() == expected
    assert watching.runs == [str(tmp_path / "run")]
    trial = smd.create_trial(str(tmp_path / "run"))
    assert trial.loaded_all_steps
    assert list(trial.series("test-logloss").values) == expected["test-logloss-mean"]


def test_what_only_another_framework_can_do_is_said_and_left_out(tmp_path, caplog):
    rows = xgboost.DMatrix(np.random.default_rng(0).random((20, 3)), label=np.arange(20) % 2)
    with smdebug.start(tmp_path / "run", compute_twice=10):
        xgboost.train({"objective": "binary:logistic"}, rows, 2, evals=[(rows, "train")], verbose_eval=False)
    assert "compute_twice does nothing for a training of XGBoost" in caplog.text
    assert smd.create_trial(str(tmp_path / "run")).loaded_all_steps


def test_what_is_logged_after_a_training_is_kept_with_it(tmp_path):
    rows = xgboost.DMatrix(np.random.default_rng(0).random((20, 3)), label=np.arange(20) % 2)
    with smdebug.start(tmp_path / "run") as watching:
        for accuracy in (0.25, 0.75):
            xgboost.train(
                {"objective": "binary:logistic"}, rows, 3, evals=[(rows, "train")], verbose_eval=False
            )
            smdebug.log(accuracy=accuracy)
            assert [smd.create_trial(run).loaded_all_steps for run in watching.runs[:-1]] == [
                True for _ in watching.runs[:-1]
            ]
    found = [smd.create_trial(run) for run in watching.runs]
    assert [list(trial.series("accuracy").values) for trial in found] == [[0.25], [0.75]]
    assert [list(trial.series("accuracy").steps) for trial in found] == [[2], [2]]
    assert all(trial.loaded_all_steps for trial in found)


def test_a_training_that_fails_ends_its_run_at_once(tmp_path):
    rows = xgboost.DMatrix(np.random.default_rng(0).random((20, 3)), label=np.arange(20) % 2)

    class Fails(xgboost.callback.TrainingCallback):
        def after_iteration(self, model, epoch, evals_log):
            raise ArithmeticError("on purpose")

    with smdebug.start(tmp_path / "run") as watching:
        with pytest.raises(ArithmeticError):
            xgboost.train({"objective": "binary:logistic"}, rows, 3, callbacks=[Fails()])
        assert smd.create_trial(watching.runs[0]).state == "failed"
