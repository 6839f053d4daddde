"""Where epochs begin, the axis that they make, and the mean of a scalar in each."""

from __future__ import annotations

import numpy as np
import pytest

from smdebug.runs.curves.epochs import epochs_of
from smdebug.runs.curves.training_steps import TrainingSteps


def epochs_at(*begins, last):
    return epochs_of(np.array(begins), np.arange(len(begins), dtype=float), TrainingSteps(), last)


def test_an_axis_of_epochs_goes_through_their_beginnings_to_the_last_step():
    assert epochs_at(0, 10, 20, last=29).knots(100) == [(0, 0.0), (10, 1.0), (20, 2.0), (30, 3.0)]


def test_an_epoch_that_is_not_over_is_expected_to_be_as_long_as_the_one_before():
    assert epochs_at(0, 10, last=14).knots(100)[-1] == (15, 1.5)


def test_one_epoch_or_none_makes_no_axis_and_says_so():
    assert epochs_at(0, last=9).missing == "one epoch so far"
    assert epochs_at(last=9).missing == "no epochs are recorded"
    assert epochs_at(0, last=9).knots(100) == epochs_at(last=9).knots(100) == []


def test_epochs_begin_where_a_series_of_every_step_rises():
    values = np.array([1, 1, 1, 2, 2, 2, 3], float)
    assert epochs_of(np.arange(7), values, TrainingSteps(), 6).begins.tolist() == [0, 3, 6]


def test_steps_of_evaluations_are_no_part_of_an_epoch():
    clock = TrainingSteps()  # training, an evaluation of two steps, training
    clock.note(np.array([0, 1, 2, 3]), np.array([0, 1, 2, 3]))
    clock.note(np.array([6, 7, 8, 9]), np.array([4, 5, 6, 7]))
    epochs = epochs_of(np.array([0, 6]), np.array([0.0, 1.0]), clock, 9)
    assert epochs.knots(100) == [(0, 0.0), (4, 1.0), (8, 2.0)]


def test_the_mean_of_an_epoch_leaves_out_what_is_not_finite():
    epochs = epochs_at(0, 2, 4, last=5)
    values = np.array([1.0, 3.0, np.nan, 5.0, np.inf, np.nan])
    assert epochs.means(np.arange(6), values, 100) == [(1, 2.0), (2, 5.0), (3, None)]


def test_of_many_epochs_some_means_are_kept_with_the_first_and_the_last():
    epochs = epochs_at(*range(100), last=99)
    kept = epochs.means(np.arange(100), np.arange(100.0), 5)
    assert len(kept) == 5
    assert [kept[0], kept[-1]] == [(1, 0.0), (100, 99.0)]


@pytest.mark.parametrize(("step", "epoch"), [(0, 1), (9, 1), (10, 2), (99, 3)])
def test_a_training_step_is_in_an_epoch(step, epoch):
    assert epochs_at(0, 10, 20, last=29).of(np.array([step])).tolist() == [epoch]
