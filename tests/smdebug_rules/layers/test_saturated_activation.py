from __future__ import annotations

import numpy as np
import pytest

from smdebug.exceptions import SMDebugValueError
from smdebug_rules.layers.saturated_activation import SaturatedActivation
from tests.rules.made_runs import made_run
from tests.smdebug_rules.support import findings_by_step, fires_at, found_data_at


def layer(value, units=10, saturated=6):
    made = np.zeros((8, units), np.float32)
    made[:, :saturated] = value
    return made


@pytest.mark.parametrize(
    ("name", "value", "fires"),
    [
        ("a_tanh_input", 9.4, False),
        ("a_tanh_input", 9.5, True),
        ("a_tanh_input", -9.5, True),
        ("a_sigmoid_input", 16.9, False),
        ("a_sigmoid_input", 17.0, True),
        ("a_sigmoid_input", -22.9, False),
        ("a_sigmoid_input", -23.0, True),
    ],
)
def test_each_function_has_its_limits(name, value, fires):
    run = made_run({0: {name: layer(value)}}).trial()
    assert fires_at(SaturatedActivation(run)) == ([0] if fires else [])


@pytest.mark.parametrize("both", [(-5, 5), "-5,5", "(-5.0, 5.0)", [-5, "5"]])
def test_both_limits_of_a_function_may_be_given_at_once_as_they_were_at_first(both):
    run = made_run({0: {"a_tanh_input": layer(6), "a_sigmoid_input": layer(6)}}).trial()
    assert fires_at(SaturatedActivation(run)) == []
    (found,) = findings_by_step(SaturatedActivation(run, threshold_tanh=both))[0]
    assert found.tensor == "a_tanh_input"
    assert found.message.endswith("outside -5 to 5")
    (found,) = findings_by_step(SaturatedActivation(run, threshold_sigmoid=both))[0]
    assert found.tensor == "a_sigmoid_input"


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({"threshold_tanh": "5"}, "threshold_tanh must be two numbers"),
        ({"threshold_tanh": "a,b"}, "threshold_tanh must be a number"),
        ({"threshold_sigmoid": (5, -5)}, "threshold_sigmoid_min"),
        ({"threshold_tanh": (-5, 5), "threshold_tanh_min": -6}, "contradicts them"),
    ],
)
def test_invalid_limits_are_refused(parameters, problem):
    with pytest.raises(SMDebugValueError, match=problem):
        SaturatedActivation(made_run({0: {"a": layer(1)}}).trial(), **parameters)


def test_the_limits_are_reported_as_they_are():
    run = made_run({0: {"a_sigmoid_input": layer(20)}}).trial()
    assert "outside -23 to 16.99999" in str(findings_by_step(SaturatedActivation(run))[0][0])


def test_more_than_half_of_the_units_have_to_be_saturated():
    run = made_run({0: {"tanh_input": layer(20, saturated=5)}, 1: {"tanh_input": layer(20)}}).trial()
    found = findings_by_step(SaturatedActivation(run))
    assert list(found) == [1]
    assert str(found[1][0]) == (
        "tanh_input: 60 % of the units are saturated (limit 50 %): inputs outside -9.4999 to 9.4999"
    )


def test_a_pattern_of_older_pages_with_a_comma_is_two_patterns():
    run = made_run({0: {"a_tanh_input": layer(20)}, 1: {"a_sigmoid_input": layer(20)}}).trial()
    assert fires_at(SaturatedActivation(run, tensor_regex=".*tanh_input, .*sigmoid_input")) == [
        0,
        1,
    ]


def test_a_name_that_does_not_show_the_function_is_skipped():
    run = made_run({0: {"dense_in": layer(99)}}).trial()
    rule = SaturatedActivation(run, tensor_regex="dense")
    assert found_data_at(rule, 0) is False
    assert rule.skipped == {"dense_in": "its name contains neither tanh nor sigmoid"}


def test_limits_the_wrong_way_round_are_refused():
    with pytest.raises(SMDebugValueError, match="must be below"):
        SaturatedActivation(made_run({}).trial(), threshold_tanh_min="1", threshold_tanh_max="-1")
