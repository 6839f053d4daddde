"""Schedules that are shorter than the training: the rate swings as none does that is meant to last."""

from __future__ import annotations

import math

import pytest

from smdebug_default_rules.weights import waves
from tests.smdebug_default_rules.made_steps import Steps


def cosine(step, length=10, lowest=0.0):
    return lowest + (1 - lowest) * (1 + math.cos(math.pi * step / length)) / 2


def triangle(step, length=10):
    return abs((step / length + 1) % 2 - 1)


def swinging(rates):
    """What is found of a rate at the end, and the first step at which it is."""
    kept = at = last = None
    for step, rate in enumerate(rates):
        if rate != last:
            kept, last = waves.follow(kept, step, 0.1 * rate), rate
        at = step if at is None and waves.found(kept) else at
    return waves.found(kept), at


def test_a_cosine_that_comes_back_is_reported_at_its_third_wave():
    found, at = swinging(map(cosine, range(100)))
    assert found == (4, 10, 10, pytest.approx(0.1))
    assert at == 61


@pytest.mark.parametrize(
    "rate",
    [
        lambda step: step / 20 if step < 20 else cosine(step - 20, 30),  # a warm-up first
        lambda step: cosine(step, 400),
        lambda step: cosine(step // 40, 5),  # stepped once per epoch
        lambda step: cosine(step, 20, lowest=0.005),
    ],
)
def test_lengths_and_ends_may_differ(rate):
    assert (swinging(map(rate, range(4000)))[0] or [0])[0] >= waves.LEAST_WAVES


@pytest.mark.parametrize(
    "rate",
    [
        lambda step: cosine(step % 30, 30),  # it restarts
        lambda step: max(1e-4, triangle(step, 20)),  # cyclic on purpose
        lambda step: 1 - triangle(step, 20),
        lambda step: cosine(step, 20, lowest=0.02),
        lambda step: 0.9 ** (step // 10),
        lambda step: (step * 7919 % 13) / 13,
        lambda step: 1.0,
        lambda step: cosine(min(step, 1000), 200),  # two waves, and no more
    ],
)
def test_other_schedules_are_meant_so(rate):
    assert swinging(map(rate, range(2000)))[0] is None


def test_a_fall_that_is_longer_than_the_rise_is_no_wave():
    assert swinging(cosine(step if step % 60 < 40 else 2 * step, 40) for step in range(600))[0] is None


def cycling(steps=70):
    run = Steps()
    for step in range(steps):
        run.rate = 0.1 * cosine(step)
        run.write()
    return run


def test_the_rule_says_so_once_the_waves_are_enough():
    found = [(step, at.since) for step, at in cycling().evaluate("LearningRate") if "swings" in at.title]
    assert found[0] == (61, 10)
    assert not [at for _, at in cycling(60).evaluate("LearningRate") if "swings" in at.title]
