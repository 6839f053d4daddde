"""Levels, spreads and trends that a single outlier does not change."""

import math

import numpy as np
import pytest

from smdebug.rules import robust


def test_the_median_and_the_spread_ignore_what_is_not_finite():
    values = [1.0, 2.0, math.nan, 3.0, math.inf]
    assert robust.median(values) == 2
    assert robust.mad(values) == pytest.approx(1.4826)
    assert math.isnan(robust.median([]))
    assert math.isnan(robust.mad([math.nan]))


def test_the_spread_of_normal_values_is_their_standard_deviation():
    values = np.random.default_rng(0).normal(5, 2, 20_000)
    assert robust.mad(values) == pytest.approx(2, rel=0.03)


def test_an_outlier_has_a_score_against_its_past_and_none_without_one():
    past = [1.0, 1.1, 0.9, 1.05, 0.95]
    assert robust.outlier_score(1.0, past) == pytest.approx(0)
    assert robust.outlier_score(3.0, past) > 10
    assert robust.outlier_score(3.0, past[:4]) == 0
    assert robust.outlier_score(2.0, [1.0] * 9) == pytest.approx(1000)


def test_the_best_so_far_counts_the_checks_since():
    assert robust.best_so_far([0, 1, 2, 3], [3.0, 1.0, 2.0, math.nan]) == (1.0, 1, 2)
    assert robust.best_so_far([0, 1], [1.0, 0.999], min_improvement=0.01) == (1.0, 0, 1)
    assert robust.best_so_far([], []) is None


def test_a_change_of_level_is_found_where_it_begins_and_a_spike_is_none():
    change = robust.change_point([1, 1.1, 0.9, 1, 4, 4.1, 3.9])
    assert (change.place, change.before, change.after) == (4, 1.0, 4.0)
    assert robust.change_point([1, 1, 1, 9, 1, 1, 1]) is None
    assert robust.change_point([1, 2]) is None


def test_the_fall_of_a_series_is_from_median_to_median():
    assert robust.fall([2.0] * 20 + [1.0] * 20) == pytest.approx(0.5)
    assert math.isnan(robust.fall([1.0] * 39))


def test_remembered_values_are_the_last_ones():
    past = [1.0, 2.0]
    robust.remember(past, [3, 4], keep=3)
    assert past == [2.0, 3.0, 4.0]
