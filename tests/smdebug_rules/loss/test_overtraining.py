from __future__ import annotations

import numpy as np
import pytest

from smdebug.exceptions import SMDebugValueError
from smdebug.mode_keys import ModeKeys
from smdebug_rules.loss.overtraining import Overtraining
from tests.rules.made_runs import MadeRun, made_run
from tests.smdebug_rules.support import findings_by_step, fires_at, found_data_at

TRAIN, EVAL = ModeKeys.TRAIN, ModeKeys.EVAL


def run_of(train, validation):
    run = MadeRun()
    for at, losses in enumerate(zip(train, validation, strict=True)):
        for mode, loss in zip((TRAIN, EVAL), losses, strict=True):
            run.save(2 * at + (mode is EVAL), {"loss": np.float32(loss)}, mode=mode)
    return run.end().trial()


def test_it_fires_when_both_losses_have_been_stuck_for_their_patience():
    trial = run_of([1, 0.5, 0.5, 0.5, 0.5, 0.4], [1, 1, 1, 1, 0.9, 0.9])
    rule = Overtraining(trial, patience_train="2", patience_validation="3")
    found = findings_by_step(rule)
    assert list(found) == [7, 8]
    assert found[7][0].details == {"best": 0.5, "last_good_step": 2}
    assert "has not improved on 1 by more than 0.01 for 3 saved steps, since step 1" in str(found[7][1])


def test_one_of_the_two_is_enough_when_asked_so():
    trial = run_of([1, 0.5, 0.2], [1, 1, 1])
    assert fires_at(Overtraining(trial, patience_validation=2)) == []
    assert fires_at(Overtraining(trial, patience_validation=2, combine="or")) == [5]


@pytest.mark.parametrize(("delta", "steps"), [(0.1, [5]), (0.001, [])])
def test_a_new_best_loss_is_lower_by_more_than_delta(delta, steps):
    trial = run_of([1, 0.95, 0.91], [1, 0.95, 0.91])
    rule = Overtraining(trial, patience_train=2, patience_validation=2, delta=delta)
    assert fires_at(rule) == steps


def test_what_is_not_finite_is_never_the_best():
    trial = run_of([np.nan, -np.inf, 1, np.nan], [1, 1, 1, 1])
    rule = Overtraining(trial, patience_train=1, patience_validation=2)
    found = findings_by_step(rule)
    assert list(found) == [6, 7]
    assert {finding.details["best"] for finding in found[6]} == {1.0}


def test_metrics_of_xgboost_count_in_both():
    steps = {n: {"train-rmse": np.float32(1), "validation-rmse": np.float32(1)} for n in range(4)}
    run = made_run(steps, collections={"metrics": ["rmse"]}).trial()
    assert fires_at(Overtraining(run, patience_train=2, patience_validation=3)) == [3]


@pytest.mark.parametrize(
    "metric",
    [
        "auc",
        "aucpr",
        "map",
        "map@5",
        "map-",
        "ndcg@5-",
        "pre@3",
        "accuracy",
        "balanced_accuracy",
        "r2",
        "f1",
        "f1_binary",
        "precision_macro",
        "recall",
        "interval-regression-accuracy",
    ],
)
def test_rising_metrics_are_ignored_if_larger_is_better(metric):
    rising = {n: {f"train-{metric}": [0.1 * n], f"validation-{metric}": [0.1 * n]} for n in range(6)}
    run = made_run(rising, collections={"metrics": ["^train|^validation"]}).trial()
    assert fires_at(Overtraining(run, patience_train=2, patience_validation=3)) == []


@pytest.mark.parametrize("parameters", [{"combine": "xor"}, {"delta": -1}, {"patience_train": 0}])
def test_an_invalid_value_is_refused(parameters):
    with pytest.raises(SMDebugValueError):
        Overtraining(made_run({}).trial(), **parameters)


def test_a_loss_of_neither_mode_is_reported_as_skipped():
    rule = Overtraining(made_run({0: {"loss": np.float32(1)}}).trial())
    assert found_data_at(rule, 0) is False
    assert rule.skipped == {"loss": "its step has neither mode TRAIN nor EVAL"}


def test_without_validation_nothing_was_checked():
    run = MadeRun()
    for step in range(4):
        run.save(step, {"loss": [1.0]}, mode=ModeKeys.TRAIN)
    trial = run.end().trial()
    rule = Overtraining(trial)
    assert found_data_at(rule, 3) is False
    assert rule.not_checked == "no validation loss was saved"
    alone = Overtraining(trial, combine="or")
    assert (found_data_at(alone, 3), alone.not_checked) == (True, None)
