from __future__ import annotations

import numpy as np
import pytest

from smdebug.exceptions import SMDebugValueError
from smdebug.mode_keys import ModeKeys
from smdebug_rules.weights.poor_weight_initialization import PoorWeightInitialization
from tests.rules.made_runs import MadeRun, made_run
from tests.smdebug_rules.support import findings_by_step, fires_at, found_data_at

EVEN = np.linspace(-1, 1, 100, dtype=np.float32)


def test_it_fires_at_the_first_step_where_layers_differ_too_much():
    steps = {0: {"a_relu_input": EVEN, "b_relu_input": EVEN * 4, "c_relu_input": EVEN * 2}}
    found = findings_by_step(PoorWeightInitialization(made_run(steps).trial()))
    assert str(found[0][0]).startswith("b_relu_input: variance 5.441 is 16 times that of a_relu_input")
    assert fires_at(PoorWeightInitialization(made_run(steps).trial(), threshold="17")) == []


def test_as_many_times_the_variance_as_the_threshold_is_all_right():
    pair = np.float32([-1, 1])
    run = made_run({0: {"a_relu_input": pair, "b_relu_input": pair * 4}}).trial()
    assert fires_at(PoorWeightInitialization(run, threshold=16)) == []
    assert fires_at(PoorWeightInitialization(run, threshold=15.99)) == [0]


def test_a_layer_without_variance_is_found():
    steps = {0: {"a_relu_input": EVEN, "b_relu_input": EVEN * 0}, 1: {"b_relu_input": EVEN * 0}}
    found = findings_by_step(PoorWeightInitialization(made_run(steps).trial()))
    assert [str(found[step][0]) for step in (0, 1)] == [
        "a_relu_input: variance 0.3401, but 0 in b_relu_input",
        "b_relu_input: variance 0",
    ]


def test_flat_gradients_are_found_whatever_a_few_outliers_do():
    flat = np.zeros(100, np.float16)
    flat[0] = 100
    steps = {0: {"gradient/a": EVEN}, 1: {"gradient/a": EVEN, "gradient/b": flat}}
    found = findings_by_step(PoorWeightInitialization(made_run(steps).trial()))
    assert list(found) == [1]
    assert (found[1][0].tensor, found[1][0].value) == ("gradient/b", 0.0)


def test_a_gradient_of_one_value_has_no_range():
    rule = PoorWeightInitialization(made_run({0: {"gradient/bias": np.float32([0.5])}}).trial())
    assert found_data_at(rule, 0) is False
    assert rule.skipped == {"gradient/bias": "a single value has no range"}


def test_the_worker_whose_layers_differ_most_is_reported_first():
    run = MadeRun(workers=2)
    for rank, factor in enumerate((4, 9)):
        run.save(0, {"a_relu_input": EVEN, "b_relu_input": EVEN * factor}, rank=rank)
    (found,) = findings_by_step(PoorWeightInitialization(run.end().trial())).values()
    assert [finding.worker for finding in found] == ["worker_1", "worker_0"]
    assert [round(finding.value) for finding in found] == [81, 16]


def test_extremes_that_are_close_prove_that_percentiles_are_and_others_prove_nothing():
    def saved(low, high):
        prefix = "smdebug/reductions"
        return {
            f"{prefix}/min/gradient/a": np.float32(low),
            f"{prefix}/max/gradient/a": np.float32(high),
        }

    run = made_run({0: saved(-1, 1), 1: saved(0, 1e-5)}).trial()
    assert fires_at(PoorWeightInitialization(run)) == [1]
    assert found_data_at(PoorWeightInitialization(run), 0) is False


def test_a_loss_that_is_stuck_for_patience_steps_is_found():
    losses = [1.0, 0.5, 0.6, 0.5, 0.7, 0.4, 0.4]
    run = made_run({step: {"loss": np.float32(loss)} for step, loss in enumerate(losses)}).trial()
    found = findings_by_step(PoorWeightInitialization(run, patience=3))
    assert list(found) == [4]
    assert str(found[4][0]) == "loss has not been below 0.5 for 3 saved steps, since step 1"
    assert found[4][0].details["last_good_step"] == 1


def test_only_the_first_saved_steps_are_checked_and_evaluations_do_not_count():
    run = MadeRun()
    for step in range(10):
        mode = ModeKeys.EVAL if step % 2 else ModeKeys.TRAIN
        run.save(step, {"gradient/a": np.zeros(4, np.float32)}, mode=mode)
    assert fires_at(PoorWeightInitialization(run.end().trial(), steps=3)) == [0, 2, 4]


@pytest.mark.parametrize(
    "parameters",
    [{"threshold": 0.5}, {"patience": 0}, {"steps": "x"}, {"activation_inputs_regex": "("}],
)
def test_an_invalid_value_is_refused(parameters):
    with pytest.raises(SMDebugValueError):
        PoorWeightInitialization(made_run({}).trial(), **parameters)
