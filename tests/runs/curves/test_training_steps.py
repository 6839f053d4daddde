"""Which training step a step of the run belongs to."""

from __future__ import annotations

import numpy as np

from smdebug.runs.curves.training_steps import TrainingSteps

# Ten training steps, an evaluation of three batches, ten training steps, another evaluation.
TRAINING = np.array([*range(10), *range(13, 23)])


def clock_of(steps=TRAINING):
    clock = TrainingSteps()
    clock.note(steps, np.arange(len(steps)))
    return clock


def test_an_evaluation_belongs_to_the_training_step_before_it():
    assert clock_of().of(np.array([9, 10, 12, 13, 22, 23, 30])).tolist() == [9, 9, 9, 10, 19, 19, 19]


def test_an_evaluation_before_training_belongs_to_its_first_step():
    assert clock_of(np.arange(4, 10)).of(np.array([0, 3, 4, 9])).tolist() == [0, 0, 0, 5]


def test_without_training_every_step_counts():
    assert TrainingSteps().of(np.array([0, 7])).tolist() == [0, 7]
    assert TrainingSteps().knots(10) == []


def test_training_alone_needs_no_knots():
    assert clock_of(np.arange(5)).knots(10) == []


def test_knots_join_the_axes():
    assert clock_of().knots(10) == [(0, 0), (9, 9), (13, 10), (22, 19)]


def test_what_is_read_in_parts_and_out_of_order_is_the_same():
    late, early = TrainingSteps(), TrainingSteps()
    late.note(TRAINING[12:], np.arange(12, 20))
    early.note(TRAINING[:12], np.arange(12))
    late.extend(early)
    assert late.to_list() == clock_of().to_list()
    assert TrainingSteps(*late.to_list()).knots(10) == clock_of().knots(10)
