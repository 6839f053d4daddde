from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from smdebug.exceptions import SMDebugValueError
from smdebug_rules.values.tensor_variance import TensorVariance
from tests.rules.made_runs import made_run
from tests.smdebug_rules.support import findings_by_step, fires_at, found_data_at

STEPS = {0: {"w": np.float32([0, 2])}, 1: {"w": np.float32([0, 20])}, 2: {"w": np.float32([1, 1])}}


def test_too_much_and_too_little_are_found():
    rule = TensorVariance(made_run(STEPS).trial(), tensor_regex="w", max_threshold="50", min_threshold="0.5")
    found = findings_by_step(rule)
    assert {step: str(item[0]) for step, item in found.items()} == {
        1: "w: variance 100 (limit 50)",
        2: "w: variance 0 (limit 0.5)",
    }


def test_a_limit_itself_is_all_right_and_one_limit_is_enough():
    run = made_run(STEPS).trial()
    assert fires_at(TensorVariance(run, tensor_regex="w", max_threshold=100)) == []
    assert fires_at(TensorVariance(run, tensor_regex="w", min_threshold=1)) == [2]


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_sixteen_bits_do_not_overflow(dtype):
    run = made_run({0: {"w": np.array([-60000, 60000], dtype)}}).trial()
    (found,) = findings_by_step(TensorVariance(run, tensor_regex="w", max_threshold=1))[0]
    assert found.value == pytest.approx(60000.0**2, rel=1e-2)


@pytest.mark.parametrize(("reduction", "value"), [("variance", 4.0), ("std", 2.0)])
def test_a_saved_reduction_is_enough(reduction, value):
    run = made_run({0: {f"smdebug/reductions/{reduction}/w": np.float32(value)}}).trial()
    assert fires_at(TensorVariance(run, tensor_regex="w", max_threshold=3.9)) == [0]


def test_what_has_no_variance_is_skipped():
    steps = {
        0: {"w": np.zeros(0, np.float32)},
        1: {"w": np.float32([np.nan, 1])},
        2: {"w": np.array(["a"])},
    }
    run = made_run(steps).trial()
    for step in steps:
        assert found_data_at(TensorVariance(run, tensor_regex="w", min_threshold=1), step) is False


@pytest.mark.parametrize(
    "parameters",
    [
        {"tensor_regex": "w"},
        {"max_threshold": 1},
        {"tensor_regex": "w", "max_threshold": 1, "min_threshold": 2},
        {"tensor_regex": "w", "max_threshold": "much"},
    ],
)
def test_an_invalid_value_is_refused(parameters):
    with pytest.raises(SMDebugValueError):
        TensorVariance(made_run({}).trial(), **parameters)
