"""Rows of a scalar, in order."""

from __future__ import annotations

import numpy as np

from smdebug.mode_keys import ModeKeys
from smdebug.trials.observations.series import in_order

TRAIN, EVAL = ModeKeys.TRAIN.value, ModeKeys.EVAL.value


def test_of_several_rows_of_a_step_in_a_mode_the_last_one_counts():
    rows = np.array([(1, TRAIN, 1, 5.0), (0, TRAIN, 0, 4.0), (1, TRAIN, 1, 3.0)])
    series = in_order("loss", rows)
    assert (series.steps.tolist(), series.values.tolist()) == ([0, 1], [4.0, 3.0])


def test_a_step_of_training_and_one_of_validation_may_have_the_same_number():
    rows = np.array([(1, EVAL, 1, 5.0), (1, TRAIN, 1, 3.0), (0, TRAIN, 0, 4.0)])
    series = in_order("loss", rows)
    assert list(zip(series.steps.tolist(), series.modes, strict=True)) == [
        (0, ModeKeys.TRAIN),
        (1, ModeKeys.TRAIN),
        (1, ModeKeys.EVAL),
    ]
    assert series.of(ModeKeys.EVAL).values.tolist() == [5.0]


def test_of_an_evaluation_with_one_number_for_its_batches_the_mean_counts():
    rows = np.array(
        [(1, EVAL, 0, 5.0), (1, EVAL, 1, 3.0), (1, EVAL, 1, 4.0), (2, EVAL, 2, 0.1), (1, TRAIN, 1, 9.0)]
    )
    series = in_order("loss", rows)
    assert series.of(ModeKeys.EVAL).values.tolist() == [4.5, 0.1]
    assert series.of(ModeKeys.EVAL).mode_steps.tolist() == [1, 2]
    assert series.of(ModeKeys.TRAIN).values.tolist() == [9.0]


def test_no_rows_are_no_values():
    assert len(in_order("loss", np.empty((0, 4)))) == 0
