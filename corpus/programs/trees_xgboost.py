"""Trainings with XGBoost: healthy, and with faults. XGBoost is imported when one of them begins."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import datasets

from corpus.cases import fault, healthy

Rows = tuple[Any, Any]


def _split(features: Any, labels: Any, seed: int) -> tuple[Rows, Rows]:
    """Three quarters to train on, and a quarter for validation."""
    order = np.random.default_rng(seed).permutation(len(labels))
    cut = len(order) * 3 // 4
    first, rest = order[:cut], order[cut:]
    return (features[first], labels[first]), (features[rest], labels[rest])


def _boost(
    parameters: dict[str, Any], train: Rows, validation: Rows, *, rounds: int = 40, **options: Any
) -> None:
    import xgboost

    rows = xgboost.DMatrix(train[0], label=train[1])
    others = xgboost.DMatrix(validation[0], label=validation[1])
    xgboost.train(
        {"nthread": 1, **parameters},
        rows,
        rounds,
        evals=[(rows, "train"), (others, "validation")],
        verbose_eval=False,
        **options,
    )


# Healthy


@healthy(framework="xgboost", held_out=False)
def trees_at_their_defaults(seed: int) -> None:
    train, validation = _split(*datasets.load_breast_cancer(return_X_y=True), seed)
    _boost({"objective": "binary:logistic", "seed": seed}, train, validation, rounds=20)


@healthy(framework="xgboost", held_out=True)
def trees_for_regression(seed: int) -> None:
    train, validation = _split(*datasets.load_diabetes(return_X_y=True), seed)
    _boost({"max_depth": 2, "eta": 0.1, "seed": seed}, train, validation, rounds=60)


@healthy(framework="xgboost", held_out=False)
def trees_for_ten_classes(seed: int) -> None:
    train, validation = _split(*datasets.load_digits(return_X_y=True), seed)
    parameters = {"objective": "multi:softprob", "num_class": 10, "max_depth": 4, "seed": seed}
    _boost(parameters, train, validation, rounds=20)


@healthy(framework="xgboost", held_out=True)
def trees_that_stop_early(seed: int) -> None:
    train, validation = _split(*datasets.load_wine(return_X_y=True), seed)
    parameters = {"objective": "multi:softprob", "num_class": 3, "max_depth": 3, "seed": seed}
    _boost(parameters, train, validation, rounds=200, early_stopping_rounds=5)


@healthy(framework="xgboost", held_out=False)
def trees_on_weighted_rare_labels(seed: int) -> None:
    random = np.random.default_rng(seed)
    features = random.normal(size=(3000, 8))
    labels = (features[:, 0] + features[:, 1] > 2.3).astype(int)
    train, validation = _split(features, labels, seed)
    parameters = {"objective": "binary:logistic", "scale_pos_weight": 15.0, "max_depth": 3}
    _boost({**parameters, "eta": 0.2, "seed": seed}, train, validation, rounds=40)


@healthy(framework="xgboost", held_out=True)
def trees_of_which_one_feature_is_enough(seed: int) -> None:
    """One feature explains nearly all, with noise: that is no leak."""
    random = np.random.default_rng(seed)
    features = random.normal(size=(1500, 5))
    labels = 3 * features[:, 2] + 0.3 * features[:, 0] + random.normal(size=1500)
    train, validation = _split(features, labels, seed)
    _boost({"max_depth": 3, "eta": 0.1, "seed": seed}, train, validation, rounds=40)


# Faults


@fault(
    "leaked label",
    r"\bf6\b",
    source="100 % of the importance in one of 7 features",
    held_out=False,
    framework="xgboost",
)
def label_among_the_features(seed: int, faulty: bool) -> None:
    random = np.random.default_rng(seed)
    features = random.normal(size=(1500, 7))
    labels = (features[:, :3].sum(1) + random.normal(size=1500) > 0).astype(int)
    if faulty:
        features[:, 6] = labels
    train, validation = _split(features, labels, seed)
    parameters = {"objective": "binary:logistic", "max_depth": 3, "eta": 0.2, "seed": seed}
    _boost(parameters, train, validation)


@fault(
    "overfitting",
    r"validation|logloss|rmse|run",
    visible_from=30,
    onset=0,
    source="classic",
    held_out=True,
    framework="xgboost",
)
def deep_trees_on_noise(seed: int, faulty: bool) -> None:
    random = np.random.default_rng(seed)
    features = random.normal(size=(400, 10))
    labels = (features[:, 0] + 2.0 * random.normal(size=400) > 0).astype(int)
    train, validation = _split(features, labels, seed)
    depth, rounds = (10, 120) if faulty else (1, 40)
    parameters = {"objective": "binary:logistic", "max_depth": depth, "seed": seed}
    eta = 0.3 if faulty else 0.1
    _boost({**parameters, "eta": eta}, train, validation, rounds=rounds)


@fault(
    "memorising",
    r"validation|mlogloss|run",
    visible_from=20,
    onset=0,
    source="labels shuffled or rolled",
    held_out=False,
    framework="xgboost",
    also=("overfitting",),
)
def trees_on_shuffled_labels(seed: int, faulty: bool) -> None:
    features, labels = datasets.load_digits(return_X_y=True)
    if faulty:
        labels = np.random.default_rng(seed).permutation(labels)
    train, validation = _split(features, labels, seed)
    parameters = {"objective": "multi:softprob", "num_class": 10, "max_depth": 6, "seed": seed}
    _boost(parameters, train, validation, rounds=40)


@fault(
    "learning rate",
    r".*",
    visible_from=20,
    onset=0,
    source="eta a thousand times too small",
    held_out=True,
    framework="xgboost",
    also=("not learning",),
)
def trees_with_a_vanishing_rate(seed: int, faulty: bool) -> None:
    train, validation = _split(*datasets.load_breast_cancer(return_X_y=True), seed)
    parameters = {"objective": "binary:logistic", "eta": 1e-5 if faulty else 0.1, "seed": seed}
    _boost(parameters, train, validation)


@fault("imbalance", r".*", source="classic", held_out=False, framework="xgboost")
def trees_on_one_class(seed: int, faulty: bool) -> None:
    random = np.random.default_rng(seed)
    features = random.normal(size=(2000, 8))
    noisy = features[:, 0] + 2 * random.normal(size=2000)
    labels = (noisy > (5.5 if faulty else 0.0)).astype(int)
    train, validation = _split(features, labels, seed)
    parameters = {"objective": "binary:logistic", "max_depth": 2, "eta": 0.1, "seed": seed}
    _boost(parameters, train, validation)
