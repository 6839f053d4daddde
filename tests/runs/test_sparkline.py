from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smdebug.runs.sparkline import BLOCKS, NOT_FINITE, sparkline


def test_a_falling_loss_falls():
    assert sparkline([8, 7, 6, 5, 4, 3, 2, 1], 8) == "█▇▆▅▄▃▂▁"


def test_a_spike_of_one_step_in_a_hundred_thousand_stands_out():
    values = [1.0] * 100_000
    values[70_123] = 40.0
    curve = sparkline(values, 24)
    assert (curve.count("█"), curve.index("█"), len(curve)) == (1, 16, 24)


def test_a_value_that_is_not_finite_is_marked():
    assert sparkline([1.0, math.nan, 2.0, math.inf], 4) == "▁!█!"


def test_values_that_are_far_apart_are_drawn_on_a_logarithmic_scale():
    assert len(set(sparkline([10.0**-at for at in range(8)], 8))) == 8


@pytest.mark.parametrize(("values", "width", "expected"), [([], 9, ""), ([1.0], 0, ""), ([3.0], 9, "▁")])
def test_little_to_draw(values, width, expected):
    assert sparkline(values, width) == expected


@given(st.lists(st.floats(), max_size=200), st.integers(-3, 60))
def test_any_values_fit(values, width):
    curve = sparkline(values, width)
    assert len(curve) == max(0, min(width, len(values)))
    assert set(curve) <= {*BLOCKS, NOT_FINITE}
