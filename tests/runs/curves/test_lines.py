"""Training and validation apart."""

from __future__ import annotations

import numpy as np

from smdebug.mode_keys import ModeKeys
from smdebug.runs.curves.lines import lines_of

TRAIN, EVAL, GLOBAL = ModeKeys.TRAIN.value, ModeKeys.EVAL.value, ModeKeys.GLOBAL.value


def rows(*parts):
    """Return rows of consecutive steps: (mode, value) each."""
    counts = {TRAIN: -1, EVAL: -1, GLOBAL: -1}
    found = []
    for step, (mode, value) in enumerate(parts):
        counts[mode] += 1
        found.append((step, mode, counts[mode], value))
    return np.array(found, np.float64)


def test_a_point_of_validation_is_the_mean_of_one_evaluation():
    training, validation = lines_of(
        rows((TRAIN, 4.0), (TRAIN, 3.0), (EVAL, 1.0), (EVAL, 2.0), (TRAIN, 2.0), (EVAL, 1.0))
    )
    assert (training.label, validation.label) == ("training", "validation")
    assert training.training_steps.tolist() == [0, 1, 2]
    assert validation.training_steps.tolist() == [1, 2]
    assert validation.values.tolist() == [1.5, 1.0]
    assert (validation.first.tolist(), validation.last.tolist()) == ([2, 5], [3, 5])


def test_the_lowest_value_has_its_training_step():
    training, validation = lines_of(
        rows((TRAIN, 4.0), (EVAL, 0.5), (TRAIN, 3.0), (EVAL, 2.0), (TRAIN, np.nan))
    )
    assert training.lowest == (3.0, 1)
    assert validation.lowest == (0.5, 0)
    assert validation.in_words() == "2 after training step 1, lowest 0.5 after training step 0"


def test_a_line_without_finite_values_has_no_lowest():
    (line,) = lines_of(rows((TRAIN, np.nan)))
    assert line.lowest is None


def test_the_last_row_of_a_step_counts():
    (line,) = lines_of(np.array([[0, TRAIN, 0, 3.0], [0, TRAIN, 0, 2.0]]))
    assert line.values.tolist() == [2.0]


def test_a_run_without_modes_has_no_lines():
    assert lines_of(rows((GLOBAL, 1.0))) == []


def test_an_evaluation_may_have_the_number_of_the_training_step_before_it():
    training, validation = lines_of(
        np.array(
            [
                *[(step, TRAIN, step, 4.0 - step) for step in range(3)],
                *[(1, EVAL, own, value) for own, value in enumerate((2.0, 3.0))],
                (2, EVAL, 2, 1.0),
            ]
        )
    )
    assert training.values.tolist() == [4.0, 3.0, 2.0]
    assert validation.values.tolist() == [2.5, 1.0]
    assert validation.training_steps.tolist() == [1, 2]
