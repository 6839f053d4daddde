"""Gradients that are exactly zero: from the beginning on, in all parameters, for long enough."""

import numpy as np
import pytest

from tests.smdebug_default_rules.made_steps import Steps

WEIGHTS = ("Net_0.weight", "Net_2.weight", "Net_4.weight")


def without_gradients(steps):
    gradients = steps.kinds["gradients"]
    gradients.update({name: np.zeros_like(value) for name, value in gradients.items()})


def with_zero_weights(steps):
    without_gradients(steps)
    steps.kinds["parameters"].update({name: np.zeros((16, 16), np.float32) for name in WEIGHTS})


def training(count, change, since=0):
    """A training in which `change` holds from one of its steps on."""
    steps = Steps()
    for at in range(count):
        if at >= since:
            change(steps)
        steps.write()
    return steps


def titled(steps):
    return [(step, at) for step, at in steps.evaluate("UnreachedParameters") if "zero" in at.title]


@pytest.mark.parametrize(("count", "found"), [(50, []), (51, [50]), (53, [50, 51, 52])])
def test_gradients_that_were_never_anything_but_zero(count, found):
    assert [step for step, _ in titled(training(count, without_gradients))] == found


def test_what_was_learnt_once_may_be_learnt():
    """A margin that all rows keep has no gradient: the training has ended, and found nothing wrong."""
    assert titled(training(80, without_gradients, since=1)) == []


def test_one_bias_with_a_gradient_is_enough():
    def nearly(steps):
        bias = steps.kinds["gradients"]["gradient/Net_4.bias"]
        without_gradients(steps)
        steps.kinds["gradients"]["gradient/Net_4.bias"] = bias

    assert titled(training(60, nearly)) == []


def test_gradients_that_were_not_measured_say_nothing():
    assert titled(training(60, lambda steps: steps.kinds["gradients"].clear())) == []


def test_an_output_that_is_constant_is_the_reason_and_has_a_rule_of_its_own():
    def constant(steps):
        without_gradients(steps)
        steps.kinds["outputs"]["Net_output_0"] = np.ones((32, 10), np.float32)

    assert titled(training(60, constant)) == []


def test_weights_that_are_zero_are_named_first():
    (_, first), *_ = titled(training(51, with_zero_weights))
    assert "3 weights are zero themselves" in first.message
    assert first.advice[0].startswith("Start one factor of each product at random")
    (_, other), *_ = titled(training(51, without_gradients))
    assert other.advice[0].startswith("Print what the loss is multiplied by")


def test_some_zero_weights_beside_others_are_scaled_by_zero():
    """As those of an adapter whose other factor is drawn at random: its scale has to be zero."""

    def half(steps):
        without_gradients(steps)
        steps.kinds["parameters"]["Net_2.weight"][:] = 0

    (_, first), *_ = titled(training(51, half))
    assert first.tensor == "Net_2.weight"
    assert first.advice[0].startswith("Print what the product with the zero weights is scaled by")
