"""XGBoost's estimators for scikit-learn, with a hook among their callbacks, and without one in a script."""

import logging
import pickle

import numpy as np
import pytest
import xgboost
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

import smdebug.xgboost as smd
from tests.frameworks.scripts import watched

EVERY_ROUND = smd.SaveConfig(save_interval=1)


@pytest.fixture
def rows():
    random = np.random.default_rng(0)
    values = random.normal(size=(200, 4))
    return values, (values[:, 0] + 0.3 * random.normal(size=200) > 0).astype(int)


def test_an_estimator_that_stops_early_saves_each_round_and_predicts_the_same(tmp_path, rows):
    values, labels = rows

    def fitted(**more):
        model = xgboost.XGBClassifier(
            n_estimators=40, max_depth=3, early_stopping_rounds=5, eval_metric="logloss", **more
        )
        held_out = [(values[150:], labels[150:])]
        return model.fit(values[:150], labels[:150], eval_set=held_out, verbose=False)

    hook = smd.Hook(
        tmp_path / "run",
        save_config=EVERY_ROUND,
        include_collections=["feature_importance"],
    )
    model = fitted(callbacks=[hook])
    hook.close()
    np.testing.assert_array_equal(model.predict_proba(values), fitted().predict_proba(values))
    trial = smd.create_trial(str(tmp_path / "run"))
    losses = model.evals_result()["validation_0"]["logloss"]
    assert trial.steps() == list(range(len(losses)))
    assert len(losses) < 40
    saved = [trial.tensor("validation_0-logloss").value(step)[0] for step in trial.steps()]
    assert saved == losses
    assert "feature_importance/gain/f0" in trial.tensor_names()


def test_copies_of_an_estimator_are_trained_unwatched_which_is_reported_once(tmp_path, rows, caplog):
    values, labels = rows
    hook = smd.Hook(tmp_path / "run", save_config=EVERY_ROUND)
    model = xgboost.XGBRegressor(n_estimators=3, callbacks=[hook])
    logging.getLogger("smdebug").addHandler(caplog.handler)
    try:
        assert cross_val_score(clone(model), values, labels, cv=2).shape == (2,)
        search = GridSearchCV(model, {"max_depth": [1, 2]}, cv=2).fit(values, labels)
    finally:
        logging.getLogger("smdebug").removeHandler(caplog.handler)
    assert search.best_params_["max_depth"] in (1, 2)
    assert sum("not watched" in record.getMessage() for record in caplog.records) == 1
    model.fit(values, labels, eval_set=[(values, labels)], verbose=False)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(values), model.predict(values))
    again.fit(values, labels)
    hook.close()
    assert smd.create_trial(str(tmp_path / "run")).steps() == [0, 1, 2]


SCRIPT = """
import numpy as np
import xgboost
values = np.random.default_rng(0).random((80, 3))
for kind in (xgboost.XGBClassifier, xgboost.XGBRegressor):
    model = kind(n_estimators=6, max_depth=2, subsample=0.5, random_state=1)
    labels = (values[:, 0] > 0.5).astype(int)
    model.fit(values, labels, eval_set=[(values, labels)], verbose=False)
    print(model.get_booster().save_raw("json"))
"""


def test_the_estimators_of_a_script_are_watched_and_end_the_same(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    watched(script, "--out-dir", "run", "--collections", "predictions", "--save-interval", 5)
    for run, metric in (("run", "validation_0-logloss"), ("run-2", "validation_0-rmse")):
        trial = smd.create_trial(str(tmp_path / run))
        assert trial.steps() == [0, 5]
        assert {metric, "predictions"} <= set(trial.tensor_names())
