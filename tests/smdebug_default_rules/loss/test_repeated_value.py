"""Forecasts that are no better than the last value of their inputs."""

from __future__ import annotations

import numpy as np
import pytest

from tests.smdebug_default_rules.made_steps import Steps

TERM = {
    "criterion": "mean squared error",
    "rows": 32,
    "reduction": "mean",
    "of_a_layer": True,
    "target_rows": 32,
    "columns": 1,
    "means": [0.0],
}


def forecast(
    level: float, *, repeated: float | None = 0.5, variance: float = 2.0, falls_to: float | None = None
) -> list[str]:
    """Write a regression that falls to a level, or further, and return the titles of what is found."""
    run = Steps()
    losses = np.r_[np.linspace(3, level, 60), np.linspace(level, falls_to or level, 400)]
    for step, loss in enumerate(losses + 0.02 * np.random.default_rng(0).normal(size=460)):
        if step >= 10 and step % 10:
            run.skip(float(loss))
            continue
        facts = {"variances": [variance]} | ({} if repeated is None else {"repeated": repeated})
        run.facts["loss"] = {"factor": 1.0, "broadcast": None, "value": float(loss), "terms": [TERM | facts]}
        run.losses(float(loss))
    return sorted({finding.title for _, finding in run.evaluate("StuckLoss")})


FOUND = ["The forecast is no better than the last value"]


@pytest.mark.parametrize(("level", "found"), [(0.5, FOUND), (0.55, FOUND), (0.4, []), (0.9, [])])
def test_a_loss_near_that_of_the_last_value_is_reported(level, found):
    assert forecast(level) == found


def test_a_loss_that_still_falls_is_left_alone():
    assert forecast(0.6, falls_to=0.5) == []


def test_a_last_value_that_says_little_of_the_target_is_no_forecast():
    assert forecast(0.5, variance=0.6) == []


def test_without_a_sequence_nothing_is_compared():
    assert forecast(0.5, repeated=None) == []
