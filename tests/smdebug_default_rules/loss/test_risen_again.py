"""Losses that were learnt and are lost again, of one optimizer or several, of one criterion or a sum."""

from __future__ import annotations

import numpy as np
import pytest

from tests.smdebug_default_rules.made_runs import PARAMETERS, TERM
from tests.smdebug_default_rules.made_steps import Steps
from tests.smdebug_default_rules.test_nothing_to_learn import Regression

MSE = {"criterion": "mean squared error", "rows": 32, "classes": 2}


def falls_and_rises(*, low=0.1, high=2.3, after=200, terms=(TERM,), slow=0, drift=0.0):
    """A loss that stays at 2.3 for a while, falls, is low for 200 steps, and rises for the last ones."""
    run = Steps()
    run.facts["loss"] = {"factor": 1.0, "broadcast": None, "terms": [*terms]}
    noise = np.random.default_rng(0).normal(0, 0.01, 260 + slow + after)
    last = high + drift * np.arange(after)
    run.skip(*(np.r_[[2.3] * (20 + slow), np.linspace(2.3, low, 40), [low] * 200, last] + noise))
    return run


def split(run, *, passes=1, still=()):
    """Give the weights and the biases an optimizer of their own; `still` are not updated."""
    kinds = [[name for name in PARAMETERS if name.endswith(kind)] for kind in ("weight", "bias")]
    run.lasting["optimizers"] = [
        {"class": "SGD", "groups": [{"parameters": names, "others": 0}]} for names in kinds
    ]
    run.facts["backward_passes"] = passes
    for name in still:
        run.kinds["updates"][f"update/{name}"][:] = 0
    return run


def found(run):
    return [finding for _, finding in run.write().evaluate("StuckLoss")]


@pytest.mark.parametrize("terms", [(TERM,), (TERM, MSE)])
def test_a_loss_that_is_lost_is_found_since_it_rose(terms):
    (finding,) = found(falls_and_rises(terms=terms))
    assert finding.title == "The loss has risen to where it began"
    assert 256 <= finding.since <= 264
    assert ", and it had fallen to 0.09" in finding.message


@pytest.mark.parametrize(
    "change",
    [
        {"after": 140},
        {"low": 1.3},  # it had not halved
        {"high": 2.2},
        {
            "after": 178,
            "drift": -0.001,
            "high": 2.45,
            "slow": 80,
        },  # it falls again, and took 80 steps at first
        {"terms": (MSE, MSE)},  # errors of values that a policy learns, which grow with its success
        {"terms": ({**TERM, "targets": 0}, MSE)},
    ],
)
def test_a_sum_that_may_still_be_learnt_or_need_not_fall_is_left_alone(change):
    assert found(falls_and_rises(**{"terms": (TERM, MSE), **change})) == []


def test_a_sum_that_has_fallen_for_three_times_as_long_as_at_first_is_lost_all_the_same():
    assert found(falls_and_rises(terms=(TERM, MSE), after=400, drift=-0.0005, high=2.6))


def test_a_sum_whose_terms_change_is_left_alone():
    run = falls_and_rises(terms=(TERM, MSE))
    run.write()
    run.facts["loss"]["terms"] = [TERM, TERM, MSE]
    assert found(run.skip(*[2.3] * 20))[1:] == []


@pytest.mark.parametrize(
    ("passes", "still", "is_found"),
    [
        (1, (), True),
        (2, (), False),  # a generator and its critic
        (1, [name for name in PARAMETERS if name.endswith("bias")], False),  # they take turns
    ],
)
def test_several_optimizers_are_judged_together_if_all_step_after_one_backward_pass(passes, still, is_found):
    assert bool(found(split(falls_and_rises(), passes=passes, still=still))) == is_found


@pytest.mark.parametrize(
    "term",
    [{**TERM, "classes": 2}, {**TERM, "criterion": "binary cross entropy with logits"}],
)
def test_yes_or_no_of_several_optimizers_is_left_alone_as_one_may_work_against_the_other(term):
    assert found(split(falls_and_rises(terms=(term,)))) == []
    assert found(falls_and_rises(terms=(term,), after=320))


@pytest.mark.parametrize(
    ("ends", "is_found"),
    [
        (420, True),  # half of what is compared was learnt
        (520, False),  # too early to say
    ],
)
def test_a_regression_is_compared_with_its_mean_from_where_it_rose(ends, is_found):
    findings = Regression(0.9, begins=40, ends=ends, count=620).found()
    assert bool(findings) == is_found
    assert all(abs(finding.since - ends) <= 16 for _, finding in findings)
