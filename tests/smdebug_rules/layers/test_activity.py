from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from smdebug_rules.layers.activity import activity, activity_by_reductions


def test_a_unit_is_a_position_behind_the_first_axis():
    value = np.zeros((4, 2, 3), np.float32)
    value[0, 1, 2] = 1
    assert activity(value, 0, math.inf, 1) == (6, 5)
    assert activity(value, 0, math.inf, 25) == (6, 5)  # active in exactly 25 % of the samples
    assert activity(value, 0, math.inf, 25.1) == (6, 6)


def test_a_channel_has_all_of_its_positions_as_samples():
    value = np.zeros((2, 3, 4, 4), np.float32)
    value[:, 1, 0, 0] = 1
    assert activity(value, 0, math.inf, 1, channel=1) == (3, 2)
    assert activity(value[:, :, 0, 0], 0, math.inf, 1, channel=1) == (3, 2)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64, np.int8])
def test_every_type_is_checked_alike(dtype):
    value = np.array([[-1, 5], [-2, 6], [-3, 60]], dtype=dtype)
    assert activity(value, 0, math.inf, 1) == (2, 1)
    assert activity(value, -9, 9, 1) == (2, 0)


def test_the_limits_themselves_are_outside():
    value = np.array([[-9.0, -8.9, 8.9, 9.0]] * 3, np.float32)
    assert activity(value, -9, 9, 1) == (4, 2)


def test_what_is_not_a_number_counts_as_active():
    assert activity(np.full((3, 2), np.nan, np.float32), -1, 1, 1) == (2, 0)


def test_extremes_prove_that_all_units_are_alike_or_nothing():
    def all_alike(least, most, above=-9, below=9):
        return activity_by_reductions({("min", False): least, ("max", False): most}, above, below)

    assert [all_alike(10, 20), all_alike(-20, -10), all_alike(-1, 1), all_alike(-1, 20)] == [
        100,
        100,
        0,
        None,
    ]
    assert all_alike(0, 0, 0, math.inf) == 100
    assert all_alike(1, 5, 0, math.inf) == 0
    assert activity_by_reductions({}, 0, 1) is None
