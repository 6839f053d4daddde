"""The rules for boosted trees, on runs as the hook for XGBoost saves them."""

from __future__ import annotations

import copy

import pytest

from smdebug import modes
from smdebug.runs.evaluation.diagnosing import diagnose
from smdebug.saving.planning.step_clock import StepClock
from smdebug_default_rules.boosting import parts_of

FACTS = {
    "arguments": {"objective": "binary:logistic", "booster": "gbtree", "scale_pos_weight": 1},
    "evaluated": {"a": "training", "b": "validation"},
    "stops_early": False,
    "top_features": {"total_gain": [["f0", 0.4], ["f1", 0.3]]},
    "data": {
        "shapes": [[3000, 5]],
        "weighted": False,
        "labels": {
            "targets": 3000,
            "classes_seen": 2,
            "largest_class": 0,
            "largest_share": 0.6,
        },
    },
    "predicted": {"of": "validation", "rows": 500, "constant": False, "skill": 0.7, "score": 12.0},
}
RULES = ("LeakedLabel", "BoostingProgress", "BoostingBalance", "BoostingGeneralisation")


@pytest.fixture
def trees(run):
    """A run of boosted trees; `rounds` writes one for each pair of losses."""
    run.facts = copy.deepcopy(FACTS)
    run.lasting = {}
    run.loss = None

    def rounds(training, validation, metric="logloss"):
        for losses in zip(training, validation, strict=True):
            clock = StepClock.resumed(run.step, {modes.TRAIN: run.step}, untouched=-1)
            for data, loss in zip("ab", losses, strict=True):
                run.observer.carry(f"{data}-{metric}", loss, clock.in_mode(modes.TRAIN))
            run.write()

    run.rounds = rounds
    return run


def falling(rounds, to=0.2, first=0.7):
    return [to + (first - to) * 0.85**at for at in range(rounds)]


def issues(run, rule):
    return [(step, found.cause, found.tensor, found.since) for step, found in run.evaluate(rule)]


@pytest.mark.parametrize("rule", RULES)
def test_healthy_trees_pass(trees, rule):
    trees.rounds(falling(40), falling(40, to=0.3))
    assert trees.evaluate(rule) == []


@pytest.mark.parametrize("rule", RULES)
def test_a_network_is_not_judged_by_rules_for_trees(run, rule):
    run.write(steps=3)
    run.hook.close()
    assert rule in diagnose(run.place, [rule]).not_checked


def test_a_feature_that_is_the_label_is_found(trees):
    trees.facts["top_feature"] = {"name": "f3", "share": 1.0, "explained": 0.999}
    trees.rounds(falling(2), falling(2))
    assert issues(trees, "LeakedLabel") == [
        (0, "leaked label", "f3", 0),
        (1, "leaked label", "f3", 0),
    ]


@pytest.mark.parametrize("top", [{"share": 0.99, "explained": 0.9}, {"share": 0.85, "explained": 1.0}, None])
def test_a_feature_that_is_merely_good_is_none(trees, top):
    if top is not None:
        trees.facts["top_feature"] = {"name": "f3", **top}
    trees.rounds(falling(3), falling(3))
    assert trees.evaluate("LeakedLabel") == []


def rising(rounds, best=10):
    return [0.5 - 0.01 * min(at, best) + 0.01 * max(0, at - best) for at in range(rounds)]


def test_a_validation_that_gets_worse_is_overfitting_since_its_best_round(trees):
    trees.rounds(falling(40), rising(40))
    found = issues(trees, "BoostingGeneralisation")
    assert found[0] == (20, "overfitting", "b-logloss", 11)
    assert {cause for _, cause, *_ in found} == {"overfitting"}


def test_a_training_that_stops_early_keeps_its_best_round(trees):
    trees.facts["stops_early"] = True
    trees.rounds(falling(40), rising(40))
    assert trees.evaluate("BoostingGeneralisation") == []


@pytest.mark.parametrize(("score", "cause"), [(0.5, "memorising"), (9.0, "overfitting")])
def test_what_the_predictions_know_tells_memorising_from_overfitting(trees, score, cause):
    trees.facts["predicted"]["score"] = score
    trees.rounds(falling(40), [0.69 + 0.01 * at for at in range(40)])
    assert {found.cause for _, found in trees.evaluate("BoostingGeneralisation")} == {cause}


def test_trees_without_a_split_do_not_learn(trees):
    trees.facts["top_features"] = {}
    trees.rounds([0.69] * 4, [0.69] * 4)
    assert issues(trees, "BoostingProgress") == [(step, "not learning", "predictions", 0) for step in (2, 3)]


@pytest.mark.parametrize(("rate", "expected"), [(1e-5, {"learning rate"}), (1e-3, set())])
def test_a_rate_of_nearly_nothing_is_found(trees, rate, expected):
    trees.rate = rate
    trees.rounds([0.69 - 1e-5 * at for at in range(30)], [0.69] * 30)
    assert {found.cause for _, found in trees.evaluate("BoostingProgress")} == expected


@pytest.mark.parametrize(("rate", "cause"), [(3.0, "learning rate"), (0.3, "exploding")])
def test_a_training_loss_that_rises_is_found(trees, rate, cause):
    trees.rate = rate
    trees.rounds([0.5 * 1.1**at for at in range(30)], [0.5] * 30)
    found = issues(trees, "BoostingProgress")
    assert {each[1:] for each in found} == {(cause, "a-logloss", 1)}


def imbalanced(trees, share=0.99):
    trees.facts["data"]["labels"]["largest_share"] = share


def test_labels_of_one_class_and_a_loss_of_guessing_are_found(trees):
    imbalanced(trees)
    trees.rounds([0.056 - 1e-5 * at for at in range(30)], [0.055] * 30)
    assert issues(trees, "BoostingBalance")[0] == (19, "imbalance", "labels", 0)


@pytest.mark.parametrize("reason", ["learnt", "falling", "weighted", "balanced by its weight"])
def test_rare_labels_may_be_learnt(trees, reason):
    imbalanced(trees)
    losses = [0.056] * 30
    if reason == "learnt":
        losses = [0.03] * 30
    elif reason == "falling":
        losses = [0.056 * 0.99**at for at in range(30)]
    elif reason == "weighted":
        trees.facts["data"]["weighted"] = True
    else:
        trees.facts["arguments"]["scale_pos_weight"] = 99
    trees.rounds(losses, losses)
    assert trees.evaluate("BoostingBalance") == []


def test_a_weight_that_is_turned_round_is_found_at_once(trees):
    imbalanced(trees, 0.95)
    trees.facts["arguments"]["scale_pos_weight"] = 0.05
    trees.rounds([0.3], [0.3])
    ((_, found),) = trees.evaluate("BoostingBalance")
    assert "for balance it is 19" in found.message


@pytest.mark.parametrize(
    ("series", "expected"),
    [
        ("validation_0-logloss", ("validation", "logloss")),
        ("train-rmse", ("training", "rmse")),
        ("my-data-mae", ("validation", "mae")),
        ("other-mae", None),
        ("loss", None),
    ],
)
def test_the_name_of_a_series_tells_its_data_and_metric(series, expected):
    assert parts_of(series, {"my-data": "validation"}) == expected
