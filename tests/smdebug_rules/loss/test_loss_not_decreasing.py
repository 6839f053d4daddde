from __future__ import annotations

import math

import numpy as np
import pytest

from smdebug.exceptions import SMDebugValueError
from smdebug.mode_keys import ModeKeys
from smdebug_rules.loss.loss_not_decreasing import Limits, LossNotDecreasing, improvement, is_stuck
from tests.rules.made_runs import MadeRun, made_run
from tests.smdebug_rules.support import findings_by_step, fires_at, found_data_at

NAN, INF = float("nan"), float("inf")


def losses(values, every=1, name="loss"):
    return made_run({every * n: {name: [float(value)]} for n, value in enumerate(values)}).trial()


def test_saved_every_3_steps_step_21_is_compared_with_9_and_the_next_is_33():
    trial = losses([1.0] * 15, every=3)
    found = findings_by_step(LossNotDecreasing(trial), start_step=21)
    assert list(found) == [21, 33]
    assert found[21][0].details["since"] == 9
    assert found[33][0].details["since"] == 21


def test_saved_at_0_4_8_12_16_the_first_comparison_is_12_with_0():
    trial = losses([0.3, 0.33, 0.31, 0.30, 0.28], every=4)
    found = findings_by_step(LossNotDecreasing(trial))
    assert list(found) == [12]
    assert str(found[12][0]) == "loss: loss is 0.3 at step 12, unchanged from 0.3 at step 0"
    rule = LossNotDecreasing(trial)
    assert [found_data_at(rule, step) for step in (0, 4, 8, 12, 16)] == [
        False,
        False,
        False,
        True,
        False,
    ]


@pytest.mark.parametrize(("now", "limit"), [(95, 10), (106, -5)])
def test_the_reported_limit_is_the_crossed_limit(now, limit):
    rule = LossNotDecreasing(losses([100, now]), num_steps=1, min_difference=10, increase_threshold_percent=5)
    ((finding,),) = findings_by_step(rule).values()
    assert (finding.value, finding.threshold) == (100 - now, limit)


def test_a_metric_that_is_the_better_the_larger_it_is_is_not_a_loss_unless_it_is_named():
    rising = {n: {"validation-auc": [0.1 * n], "validation-rmse": [1.0 - 0.1 * n]} for n in range(4)}
    run = made_run(rising, collections={"metrics": ["^validation-"]}).trial()
    rule = LossNotDecreasing(run, "metrics", use_losses_collection=False, num_steps=1)
    assert fires_at(rule) == []
    assert rule.skipped == {"validation-auc": "larger values of this metric are better"}
    named = LossNotDecreasing(run, tensor_regex="auc", use_losses_collection=False, num_steps=1)
    assert fires_at(named) == [1, 2, 3]


def test_steps_of_a_mode_are_reported_as_such():
    run = MadeRun()
    for step in range(6):
        mode = ModeKeys.EVAL if step % 2 else ModeKeys.TRAIN
        run.save(step, {"loss": [1.0]}, mode=mode)
    found = findings_by_step(LossNotDecreasing(run.end().trial(), num_steps=2, mode="EVAL"))
    assert str(found[5][0]) == "loss: loss is 1 at EVAL step 2, unchanged from 1 at EVAL step 0"


def test_the_last_good_step_is_the_last_comparison_not_the_last_step():
    trial = losses([100 - step if step <= 20 else 60 + step for step in range(31)])
    ((finding,),) = findings_by_step(LossNotDecreasing(trial)).values()
    assert (finding.step, finding.details["last_good_step"]) == (30, 20)


def test_a_loss_that_falls_is_all_right():
    assert fires_at(LossNotDecreasing(losses(np.linspace(2, 1, 60)), num_steps="5")) == []


@pytest.mark.parametrize("name", ["min_difference", "diff_percent"])
def test_it_may_have_to_fall_by_some_percent(name):
    trial = losses([100.0, 95.0])
    assert fires_at(LossNotDecreasing(trial, num_steps=1, **{name: "5"})) == []
    (finding,) = findings_by_step(LossNotDecreasing(trial, num_steps=1, **{name: "5.1"}))[1]
    assert finding.value == pytest.approx(5)
    assert str(finding) == "loss: loss is 95 at step 1, down 5 % from 100 at step 0"


@pytest.mark.parametrize(
    ("before", "now", "limits", "stuck"),
    [
        (1.0, 0.9, Limits(), False),
        (1.0, 1.0, Limits(), True),
        (1.0, 1.1, Limits(), True),
        (-1.0, -1.1, Limits(), False),
        (-1.0, -0.9, Limits(), True),
        (0.0, 0.0, Limits(), True),
        (0.0, -1.0, Limits(50), False),
        (0.0, 1.0, Limits(0, 50), True),
        (100.0, 80.0, Limits(20), False),
        (100.0, 81.0, Limits(20), True),
        (100.0, 104.0, Limits(0, 5), False),
        (100.0, 106.0, Limits(0, 5), True),
        (100.0, 100.0, Limits(0, 5), False),
        (100.0, 99.0, Limits(20, 5), True),
        (1.0, NAN, Limits(0, 50), True),
        (1.0, INF, Limits(), True),
        (1.0, -INF, Limits(), True),
        (NAN, 1.0, Limits(), False),
        (INF, 1.0, Limits(50), False),
        (-INF, 1.0, Limits(), True),
    ],
)
def test_when_a_loss_is_stuck(before, now, limits, stuck):
    assert is_stuck(before, now, limits) is stuck


def test_improvement_is_a_percentage_of_the_earlier_loss():
    assert improvement(4, 3) == 25
    assert improvement(-4, -3) == -25
    assert improvement(0, 1) == -math.inf
    assert improvement(0, 0) == 0


def test_a_loss_that_is_not_finite_fires_without_anything_to_compare_with():
    found = findings_by_step(LossNotDecreasing(losses([NAN, 1.0, 0.5]), num_steps=1))
    assert list(found) == [0]
    assert str(found[0][0]) == "loss: loss is NaN at step 0"


def test_a_rise_is_reported_as_one():
    (finding,) = findings_by_step(LossNotDecreasing(losses([1.0, 1.5]), num_steps=1))[1]
    assert str(finding).endswith("up 50 % from 1 at step 0")


def test_only_scalars_are_losses():
    run = made_run(
        {
            key: {
                "loss_vector": [1.0, 2.0],
                "loss_text": np.array(["a"]),
                "loss_0d": np.float32(1.0),
            }
            for key in range(2)
        }
    )
    found = findings_by_step(LossNotDecreasing(run.trial(), num_steps=1))
    assert [finding.tensor for finding in found[1]] == ["loss_0d"]


def test_what_is_checked_can_be_chosen():
    run = made_run(
        {key: {"loss": [1.0], "metric": [1.0], "weight": [1.0]} for key in range(2)},
        collections={"losses": ["loss"], "metrics": ["metric"]},
    ).trial()

    def tensors(**parameters):
        found = findings_by_step(LossNotDecreasing(run, num_steps=1, **parameters))
        return [finding.tensor for finding in found[1]]

    assert tensors() == ["loss"]
    assert tensors(collection_names="metrics") == ["loss", "metric"]
    assert tensors(collection_names="metrics", use_losses_collection="False") == ["metric"]
    assert tensors(tensor_regex="weight", use_losses_collection=False) == ["weight"]


def test_each_loss_and_each_worker_is_compared_with_itself():
    run = MadeRun(workers=2)
    for step in range(2):
        run.save(step, {"loss_a": [2.0 - step], "loss_b": [1.0]}, rank=0)
        run.save(step, {"loss_a": [1.0 + step], "loss_b": [2.0 - step]}, rank=1)
    found = findings_by_step(LossNotDecreasing(run.end().trial(), num_steps=1))[1]
    assert [(finding.tensor, finding.worker) for finding in found] == [
        ("loss_a", "worker_1"),
        ("loss_b", "worker_0"),
    ]


def alternating():
    """TRAIN at 0, 1, EVAL at 2, TRAIN at 3, 4, EVAL at 5: training improves, evaluation does not."""
    run = MadeRun()
    for step, (mode, loss) in enumerate(
        [
            (ModeKeys.TRAIN, 4.0),
            (ModeKeys.TRAIN, 3.0),
            (ModeKeys.EVAL, 5.0),
            (ModeKeys.TRAIN, 3.5),
            (ModeKeys.TRAIN, 2.0),
            (ModeKeys.EVAL, 6.0),
        ]
    ):
        run.save(step, {"loss": [loss]}, mode=mode)
    return run.end().trial()


@pytest.mark.parametrize(
    ("mode", "steps"),
    [
        ("TRAIN", [3]),
        (ModeKeys.EVAL, [5]),
        ("eval", [5]),
        ("modes.GLOBAL", [2, 5]),
        (None, [3, 5]),  # each mode with itself
        ("None", [3, 5]),
    ],
)
def test_the_steps_are_those_of_the_mode(mode, steps):
    assert fires_at(LossNotDecreasing(alternating(), num_steps=1, mode=mode)) == steps


def test_the_training_loss_counts_before_and_after_the_first_evaluation():
    run = MadeRun()
    for step, (mode, loss) in enumerate(
        [(ModeKeys.TRAIN, 1.0), (ModeKeys.TRAIN, 2.0), (ModeKeys.EVAL, 5.0), (ModeKeys.TRAIN, 9.0)]
    ):
        run.save(step, {"loss": [loss]}, mode=mode)
    assert fires_at(LossNotDecreasing(run.end().trial(), num_steps=1)) == [1, 3]


@pytest.mark.parametrize(
    ("parameters", "complaint"),
    [
        ({"use_losses_collection": "False"}, "needs use_losses_collection, collection_names or"),
        ({"num_steps": "0"}, "num_steps must be at least 1, not 0"),
        ({"min_difference": "101"}, "min_difference must be at most 100"),
        ({"min_difference": 1, "diff_percent": 2}, "are the same parameter, and differ: 1 and 2"),
        ({"increase_threshold_percent": "-1"}, "increase_threshold_percent must be at least 0"),
        ({"mode": "SLEEP"}, "mode must be one of TRAIN, EVAL, PREDICT, GLOBAL, not 'SLEEP'"),
    ],
)
def test_invalid_parameters_are_refused(parameters, complaint):
    with pytest.raises(SMDebugValueError, match=complaint):
        LossNotDecreasing(losses([1.0]), **parameters)
