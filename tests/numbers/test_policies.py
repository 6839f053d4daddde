"""What the loss of a policy says of its actions, and which targets are probabilities that a model gives."""

import numpy as np
import pytest

from smdebug.numbers.codes import policy_facts, soft_target_facts

SHARES = np.array([[0.5, 0.25, 0.25], [0.75, 0.125, 0.125]])
LOGARITHMS = np.log(SHARES)
ENTROPY = float(-(SHARES * LOGARITHMS).sum(1).mean())
ADVANTAGES = np.array([-2.0, 0.5, 3.0])
SCALES = np.array([[1.0, np.e], [np.e, np.e]])


def policy(*products, weights=(ADVANTAGES,)):
    return policy_facts(products, weights).get("policy")


def actions(*scales, weights=(ADVANTAGES,)):
    return policy_facts([], weights, scales).get("actions")


def test_a_policy_of_classes_has_an_entropy_and_advantages():
    assert policy_facts([(1.0, SHARES, LOGARITHMS)], [ADVANTAGES]) == {
        "policy": {
            "bonus": 1.0,
            "choices": 3,
            "entropy": pytest.approx(ENTROPY),
            "highest": 3.0,
            "lowest": -2.0,
        }
    }


def test_probabilities_and_their_logarithms_come_in_any_order():
    assert policy((1.0, LOGARITHMS, SHARES)) == policy((1.0, SHARES, LOGARITHMS))


def test_the_entropy_of_several_products_is_their_mean():
    even = np.full((2, 4), 0.25)
    found = policy((1.0, SHARES, LOGARITHMS), (1.0, even, np.log(even)))
    assert found["entropy"] == pytest.approx((ENTROPY + np.log(4)) / 2)
    assert found["choices"] == 3


@pytest.mark.parametrize(
    ("signs", "bonus"), [([1.0], 1.0), ([-1.0], -1.0), ([2.0, 1.0], 1.0), ([1.0, -1.0], 0.0), ([0.0], -1.0)]
)
def test_the_sign_says_whether_the_loss_falls_with_the_entropy(signs, bonus):
    assert policy(*((sign, SHARES, LOGARITHMS) for sign in signs))["bonus"] == bonus


def test_an_action_that_is_never_taken_adds_nothing_to_the_entropy():
    with np.errstate(divide="ignore"):
        never = np.array([[1.0, 0.0], [0.5, 0.5]])
        assert policy((1.0, never, np.log(never)))["entropy"] == pytest.approx(np.log(2) / 2)


@pytest.mark.parametrize(
    "product",
    [
        (SHARES, SHARES),
        (SHARES, LOGARITHMS - 0.01),
        (SHARES * 1.01, np.log(SHARES * 1.01)),
        (-SHARES, LOGARITHMS),
        (np.array([[1.5, -0.5]]), np.array([[np.log(1.5), -20.0]])),
        (LOGARITHMS, LOGARITHMS),
    ],
)
def test_other_products_are_no_entropy(product):
    assert policy((1.0, *product)) is None


def test_probabilities_are_known_in_half_precision():
    rounded = SHARES + np.array([4e-4, 0.0, 0.0])
    assert policy((1.0, rounded, LOGARITHMS))["entropy"] == pytest.approx(ENTROPY, abs=1e-3)


def test_the_advantages_are_those_that_differ_most():
    found = policy((1.0, SHARES, LOGARITHMS), weights=[np.ones(3), ADVANTAGES, np.array([8.0, 9.0])])
    assert (found["lowest"], found["highest"]) == (-2.0, 3.0)


@pytest.mark.parametrize("weights", [[], [np.array([1.0, np.nan])], [np.array([np.inf, 1.0])]])
def test_nothing_is_said_without_advantages(weights):
    assert policy_facts([(1.0, SHARES, LOGARITHMS)], weights, [(1.0, SCALES)]) == {}


def test_advantages_that_are_not_finite_are_left_out():
    found = policy((1.0, SHARES, LOGARITHMS), weights=[np.array([np.nan, 90.0]), ADVANTAGES])
    assert found["highest"] == 3.0


def test_a_policy_of_numbers_has_the_mean_logarithm_of_its_scales():
    assert policy_facts([], [ADVANTAGES], [(-1.0, SCALES)]) == {
        "actions": {"bonus": 1.0, "log_scale": pytest.approx(0.75), "highest": 3.0, "lowest": -2.0}
    }
    of_two = actions((-1.0, SCALES), (-1.0, np.full(2, np.e**2)))
    assert of_two["log_scale"] == pytest.approx((0.75 + 2) / 2)


@pytest.mark.parametrize(
    ("signs", "bonus"), [([-1.0], 1.0), ([1.0], -1.0), ([0.0], -1.0), ([-2.0, -1.0], 1.0), ([1.0, -1.0], 0.0)]
)
def test_scales_have_the_other_sign(signs, bonus):
    assert actions(*((sign, SCALES) for sign in signs))["bonus"] == bonus


@pytest.mark.parametrize("scales", [np.array([1.0, 0.0]), np.array([-1.0, 1.0]), np.array([1.0, np.inf])])
def test_scales_are_finite_and_above_zero(scales):
    assert actions((-1.0, scales)) is None
    assert actions((-1.0, scales), (-1.0, SCALES))["log_scale"] == pytest.approx(0.75)


def test_probabilities_count_before_scales():
    assert set(policy_facts([(1.0, SHARES, LOGARITHMS)], [ADVANTAGES], [(1.0, SCALES)])) == {"policy"}


SOFT = np.random.default_rng(0).dirichlet(np.ones(5), 20)
HARD = np.eye(5)[np.arange(20) % 5]


def test_probabilities_of_a_model_are_soft_targets():
    assert soft_target_facts([SOFT]) == {"soft_targets": True}
    assert soft_target_facts([SOFT, SOFT[:, ::-1]]) == {"soft_targets": True}
    assert soft_target_facts([SOFT + 1e-4]) == {"soft_targets": True}
    assert soft_target_facts([np.array([[0.1, 0.2, 0.3, 0.4]])]) == {"soft_targets": True}


SMOOTHED, MIXED = 0.9 * HARD + 0.02, 0.6 * HARD + 0.3 * HARD[::-1] + 0.02


@pytest.mark.parametrize(
    "targets",
    [
        [],
        [HARD],
        [SMOOTHED],
        [MIXED],
        [SOFT, SMOOTHED],
        [SOFT[0]],
        [SOFT[None]],
        [2 * SOFT],
        [SOFT + 2e-3],
        [SOFT * [1, 1, 1, 1, -1]],
        [np.array([[0.1, 0.2, 0.7]])],
        [np.array([[-0.1, 0.2, 0.3, 0.6]])],
        [np.vstack([np.repeat(SMOOTHED, 3, axis=0), SOFT, SOFT, SOFT, SOFT, SOFT])],
    ],
)
def test_labels_and_other_numbers_are_no_soft_targets(targets):
    assert soft_target_facts(targets) == {}
