"""What an XGBoost hook observes of a training when it gets only a place."""

import numpy as np
import pytest
import xgboost

import smdebug
import smdebug.xgboost as smd
from smdebug.trials.observations.whole_run import ObservationsUnavailable
from tests.frameworks.xgboost.test_hook import EVERY_ROUND, PARAMETERS, data, train
from tests.support.looking import each


@pytest.fixture
def run(tmp_path):
    return str(tmp_path / "run")


def watched(run, *, rounds=25, parameters=PARAMETERS, **options):
    with smd.Hook(run, **options) as hook:
        train(hook, rounds=rounds, parameters=parameters)
    return smd.create_trial(run)


def everything():
    return {"train_data": data(30), "validation_data": data(8, seed=1)}


@pytest.mark.parametrize(
    "changed",
    [{}, {"subsample": 0.5}, {"booster": "dart", "rate_drop": 0.3}, {"booster": "gblinear"}],
)
def test_a_watched_training_gives_the_same_model(run, changed):
    parameters = {**PARAMETERS, **changed}
    alone = train(rounds=15, parameters=parameters).save_raw("json")
    with smd.Hook(run, **everything()) as hook:
        assert train(hook, rounds=15, parameters=parameters).save_raw("json") == alone


def test_metrics_of_every_round_are_series_and_those_of_saved_rounds_tensors(run):
    results = {}
    with smd.Hook(run) as hook:
        train(hook, rounds=25, evals_result=results)
    trial = smd.create_trial(run)
    loss = trial.series("train-logloss")
    assert loss.steps.tolist() == list(range(25))
    np.testing.assert_allclose(loss.values, results["train"]["logloss"])
    assert trial.observations.steps() == [*range(10), 10, 20]
    assert trial.tensor_names() == [
        "train-auc",
        "train-logloss",
        "validation-auc",
        "validation-logloss",
    ]


def test_importance_predictions_and_labels_are_measured(run):
    trial = watched(run, **everything())
    statistics = trial.statistics(10)
    assert statistics.of("inputs").names == ["labels"]
    assert statistics.of("outputs").names == ["predictions"]
    assert statistics.row("predictions")["count"] == 8
    assert 0 <= statistics.row("predictions")["min"] <= statistics.row("predictions")["max"] <= 1
    gain = trial.observations.samples("importance", 10)["feature_importance/gain"]
    assert gain.size == 4
    assert gain.sum() == pytest.approx(1)
    (feature, share), *_ = trial.facts(10)["top_features"]["gain"]
    assert (feature, share) == ("f0", pytest.approx(gain[0]))


def test_facts_tell_the_parameters_and_the_data(run):
    rows = np.ones((20, 3), np.float32)
    rows[:5, 0] = 2
    rows[:, 2] = np.nan
    trial = watched(run, train_data=xgboost.DMatrix(rows, label=[0] * 15 + [1] * 5))
    facts = trial.facts(10)
    arguments = facts["arguments"]
    assert (arguments["max_depth"], arguments["objective"]) == (2, "binary:logistic")
    assert arguments["learning_rate"] == pytest.approx(0.3)
    found = facts["data"]
    assert found["shapes"] == [[20, 3]]
    assert found["distinct_rows"] == 2
    assert found["missing"] == pytest.approx(1 / 3)
    assert (found["labels"]["largest_class"], found["labels"]["largest_share"]) == (0, 0.75)


def test_a_learning_rate_that_changes_is_a_series(run):
    rates = [0.3, 0.2, 0.1, 0.05]
    schedule = xgboost.callback.LearningRateScheduler(rates)
    with smd.Hook(run) as hook:
        xgboost.train(PARAMETERS, data(), 4, callbacks=[schedule, hook])
    np.testing.assert_allclose(smd.create_trial(run).series("learning_rate/0/0").values, rates, rtol=1e-6)


def test_what_is_not_known_is_left_out(run):
    trial = watched(run, parameters={**PARAMETERS, "booster": "gblinear"})
    assert "data" not in trial.facts(0)
    assert set(trial.statistics(0).kinds) == {"importance"}


def test_cross_validation_has_series_too(run):
    with smd.Hook(run) as hook:
        xgboost.cv(PARAMETERS, data(), 12, nfold=2, callbacks=[hook])
    trial = smd.create_trial(run)
    assert len(trial.series("test-auc")) == len(trial.series("test-auc-std")) == 12


def test_each_training_after_start_is_observed_with_its_data(tmp_path):
    with smdebug.start(tmp_path / "run") as watching:
        train(rounds=3)
        train(rounds=3)
    for run in each(watching.runs, at_least=2):
        trial = smd.create_trial(run)
        assert {"labels", "predictions"} <= set(trial.statistics(2).names)
        assert trial.facts(2)["data"]["shapes"] == [[40, 4]]


def test_whoever_says_what_to_save_gets_that_alone(tmp_path):
    for name, options in {
        "collections": {"include_collections": ["losses"]},
        "steps": {"save_config": EVERY_ROUND},
        "everything": {"save_all": True},
    }.items():
        trial = watched(str(tmp_path / name), rounds=3, **options)
        with pytest.raises(ObservationsUnavailable):
            trial.statistics(0)


def test_the_same_configuration_is_recognised_as_the_default(run):
    hook = smd.Hook(run)
    assert hook.has_default_hook_configuration()
    assert hook.save_config.get_save_config(smd.modes.TRAIN).save_interval == 10
