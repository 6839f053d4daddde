"""Policies without advantages, on stale completions, of no entropy, and far from their reference."""

from __future__ import annotations

import math

import pytest

from smdebug import modes
from tests.smdebug_default_rules.made_steps import Steps

HEALTHY = {
    "reward": [0.1, 0.12, 0.11, 0.13, 0.12, 0.14, 0.15, 0.15, 0.18, 0.2, 0.22, 0.25],
    "frac_reward_zero_std": [0.2] * 12,
    "entropy": [2.0] * 12,
    "kl": [0.01] * 12,
    "sampling/sampling_logp_difference/mean": [0.01] * 12,
    "sampling/importance_sampling_ratio/mean": [0.99] * 12,
}
FLAT = {**HEALTHY, "reward": [0.1, 0.12, 0.11] * 4}


def logged(series, rule="PolicyLearning"):
    """Findings of a training that logs these numbers at steps 0, 1, …"""
    steps = Steps()
    for place in range(max(map(len, series.values()))):
        for name, values in series.items():
            steps.carry(name, values[place])
        steps.write()
    return steps.evaluate(rule)


def found(series):
    """The first finding of each cause: its step, the step since which it holds, and its series."""
    first = {}
    for step, finding in logged(series):
        first.setdefault(finding.cause, (step, finding.since, finding.tensor))
    return first


def test_a_policy_that_learns_is_not_reported():
    assert found(HEALTHY) == {}


@pytest.mark.parametrize("share", [0.95, 1.0])
def test_groups_without_spread_are_reported_at_the_fifth_step(share):
    series = {**FLAT, "reward": [0.0] * 12, "frac_reward_zero_std": [share] * 12}
    assert found(series) == {"no advantage": (4, 0, "frac_reward_zero_std")}


def test_one_group_in_ten_with_a_spread_is_enough():
    assert found({**FLAT, "reward": [0.0] * 12, "frac_reward_zero_std": [1.0] * 4 + [0.9] * 8}) == {}


@pytest.mark.parametrize("name", ["reward_std", "train/reward_std"])
def test_rewards_without_spread_are_known_by_it_where_no_share_is_logged(name):
    series = {"reward": [0.0] * 6, name: [0.0] * 6}
    assert found(series) == {"no advantage": (4, 0, name)}


def test_advantages_that_are_all_zero_are_those_of_verl():
    series = {"critic/score/mean": [0.0] * 6, "critic/advantages/max": [0.0] * 6}
    assert found(series) == {}
    series["critic/advantages/min"] = [0.0] * 6
    assert found(series) == {"no advantage": (4, 0, "critic/advantages/max")}


def test_a_task_that_is_solved_leaves_no_advantage():
    rising = [0.1, 0.3, 0.6, 0.9, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    spread = [0.1] * 4 + [1.0] * 8
    assert found({**HEALTHY, "reward": rising, "frac_reward_zero_std": spread}) == {}
    some_prompts = [0.1, 0.12, 0.11, 0.1, 0.12, 0.9, 0.7, 0.75, 0.72, 0.7, 0.7, 0.7]
    assert found({**HEALTHY, "reward": some_prompts, "frac_reward_zero_std": spread}) == {}
    lost = [0.1, 0.3, 0.6, 0.9, 1.0, 1.0, 1.0, 1.0, 1.0] + [0.0] * 6
    series = {"reward": lost, "frac_reward_zero_std": [0.1] * 9 + [1.0] * 6}
    assert found(series) == {"no advantage": (13, 9, "frac_reward_zero_std")}


GAP = "sampling/sampling_logp_difference/mean"


@pytest.mark.parametrize(
    ("values", "step"),
    [
        ([0.015] * 3 + [0.2] * 9, 7),  # since the sync failed
        ([0.2] * 12, 4),
        ([0.01] * 3 + [0.06] * 9, 7),
        ([0.02] * 3 + [0.06] * 9, None),  # three times the start
        ([0.001] * 3 + [0.04] * 9, None),
    ],
)
def test_a_gap_of_log_probabilities_is_reported_if_it_is_large_or_has_grown(values, step):
    expected = {} if step is None else {"stale rollouts": (step, step - 4, GAP)}
    assert found({**HEALTHY, GAP: values}) == expected


@pytest.mark.parametrize(("ratio", "is_found"), [(0.569, True), (1.3, True), (0.85, False), (1.2, False)])
def test_a_mean_ratio_far_from_one_is_reported(ratio, is_found):
    series = {**HEALTHY, "sampling/importance_sampling_ratio/mean": [ratio] * 12}
    assert ("stale rollouts" in found(series)) == is_found


FALLING = [2.0, 2.0, 2.0, 1.0, 0.5] + [0.1] * 7


def test_entropy_that_falls_is_a_collapse_unless_the_reward_has_risen():
    assert found({**FLAT, "entropy": FALLING}) == {"policy collapse": (9, 5, "entropy")}
    assert found({**HEALTHY, "entropy": FALLING}) == {}


def test_entropy_that_falls_is_a_collapse_if_the_reward_is_lost_again():
    reward = [0.1, 0.12, 0.11, 0.9, 0.9, 0.9, 0.9, 0.9, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1]
    series = {"reward": [0.1, 0.11, 0.12, 0.1] * 3 + reward, "entropy": [2.0] * 20 + [0.1] * 9}
    assert "policy collapse" in found(series)


def test_a_divergence_that_explodes_is_reported_unless_the_reward_has_risen():
    kl = [0.01] * 5 + [8.0] * 7
    assert found({**FLAT, "kl": kl}) == {"policy drift": (9, 5, "kl")}
    assert found({**HEALTHY, "kl": kl}) == {}
    assert found({**FLAT, "kl": [0.5] * 5 + [4.0] * 7}) == {}
    assert "policy drift" in found({**FLAT, "kl": [0.01] * 5 + [math.inf] * 7})


def test_a_number_that_is_not_one_is_left_out():
    series = {**HEALTHY, "frac_reward_zero_std": [1.0, math.nan, 1.0, 1.0, 1.0, math.nan] + [0.1] * 6}
    assert found(series) == {}


def test_entropy_of_a_training_without_rewards_is_not_judged():
    assert logged({"entropy": FALLING}) == []


def test_numbers_that_are_logged_in_evaluation_alone_count():
    steps = Steps()
    for _ in range(6):
        for name in ("reward", "reward_std"):
            steps.carry(name, 0.0, modes.EVAL)
        steps.write(modes.EVAL)
    assert [step for step, _ in steps.evaluate("PolicyLearning")] == [4, 5]


def test_numbers_of_an_evaluation_beside_those_of_the_training_do_not():
    steps = Steps()
    for place in range(12):
        mode = modes.EVAL if place % 2 else modes.TRAIN
        steps.carry("reward", 0.1, mode)
        steps.carry("reward_std", 0.0 if place % 2 else 0.1, mode)
        steps.write(mode)
    assert steps.evaluate("PolicyLearning") == []


@pytest.mark.parametrize(("size", "is_found"), [(1e-8, False), (1e-2, True)])
@pytest.mark.parametrize("rule", ["LossSpike", "NonFiniteValues"])
def test_a_loss_that_is_rounding_around_zero_does_not_jump(rule, size, is_found):
    steps = Steps()
    for place in range(40):
        steps.loss = (size if place % 2 else -size) * (1 if place < 25 else 1000)
        steps.write()
    assert any(finding.tensor == "loss" for _, finding in steps.evaluate(rule)) == is_found


MARGIN, PREFERRED = "rewards/margins", "rewards/accuracies"


def preferred(margins, shares):
    """The first finding about preferences: its step, the step since which it holds, and what shows it."""
    findings = logged({MARGIN: margins, PREFERRED: shares}, "Preferences")
    return next(((step, finding.since, finding.statistic) for step, finding in findings), None)


def test_a_policy_that_learns_the_opposite_is_reported():
    falling = [-0.01 * place for place in range(14)]
    assert preferred(falling, [0.0] + [0.2] * 13) == (9, 5, "preferred")
    assert preferred(falling, [0.0] + [0.45] * 13) is None
    assert preferred([-value for value in falling], [0.2] * 14) is None


def test_margins_that_stay_zero_are_those_of_a_policy_that_is_its_own_reference():
    assert preferred([0.0] * 8, [0.0] * 8) == (5, 1, "margin")
    assert preferred([0.0] + [0.01] * 7, [0.0] + [0.9] * 7) is None
