from __future__ import annotations

import numpy as np
import pytest

from smdebug_rules.labels.classes import ClassesUnknown, classes_of, label_row


def class_lists(labels, predictions, argmax=False):
    found = classes_of(np.array(labels), np.array(predictions), argmax)
    return found.labels.tolist(), found.predictions.tolist()


def test_scores_probabilities_and_columns_become_classes():
    assert class_lists([0, 1], [1.0, 1.0]) == ([0, 1], [1, 1])
    assert class_lists([0.0, 1.0], [0.2, 0.5]) == ([0, 1], [0, 1])
    assert class_lists([[0], [2]], [[0.1, 0.2, 0.7], [0.9, 0.1, 0]]) == ([0, 2], [2, 0])
    assert class_lists([0, 1], [[3, 1], [1, 3]], argmax=True) == ([0, 1], [0, 1])
    assert class_lists([[1, 0], [0, 1]], [1, 1]) == ([0, 1], [1, 1])


@pytest.mark.parametrize(
    ("labels", "predictions"),
    [
        ([0, 1], [1]),
        ([0.5, 1], [1, 1]),
        (["a"], ["b"]),
        ([0, 1], [np.nan, 1]),
        ([0], [[]]),
        ([0, 1], [[0.9, 0.1], [np.nan, np.nan]]),
        ([1j], [1]),
    ],
)
def test_what_are_not_classes_are_none(labels, predictions):
    with pytest.raises(ClassesUnknown):
        class_lists(labels, predictions)


def test_half_precision_labels_are_labels():
    assert label_row(np.array([0, 1, 2], np.float16)).tolist() == [0, 1, 2]
