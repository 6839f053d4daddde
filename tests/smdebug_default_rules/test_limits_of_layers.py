"""The limits of rules that judge outputs of layers and first weights: a run at each, and one beyond it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.smdebug_default_rules.made_runs import MODULES, PARAMETERS
from tests.smdebug_default_rules.made_steps import Steps


def fires(steps, rule):
    return sorted({step for step, _ in steps.evaluate(rule)})


def outputs(rule, name, *arrays, modules=MODULES, facts=()):
    steps = Steps()
    steps.lasting["modules"] = modules
    steps.facts |= dict(facts)
    for array in arrays:
        steps.kinds["outputs"][name] = array
        steps.write()
    return fires(steps, rule)


def zeros(share, count=512):
    array = np.ones(count, np.float32)
    array[: round(share * count)] = 0
    return array


@pytest.mark.parametrize(
    ("name", "arrays", "fired"),
    [
        ("1_output_0", [zeros(0.96)] * 4, [2, 3]),
        ("1_output_0", [zeros(0.95, 1000)] * 4, []),
        ("1_output_0", [zeros(0.951, 1000)] * 3, [2]),
        ("1_output_0", [zeros(0.96)] * 2 + [zeros(0.5)] + [zeros(0.96)] * 2, []),
        ("1_output_0", [zeros(1.0, 16)] * 3, [2]),
        ("1_output_0", [zeros(1.0, 15)] * 3, []),
        ("3_output_0", [zeros(0.96)] * 4, []),  # a tanh
        ("0_output_0", [zeros(0.96)] * 4, []),
    ],
)
def test_a_rectifier_is_dead_if_nearly_all_of_its_outputs_are_zero_three_times(name, arrays, fired):
    assert outputs("DeadUnits", name, *arrays) == fired


def bounded(share, count=100, high=1.0, low=-1.0):
    array = np.linspace(0.4, 0.6, count).astype(np.float32) * (high - low) + low
    extremes = round(share * count)
    array[:extremes:2], array[1:extremes:2] = high, low
    return array


@pytest.mark.parametrize(
    ("name", "arrays", "fired"),
    [
        ("3_output_0", [bounded(0.86)] * 4, [2, 3]),
        ("3_output_0", [bounded(0.85)] * 4, []),
        ("3_output_0", [bounded(0.9)] * 2 + [bounded(0.1)] + [bounded(0.9)] * 2, []),
        ("3_output_0", [bounded(0.9, 32)] * 3, [2]),
        ("3_output_0", [bounded(0.95, 31)] * 3, []),
        ("3_output_0", [bounded(0.9, high=0.9901, low=-0.9901)] * 3, [2]),
        ("3_output_0", [bounded(0.9, high=0.9899, low=-0.9899)] * 3, []),
        ("3_output_0", [np.where(bounded(0.9) > 0, bounded(0.9), np.nan)] * 3, []),
        ("1_output_0", [bounded(0.9)] * 4, []),  # a rectifier
        ("Net_output_0", [bounded(1.0)] * 4, []),  # the answer of the model
    ],
)
def test_a_tanh_is_saturated_if_most_of_its_outputs_are_at_its_bounds_three_times(name, arrays, fired):
    assert outputs("SaturatedUnits", name, *arrays) == fired


@pytest.mark.parametrize(
    ("begins", "falls", "found_at"),
    [(2, 0.01, 4), (3, 0.01, None), (20, 0.01, None), (20, 0.0, 299), (20, -0.01, 299), (20, 1e-5, 299)],
)
def test_units_that_reach_their_bounds_later_are_of_use_unless_the_loss_is_stuck(begins, falls, found_at):
    steps = Steps()
    for place in range(40):
        if place >= begins:
            steps.kinds["outputs"]["3_output_0"] = bounded(0.9)
        if place >= 10:  # as the default plan saves
            steps.skip(*(loss(steps.step + more, falls) for more in range(9)))
        steps.loss = loss(steps.step, falls)
        steps.write()
    found = [step for step, _ in steps.evaluate("SaturatedUnits")]
    assert next(iter(found), None) == found_at


def loss(step, falls):
    return 100 * math.exp(-falls * step) + 3 * math.sin(7 * step)


def test_a_model_without_bounded_layers_is_not_checked_for_saturation():
    steps = Steps()
    steps.lasting["modules"] = [row for row in MODULES if row[1] != "Tanh"]
    ((_, _, why),) = steps.write().evaluations("SaturatedUnits")
    assert why == "no hidden layer is bounded, as tanh and sigmoid are"


def test_a_last_layer_may_be_saturated_and_a_sigmoid_has_other_bounds():
    last = [*MODULES[:5], ["4", "Tanh", False]]
    assert outputs("SaturatedUnits", "4_output_0", *[bounded(1.0)] * 3, modules=last) == []
    sigmoid = [*MODULES[:4], ["3", "Sigmoid", False], *MODULES[5:]]
    assert outputs("SaturatedUnits", "3_output_0", *[bounded(0.9, low=0.0)] * 3, modules=sigmoid) == [2]
    assert (
        outputs(
            "SaturatedUnits",
            "3_output_0",
            *[np.where(bounded(0.9) < 0, 0.5, bounded(0.9))] * 3,
            modules=sigmoid,
        )
        == []
    )


def columns(rows=32, units=4, noise=0.0):
    row = np.arange(1, units + 1, dtype=np.float64)
    return (row * (1 + noise * np.linspace(0, 1, rows)[:, None])).astype(np.float32)


@pytest.mark.parametrize(
    ("arrays", "facts", "fired"),
    [
        ([columns()] * 4, {}, [2, 3]),
        ([columns()] * 2 + [columns(noise=0.1)] + [columns()] * 3, {}, [5]),
        ([columns(8)] * 3, {}, [2]),
        ([columns(7)] * 3, {}, []),
        ([columns(noise=1e-3)] * 4, {}, []),
        ([columns(noise=3e-6)] * 4, {}, [2, 3]),
        ([columns()] * 4, {"distinct_rows": 1}, []),  # one row, again and again
        ([columns()] * 4, {"distinct_rows": 2}, [2, 3]),
        ([np.zeros((32, 4), np.float32)] * 3, {}, [2]),
        ([np.full((32, 1), 2.0, np.float32)] * 3, {}, [2]),
        ([np.full(32, 2.0, np.float32)] * 3, {}, [2]),
        ([columns(units=1, noise=0.1)] * 3, {}, []),
        ([np.full((32, 2, 2), 1.0, np.float32)] * 3, {}, []),  # pictures may be empty
        ([columns(units=43)] * 3, {}, []),  # the sample has two values of a column
    ],
)
def test_the_output_is_constant_if_no_column_varies_three_times(arrays, facts, fired):
    assert outputs("ConstantOutput", "Net_output_0", *arrays, facts=facts) == fired


def test_an_output_may_be_constant_for_a_constant_input():
    steps = Steps()
    for _ in range(4):
        steps.kinds["inputs"]["Net_input_0"][:] = 1
        steps.kinds["outputs"]["Net_output_0"] = columns()
        steps.write()
    assert fires(steps, "ConstantOutput") == []


def first_weights(first=0, frozen=(), **arrays):
    steps = Steps()
    steps.lasting["frozen"] = list(frozen)
    if first:
        steps.skip(*[2.3] * first)
    for layer, array in arrays.items():
        for name in PARAMETERS if layer == "every" else [f"Net_{layer.strip('_')}.weight"]:
            steps.kinds["parameters"][name] = np.array(array, np.float32)
    steps.write(steps=2)
    return [(step, finding.tensor, finding.statistic) for step, finding in steps.evaluate("InitialWeights")]


def spread(gain, units=16, inputs=16):
    array = np.ones((units, inputs))
    array[:, ::2] = -1
    return array * gain / inputs**0.5


@pytest.mark.parametrize(
    ("found", "places"),
    [
        (lambda: first_weights(_2=spread(6.1)), [("Net_2.weight", "gain")]),
        (lambda: first_weights(_2=spread(5.9)), []),
        (lambda: first_weights(3, _2=spread(6.1)), []),  # the weights have moved
        (lambda: first_weights(_2=spread(6.1), frozen=["Net_2.weight"]), []),
        (lambda: first_weights(_2=spread(9e-4)), []),  # the last layer of a branch
        (
            lambda: first_weights(_2=spread(9e-4), _4=spread(9e-4)),
            [("Net_2.weight", "gain"), ("Net_4.weight", "gain")],
        ),
        (lambda: first_weights(_2=spread(9e-4), _4=spread(1.1e-3)), []),
        (lambda: first_weights(_2=np.full((16, 16), 0.1)), [("Net_2.weight", "spread")]),
        (lambda: first_weights(_2=np.zeros((16, 16))), []),
        (lambda: first_weights(_2=np.full((1, 16), 0.1)), []),  # one unit has no twin
        (lambda: first_weights(_2=np.full((2, 16), 0.1)), [("Net_2.weight", "spread")]),
        (lambda: first_weights(every=np.zeros((16, 16))), [(f"Net_{at}.weight", "rms") for at in (0, 2, 4)]),
    ],
)
def test_weights_begin_badly_at_the_first_step_alone(found, places):
    expected = [(0, *place) for place in places]
    if places and places[0][1] == "rms":
        expected = [(0, name, "rms") for name in PARAMETERS[:3]]
    assert found() == expected
