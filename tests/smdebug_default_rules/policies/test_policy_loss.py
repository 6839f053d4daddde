"""Policies whose loss says what is wrong: advantages that are all the same, and a punished entropy."""

from __future__ import annotations

import math

import pytest

from smdebug_default_rules.catalog import CATALOG
from tests.smdebug_default_rules.made_steps import Steps

POLICY = {"bonus": 1.0, "choices": 4, "entropy": 0.99 * math.log(4), "highest": 0.5, "lowest": -0.5}


def acting(steps=12, apart=5, start=0, **policy):
    """A run whose loss is that of a policy, with these facts or what they are at each step."""
    run = Steps()
    run.skip(*[1.0] * start)
    for step in range(steps):
        given = {name: value(step) if callable(value) else value for name, value in policy.items()}
        run.facts["loss"] = {"factor": 1.0, "terms": [], "policy": {**POLICY, **given}}
        run.write().skip(*[1.0] * (apart - 1))
    return run


def unrewarded(**policy):
    return acting(steps=22, apart=50, **{"highest": 0.0, "lowest": 0.0, **policy})


def punished(steps=12, **policy):
    return acting(steps, **{"bonus": -1.0, "entropy": lambda step: 1.3 - step / 50, **policy})


def found(run):
    return [(step, finding.since, finding.cause) for step, finding in run.evaluate("PolicyLearning")]


def at_end(run):
    """What is found at the end of the run."""
    rule = CATALOG["PolicyLearning"].load()(None)
    for seen in run.seen:
        list(rule.check(seen))
    rule.invoke_at_end(run.seen[-1].step)
    return rule.findings


def test_a_policy_with_an_entropy_bonus_and_advantages_passes():
    assert found(acting(steps=30, apart=50)) == []


def test_an_entropy_that_is_added_to_the_loss_is_found():
    assert found(punished())[:2] == [(20, 0, "policy collapse"), (25, 0, "policy collapse")]


@pytest.mark.parametrize(
    "policy",
    [
        {"entropy": 1.3},  # it does not fall
        {"entropy": lambda step: 1.3 - step / 200},  # or hardly
        {"lowest": 0.5, "highest": 2.0},  # weights of labels, whose entropy is made small on purpose
        {"bonus": 0.0},  # in two parts, of different signs
        {"bonus": lambda step: -1.0 if step % 5 else 1.0},
    ],
)
def test_other_entropies_pass(policy):
    assert found(punished(**policy)) == []


def test_it_is_said_since_when_the_entropy_is_punished():
    assert found(punished(bonus=lambda step: -1.0 if step > 2 else 1.0))[0] == (35, 15, "policy collapse")


def test_advantages_that_are_zero_from_the_start_are_found_after_a_thousand_steps():
    assert found(unrewarded()) == [(1000, 0, "no advantage"), (1050, 0, "no advantage")]


@pytest.mark.parametrize(
    "policy",
    [
        {"highest": lambda step: 1.0 if step == 3 else 0.0},  # a reward that is rare
        {"highest": lambda step: 0.1 * step, "lowest": lambda step: 0.1 * step},  # one episode a step
        {"highest": 1.0, "lowest": 1.0, "entropy": 0.5},  # labels, which count alike
    ],
)
def test_advantages_that_differ_pass(policy):
    assert found(unrewarded(**policy)) == []


def test_an_advantage_that_is_the_same_and_teaches_nothing_is_found():
    assert found(unrewarded(highest=1.0, lowest=1.0))[0] == (1000, 0, "no advantage")


def test_steps_are_counted_since_the_loss_is_that_of_a_policy():
    run = acting(steps=22, apart=50, start=300, highest=0.0, lowest=0.0)
    assert found(run)[0] == (1300, 300, "no advantage")


@pytest.mark.parametrize(("steps", "apart", "causes"), [(12, 5, 1), (9, 50, 0), (12, 4, 0), (11, 5, 1)])
def test_a_short_training_is_judged_at_its_end(steps, apart, causes):
    run = acting(steps, apart, highest=0.0, lowest=0.0)
    assert found(run) == []
    assert len(at_end(run)) == causes


ACTIONS = {"bonus": -1.0, "highest": 0.5, "lowest": -0.5}


def moving(steps=12, apart=5, **actions):
    """A run of a policy with continuous actions, whose spread falls unless something else is said."""
    run = Steps()
    for step in range(steps):
        given = {"log_scale": -step / 20, **ACTIONS, **actions}
        run.facts["loss"] = {"factor": 1.0, "terms": [], "actions": given}
        run.write().skip(*[1.0] * (apart - 1))
    return run


def test_a_punished_spread_of_continuous_actions_is_found():
    assert found(moving())[:2] == [(20, 0, "policy collapse"), (25, 0, "policy collapse")]


@pytest.mark.parametrize(
    "actions",
    [
        {"bonus": 1.0},  # the spread falls as the policy gets sure
        {"log_scale": -0.1},  # it does not fall
        {"lowest": 0.5, "highest": 2.0},  # weights of rows, whose likelihood is learnt
        {"bonus": 0.0},  # two entropies, of which one is punished
    ],
)
def test_a_spread_that_may_fall_passes(actions):
    assert found(moving(**actions)) == []
