"""Gradients that are clipped while they are scaled: what is left of them is the limit over the scale."""

from __future__ import annotations

import numpy as np
import pytest

from tests.smdebug_default_rules.made_steps import Steps


def clipped(*norms, scale=65536.0, steps=True):
    """Steps whose gradients have these norms, taken together."""
    run = Steps()
    for number, norm in enumerate(norms):
        gradients = run.kinds["gradients"]
        now = np.sqrt(sum(float(np.square(value).sum()) for value in gradients.values()))
        gradients.update(
            {name: (value * (norm / now)).astype(np.float32) for name, value in gradients.items()}
        )
        run.facts.update(loss_scale=scale if np.isscalar(scale) else scale[number], optimizer_steps=steps)
        run.write()
    return run


def found(*norms, **facts):
    return [(step, at.since) for step, at in clipped(*norms, **facts).evaluate("LossScale")]


@pytest.mark.parametrize("limit", [1.0, 0.5, 2.5, 10.0])
def test_a_norm_that_is_the_limit_over_the_scale_is_reported_at_the_fifth_step(limit):
    assert found(*[limit / 65536] * 6) == [(4, 0), (5, 0)]


def test_a_norm_that_falls_as_the_scale_grows_is_the_same_limit():
    assert found(*[1 / 1024] * 3, *[1 / 2048] * 3, scale=[1024.0] * 3 + [2048.0] * 3) == [(4, 0), (5, 0)]


@pytest.mark.parametrize(
    ("norms", "facts"),
    [
        ([1.0] * 8, {}),  # clipped once they were unscaled
        ([1e-3] * 8, {"scale": 1000.0}),  # to little, on purpose
        ([1 / 65536] * 4, {}),
        ([1 / 65536, 1 / 65536 * 1.01] * 4, {}),
        ([1.37 / 65536] * 8, {}),  # no limit that a person would write
        ([1 / 65536] * 8, {"steps": False}),
        ([1 / 1024] * 3 + [2 / 1024] + [1 / 1024] * 3, {"scale": 1024.0}),
    ],
)
def test_other_norms_are_left_alone(norms, facts):
    assert found(*norms, **facts) == []
