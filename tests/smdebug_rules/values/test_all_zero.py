from __future__ import annotations

import numpy as np
import pytest

from smdebug.exceptions import SMDebugValueError
from smdebug_rules.values.all_zero import AllZero, percent_zero_by_reductions
from tests.rules.made_runs import MadeRun, made_run
from tests.smdebug_rules.support import findings_by_step, fires_at, found_data_at

STEPS = {
    0: {"weight": [0.0, 1.0], "input_0": [0.0, 0.0]},
    1: {"weight": [0.0, -0.0], "input_0": [1.0, 1.0]},
    2: {"weight": [0.0, 1e-45], "input_0": [0.0, 0.0, 0.0, 1.0]},
}


def test_it_fires_when_all_values_of_any_selected_tensor_are_zero():
    trial = made_run(STEPS).trial()
    assert fires_at(AllZero(trial, collection_names=["weights"])) == [1]
    assert fires_at(AllZero(trial, tensor_regex="input*")) == [0]
    assert fires_at(AllZero(trial, ["weights", "bias"], ["input*"])) == [0, 1]


def test_a_percentage_is_enough_where_asked_for():
    trial = made_run(STEPS).trial()
    found = findings_by_step(AllZero(trial, tensor_regex=".*", threshold="75"))
    assert list(found) == [0, 1, 2]
    assert str(found[2][0]) == "input_0: 75 % of 4 values are zero"
    assert str(found[1][0]) == "weight: all 2 values are zero"
    assert found[2][0].value == 75.0


def test_one_of_the_selectors_is_needed():
    trial = made_run(STEPS).trial()
    for parameters in ({}, {"collection_names": "", "tensor_regex": []}):
        with pytest.raises(SMDebugValueError, match="needs collection_names or tensor_regex"):
            AllZero(trial, **parameters)


@pytest.mark.parametrize("threshold", ["-1", "101", "all"])
def test_a_percentage_that_is_none_is_refused(threshold):
    with pytest.raises(SMDebugValueError, match="threshold must be"):
        AllZero(made_run(STEPS).trial(), tensor_regex=".*", threshold=threshold)


def test_an_empty_tensor_and_text_are_nothing_to_look_at():
    run = made_run({0: {"e": np.zeros((0, 3)), "t": np.array([""])}})
    rule = AllZero(run.trial(), tensor_regex=".*")
    assert fires_at(rule) == []
    assert found_data_at(rule, 0) is False


@pytest.mark.parametrize("dtype", ["float16", "float64", "int8", "uint8", "bool", "complex64"])
def test_it_is_right_on_every_type(dtype):
    run = made_run({0: {"w": np.zeros(3, dtype)}, 1: {"w": np.ones(3, dtype)}})
    assert fires_at(AllZero(run.trial(), tensor_regex="w")) == [0]


@pytest.mark.parametrize(
    ("saved", "percent"),
    [
        ({("min", False): 0, ("max", False): 0}, 100),
        ({("min", False): 0, ("max", False): 1}, 0),
        ({("max", True): 0.0}, 100),
        ({("l1", False): 0.0}, 100),
        ({("l2", False): 0.0}, None),  # tiny squares vanish
        ({("l2", False): 1.0}, 0),
        ({("mean", False): 0.0}, None),
    ],
)
def test_saved_reductions_are_enough_where_they_prove_it(saved, percent):
    assert percent_zero_by_reductions(saved) == percent


def test_a_run_of_reductions_is_checked():
    names = ("smdebug/reductions/min/w", "smdebug/reductions/max/w")
    run = made_run({0: {key: [0.0] for key in names}, 1: {names[0]: [0.0], names[1]: [1.0]}})
    trial = run.trial()
    assert fires_at(AllZero(trial, tensor_regex="w")) == [0]
    half = AllZero(trial, tensor_regex="w", threshold=50)
    assert fires_at(half) == [0]
    assert found_data_at(half, 1) is False  # less than all, but how much less nobody knows


def test_every_worker_is_checked():
    run = MadeRun(workers=2)
    run.save(0, {"w": [1.0]}, rank=0).save(0, {"w": [0.0]}, rank=1).end()
    (finding,) = findings_by_step(AllZero(run.trial(), tensor_regex="w"))[0]
    assert finding.worker == "worker_1"
