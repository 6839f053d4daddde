"""The default rules on trainings with XGBoost: faults with their healthy twins, and unusual uses."""

from __future__ import annotations

import numpy as np
import pytest
import xgboost

import smdebug
from smdebug.runs.evaluation.diagnosing import diagnose
from smdebug.trials import create_trial
from smdebug.xgboost.agreement import agreement, explained_by

RANDOM = np.random.default_rng(0)
FEATURES = RANDOM.normal(size=(600, 5))
LABELS = (FEATURES[:, :3].sum(1) + RANDOM.normal(size=600) > 0).astype(int)
PARAMETERS = {"objective": "binary:logistic", "max_depth": 3, "eta": 0.1, "nthread": 1, "seed": 0}


def matrices(features=FEATURES, labels=LABELS):
    return tuple(
        xgboost.DMatrix(features[part], label=labels[part]) for part in (slice(0, 400), slice(400, None))
    )


def boost(features=FEATURES, labels=LABELS, *, rounds=25, parameters=None, **options):
    train, validation = matrices(features, labels)
    evals = [(train, "a"), (validation, "b")]
    return xgboost.train(
        {**PARAMETERS, **(parameters or {})},
        train,
        rounds,
        evals=evals,
        verbose_eval=False,
        **options,
    )


def found(watching):
    """Return the causes found in each run that was watched."""
    diagnoses = [diagnose(run) for run in watching.runs]
    assert all(not each.failed for each in diagnoses)
    return [[(issue.cause, issue.where) for issue in each.issues] for each in diagnoses]


@pytest.fixture
def run(tmp_path):
    return tmp_path / "run"


@pytest.mark.parametrize(("leaks", "expected"), [(True, [("leaked label", ("f4",))]), (False, [])])
def test_a_label_among_the_features_is_found(run, leaks, expected):
    features = FEATURES.copy()
    features[:, 4] = LABELS if leaks else FEATURES[:, 0] + 0.5 * LABELS
    with smdebug.start(run) as watching:
        boost(features)
    assert found(watching) == [expected]


@pytest.mark.parametrize(("is_shuffled", "expected"), [(True, [("memorising", ("b-logloss",))]), (False, [])])
def test_labels_that_do_not_belong_to_their_rows_are_found(run, is_shuffled, expected):
    labels = np.random.default_rng(1).permutation(LABELS) if is_shuffled else LABELS
    depth = {"max_depth": 8 if is_shuffled else 3, "eta": 0.3 if is_shuffled else 0.1}
    with smdebug.start(run) as watching:
        boost(labels=labels, parameters=depth, rounds=30)
    assert found(watching) == [expected]


@pytest.mark.parametrize(("weight", "expected"), [(1e9, [("not learning", ("predictions",))]), (1, [])])
def test_trees_without_a_split_are_found(run, weight, expected):
    with smdebug.start(run) as watching:
        boost(parameters={"min_child_weight": weight}, rounds=12)
    assert found(watching) == [expected]


def squared_error(predictions, data):
    return predictions - data.get_label(), np.ones(len(predictions))


@pytest.mark.parametrize(("sign", "expected"), [(-1, ["exploding"]), (1, [])])
def test_an_objective_with_the_wrong_sign_is_found(run, sign, expected):
    def objective(predictions, data):
        gradients, hessians = squared_error(predictions, data)
        return sign * gradients, hessians

    with smdebug.start(run) as watching:
        parameters = {"objective": "reg:squarederror", "eval_metric": "rmse"}
        boost(labels=FEATURES[:, 0] + LABELS, parameters=parameters, obj=objective)
    assert [cause for cause, _ in found(watching)[0]] == expected


def test_unusual_uses_are_healthy(run):
    with smdebug.start(run) as watching:
        booster = boost(rounds=5)
        boost(rounds=15, xgb_model=booster)  # resumed
        booster.predict(matrices()[1])
        boost(rounds=200, early_stopping_rounds=20, parameters={"max_depth": 6, "eta": 0.3})
        boost(rounds=15, parameters={"booster": "dart", "rate_drop": 0.3})
        boost(rounds=15, parameters={"booster": "gblinear"})
        boost(rounds=15, parameters={"num_parallel_tree": 3, "subsample": 0.5})
        boost(rounds=15, parameters={"eval_metric": ["auc", "error"]})
        boost(labels=FEATURES[:, 0] ** 2, rounds=15, parameters={"objective": "reg:squarederror"})
        classifier = xgboost.XGBClassifier(n_estimators=12, max_depth=3, n_jobs=1)
        classifier.fit(FEATURES, LABELS, eval_set=[(FEATURES, LABELS)], verbose=False)
    assert found(watching) == [[]] * 9


def test_facts_say_which_data_is_the_training_and_how_much_was_learnt(run):
    with smdebug.start(run) as watching:
        boost(early_stopping_rounds=50)
    facts = create_trial(watching.runs[0]).facts(20)
    assert facts["evaluated"] == {"a": "training", "b": "validation"}
    assert facts["stops_early"]
    assert facts["predicted"]["of"] == "validation"
    assert facts["predicted"]["rows"] == 200
    assert 0.4 < facts["predicted"]["skill"] < 1
    assert facts["predicted"]["score"] > 5


# Agreement and explanation are plain functions


def test_skill_is_one_for_perfect_predictions_and_insignificant_for_random_ones():
    labels = np.arange(300) % 3
    perfect = np.eye(3)[labels]
    assert agreement(perfect, labels)["skill"] == pytest.approx(1)
    assert agreement(labels == 1, labels == 1)["skill"] == pytest.approx(1)
    assert agreement(labels**2 + 0.5, labels)["skill"] == pytest.approx(1)
    random = np.random.default_rng(0).random((300, 3))
    for predictions in (random, random[:, 0]):
        assert abs(agreement(predictions, labels)["score"]) < 3
    assert agreement(np.ones(300), labels) == {"rows": 300, "constant": True}
    assert agreement(np.full(300, np.nan), labels) == {}
    assert agreement(random[:5], labels[:5]) == {}


def test_a_feature_is_explained_as_far_as_it_is_the_label():
    labels = np.arange(200) % 2
    noise = np.random.default_rng(0).normal(size=200)
    assert explained_by(labels, 5 - 2.0 * labels) == pytest.approx(1)
    assert explained_by(labels, noise) < 0.1
    assert explained_by(labels, labels + 0.5 * noise) < 0.9
    days_since_the_end = np.where(labels, 1 + np.abs(noise), 0)
    assert explained_by(labels, days_since_the_end) == 1
    assert explained_by(noise, 3 * noise + 1) == pytest.approx(1)
    assert explained_by(labels, np.where(noise > 0, labels, np.nan)) is None
    assert explained_by(np.ones(200), noise) is None
