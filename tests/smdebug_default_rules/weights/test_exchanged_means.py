"""Means of the weights: those that keep most of what they were, and those that keep nearly nothing."""

import pytest

from smdebug_default_rules.weights.exchanged_means import TITLE
from tests.smdebug_default_rules.made_steps import Steps


def following(*shares, apart=10, is_same=False):
    """A run with a mean that has moved this share of the way, at steps that are so far apart."""
    run = Steps()
    for share in shares:
        run.facts["followed"] = {"model": "Net", "of": "Net_0.weight", "share": share, "is_same": is_same}
        run.write().skip(*[1.0] * (apart - 1))
    return run


def found(run):
    return [step for step, finding in run.evaluate("UnreachedParameters") if finding.title == TITLE]


def test_a_mean_that_keeps_nearly_nothing_is_found_after_five_steps():
    assert found(following(*[0.99] * 7)) == [40, 50, 60]
    assert found(following(*[0.9] * 5)) == [40]
    (_, finding), *_ = following(*[0.99] * 5).evaluate("UnreachedParameters")
    assert (finding.tensor, finding.cause) == ("Net_0.weight", "no gradient")


@pytest.mark.parametrize(
    "shares",
    [
        [0.01] * 9,
        [0.89] * 9,
        [1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4],  # a mean that begins
        [0.99] * 4 + [0.2] + [0.99] * 4,
        [1.1] * 9,
    ],
)
def test_other_means_pass(shares):
    assert found(following(*shares)) == []


def test_a_model_that_is_copied_on_purpose_passes():
    assert found(following(*[0.999999] * 9, is_same=True)) == []


def test_the_first_steps_are_too_near_to_each_other():
    assert found(following(*[0.99] * 9, apart=1)) == []
