from __future__ import annotations

import math

import numpy as np
import pytest

from smdebug.exceptions import SMDebugValueError
from smdebug.mode_keys import ModeKeys
from smdebug_rules.weights.weight_update_ratio import WeightUpdateRatio
from tests.rules.made_runs import MadeRun, made_run
from tests.smdebug_rules.support import findings_by_step, fires_at, found_data_at


def trained(learning_rate, steps=10):
    """A small net under gradient descent, its weights saved at every step."""
    rng = np.random.default_rng(0)
    weight = rng.normal(scale=0.1, size=(20, 20)).astype(np.float32)
    saved = {}
    for step in range(steps):
        saved[step] = {"dense_weight": weight.copy()}
        weight -= np.float32(learning_rate) * rng.normal(size=weight.shape).astype(np.float32)
    return made_run(saved).trial()


def test_it_fires_when_the_learning_rate_is_far_too_small():
    assert fires_at(WeightUpdateRatio(trained(1e-10))) == list(range(1, 10))


def test_it_is_silent_when_the_learning_rate_is_right():
    assert fires_at(WeightUpdateRatio(trained(1e-3))) == []


def test_it_fires_when_the_learning_rate_is_far_too_large():
    assert fires_at(WeightUpdateRatio(trained(1e4, steps=2))) == [1]


def weights(*values, **names):
    return made_run({n: {"weight": [value]} for n, value in enumerate(values)}).trial()


def test_the_ratio_is_in_the_finding():
    (finding,) = findings_by_step(WeightUpdateRatio(weights(1.0, 21.0)))[1]
    assert finding.value == pytest.approx(20)
    assert str(finding) == "weight: update/weight ratio 20 since step 0 (limit 10)"
    (finding,) = findings_by_step(WeightUpdateRatio(weights(1.0, 1.0)))[1]
    assert str(finding) == "weight: update/weight ratio 0 since step 0 (limit 1e-08)"


def test_thresholds_have_the_documented_order_and_may_be_strings():
    trial = weights(1.0, 1.5)
    assert fires_at(WeightUpdateRatio(trial, "0.4", "0.1")) == [1]
    assert fires_at(WeightUpdateRatio(trial, 0.6, 0.1)) == []
    assert fires_at(WeightUpdateRatio(trial, large_threshold=1, small_threshold="0.55")) == [1]


def test_it_compares_with_the_step_saved_before():
    run = made_run({0: {"weight": [1.0]}, 100: {"weight": [1.0]}, 200: {"weight": [2.0]}})
    assert fires_at(WeightUpdateRatio(run.trial())) == [100]


def test_with_num_steps_it_compares_with_the_oldest_of_the_last_steps():
    run = made_run({0: {"weight": [1.0]}, 2: {"weight": [2.0]}, 3: {"weight": [40.0]}}).trial()
    assert findings_by_step(WeightUpdateRatio(run))[3][0].details["since"] == 2
    assert findings_by_step(WeightUpdateRatio(run, num_steps="3"))[3][0].details["since"] == 0
    assert fires_at(WeightUpdateRatio(run, num_steps=1)) == [3]
    far = made_run({0: {"weight": [1.0]}, 50: {"weight": [99.0]}}).trial()
    assert fires_at(WeightUpdateRatio(far, num_steps=10)) == []


def test_where_there_are_training_steps_only_those_are_checked():
    run = MadeRun()
    run.save(0, {"weight": [1.0]}, mode=ModeKeys.TRAIN)
    run.save(1, {"weight": [1.0]}, mode=ModeKeys.EVAL)
    run.save(2, {"weight": [1.5]}, mode=ModeKeys.TRAIN)
    rule = WeightUpdateRatio(run.end().trial())
    assert fires_at(rule) == []
    assert [found_data_at(rule, step) for step in range(3)] == [False, False, True]


def test_a_step_of_another_mode_is_neither_compared_with_nor_called_good():
    run = MadeRun()
    for step, weight in enumerate([1.0, 1.0, 2.0, 2.0, 200.0]):
        mode = ModeKeys.EVAL if step % 2 else ModeKeys.TRAIN
        run.save(step, {"weight": [weight]}, mode=mode)
    ((finding,),) = findings_by_step(WeightUpdateRatio(run.end().trial())).values()
    assert str(finding) == "weight: update/weight ratio 99 since TRAIN step 1 (limit 10)"
    assert (finding.step, finding.details["last_good_step"]) == (4, 2)


def test_later_training_steps_change_nothing():
    """A rule finds the same during a run and afterwards."""
    run = MadeRun()
    for step in range(5):
        mode = ModeKeys.GLOBAL if step < 3 else ModeKeys.TRAIN
        run.save(step, {"weight": [100.0 ** (step + 1)]}, mode=mode)
    assert fires_at(WeightUpdateRatio(run.end().trial())) == [1, 2, 4]


def test_weights_that_become_nan_fire():
    (finding,) = findings_by_step(WeightUpdateRatio(weights(1.0, math.nan)))[1]
    assert "ratio NaN" in str(finding)


def test_weights_of_another_shape_or_of_no_values_are_not_compared():
    run = made_run({0: {"weight": np.ones(2)}, 1: {"weight": np.ones(3)}})
    rule = WeightUpdateRatio(run.trial())
    assert fires_at(rule) == []
    assert found_data_at(rule, 1) is False


def test_weights_that_begin_at_zero_are_not_divided_by_it():
    assert fires_at(WeightUpdateRatio(weights(0.0, 0.0), epsilon=0)) == [1]
    assert fires_at(WeightUpdateRatio(weights(0.0, 1.0), epsilon=0)) == [1]


def test_gradients_and_other_tensors_are_not_weights():
    run = made_run({key: {"gradient/weight": [1.0], "bias": [1.0]} for key in range(2)})
    assert fires_at(WeightUpdateRatio(run.trial())) == []


@pytest.mark.parametrize(
    "parameters",
    [
        {"large_threshold": 1, "small_threshold": 2},
        {"num_steps": 0},
        {"epsilon": -1},
        {"small_threshold": "tiny"},
    ],
)
def test_invalid_parameters_are_refused(parameters):
    with pytest.raises(SMDebugValueError):
        WeightUpdateRatio(weights(1.0), **parameters)
