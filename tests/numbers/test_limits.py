"""What lies at a limit, and what lies just beyond it."""

import numpy as np
import pytest

from smdebug.numbers.batches import MAX_CLASSES, MAX_ROWS, distinct_rows, label_facts
from smdebug.numbers.loss_terms import MAX_ROWS as MOST_COMPARED
from smdebug.numbers.loss_terms import broadcast_shape, loss_term
from smdebug.numbers.rank_times import WINDOW, WindowTimes, window_row, window_times
from smdebug.numbers.rows import SAMPLE_SIZE, sample_size, sampled_places

SQUARED, ABSOLUTE = "mean squared error", "mean absolute error"


@pytest.mark.parametrize(
    ("rows", "distinct"), [(1, None), (2, 2), (MAX_ROWS, MAX_ROWS), (MAX_ROWS + 1, None)]
)
def test_rows_are_compared_up_to_65536(rows, distinct):
    assert MAX_ROWS == 65_536
    assert distinct_rows(np.arange(rows, dtype=np.int32)[:, None]) == distinct


@pytest.mark.parametrize(("label", "is_class"), [(MAX_CLASSES, True), (MAX_CLASSES + 1, False)])
def test_labels_are_classes_up_to_65536(label, is_class):
    assert MAX_CLASSES == 65_536
    assert bool(label_facts(np.array([0, label]))) == is_class


@pytest.mark.parametrize(
    "targets",
    [
        np.array([[1.0, 0.0], [0.5, 0.5]]),
        np.array([[1.0, 0.0], [2.0, -1.0]]),
        np.array([[1, 0], [1, 1]]),
        np.array([[0, 0], [1, 0]]),
        np.array([0.0, np.nan]),
        np.array([0.0, 1.5]),
        np.array([3.0, np.inf]),
        np.array([1j, 1.0]),
    ],
)
def test_one_target_that_is_no_class_leaves_no_balance(targets):
    assert label_facts(targets) == {}


def test_labels_of_one_column_are_whole_numbers():
    assert label_facts(np.array([[1], [1], [0]])) == {
        "targets": 3,
        "classes_seen": 2,
        "largest_class": 1,
        "largest_share": 2 / 3,
    }
    assert label_facts(np.array([0]))["largest_share"] == 1.0


def pairs_of(rows, criterion):
    outputs = np.linspace(0, 1, rows)[:, None]
    targets = np.linspace(2, 4, rows)
    apart = outputs - targets
    loss = float(np.mean(apart**2 if criterion == SQUARED else np.abs(apart)))
    return loss, outputs, targets, criterion


@pytest.mark.parametrize("rows", [2, 64, MOST_COMPARED])
def test_as_many_rows_as_the_limit_are_compared_with_every_label(rows):
    assert broadcast_shape(*pairs_of(rows, SQUARED)) == [rows, rows]


@pytest.mark.parametrize("rows", [1, MOST_COMPARED + 1])
def test_one_row_and_more_rows_than_the_limit_are_not_compared(rows):
    assert MOST_COMPARED == 4096
    assert broadcast_shape(*pairs_of(rows, SQUARED)) is None


def test_absolute_errors_are_compared_and_other_criteria_are_not():
    outputs, targets = np.array([[0.0], [1.0], [5.0]]), np.array([0.5, 4.0, 1.0])
    loss = float(np.abs(outputs - targets).mean())
    assert broadcast_shape(loss, outputs, targets, ABSOLUTE) == [3, 3]
    assert broadcast_shape(loss, targets, outputs, ABSOLUTE) == [3, 3]
    assert broadcast_shape(loss, outputs, targets, "Huber") is None
    assert broadcast_shape(loss, outputs, None, ABSOLUTE) is None
    assert broadcast_shape(loss, outputs, targets[:2], ABSOLUTE) is None
    assert broadcast_shape(loss, outputs[:, 0], targets, ABSOLUTE) is None
    assert broadcast_shape(loss, np.float64(1), targets, ABSOLUTE) is None


@pytest.mark.parametrize(("off", "is_of_pairs"), [(0.0005, True), (0.0015, False), (-0.0015, False)])
@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_a_loss_is_that_of_all_pairs_to_a_thousandth(off, is_of_pairs, scale):
    loss, *rest = pairs_of(8, SQUARED)
    assert (broadcast_shape(scale * loss * (1 + off), *rest) is not None) == is_of_pairs
    small = 1e-3
    shrunk = [part * small for part in rest[:2]]
    found = broadcast_shape(scale * loss * small**2 * (1 + off), *shrunk, SQUARED)
    assert (found is not None) == is_of_pairs


def test_pairs_that_cost_as_much_as_rows_say_nothing():
    outputs, targets = np.zeros((4, 1)), np.ones(4)
    assert broadcast_shape(1.0, outputs, targets, SQUARED) is None


@pytest.mark.parametrize(
    ("rows", "given"),
    [
        ([[0.5, 0.5], [1.0, 0.0]], "softmax"),
        ([[0.5004, 0.5], [1.0, 0.0]], "softmax"),
        ([[0.5018, 0.5], [1.0, 0.0]], ""),
        ([[1.5, -0.5], [0.5, 0.5]], ""),
        ([[0.5, 0.5]], ""),
        ([[0.5, 0.5], [np.nan, 0.5]], ""),
        ([[0.0, -np.inf], [np.log(0.5), np.log(0.5)]], "log-softmax"),
        ([[0.1, -2.3538784], [np.log(0.5), np.log(0.5)]], ""),
        ([[np.log(0.5018), np.log(0.5)], [np.log(0.5), np.log(0.5)]], ""),
        (np.array([[0.5, 0.5]] * 2, np.complex64), ""),
        (np.array([["a", "b"]] * 2), ""),
        (np.full((2, 2, 2), 0.5), "softmax"),
        (np.ones((2, 1)), ""),
    ],
)
def test_probabilities_are_known_by_their_sums(rows, given):
    assert loss_term(np.array(rows), None, "cross entropy")["given"] == given


@pytest.mark.parametrize(
    ("predictions", "classes"), [(np.zeros(4), 1), (np.zeros((4, 1)), 1), (np.zeros((4, 5, 3)), 3)]
)
def test_the_last_axis_has_the_classes(predictions, classes):
    assert loss_term(predictions, None, "Huber") == {"criterion": "Huber", "given": "", "classes": classes}


def test_sizes_of_samples_divide_256_kilobytes():
    assert [sample_size(tensors) for tensors in (0, 1, 512, 513, 32_768, 65_536, 65_537)] == [
        *[SAMPLE_SIZE] * 3,
        127,
        2,
        1,
        1,
    ]
    assert SAMPLE_SIZE == 128


def test_the_places_of_a_sample_are_the_same_in_every_version():
    """Samples of different steps and runs are compared value by value."""
    assert sampled_places(8, 8).tolist() == list(range(8))
    assert sampled_places(1000, 8).tolist() == [0, 202, 279, 481, 559, 636, 838, 915]
    assert sampled_places(9, 8).tolist() == [0, 1, 2, 3, 4, 5, 6, 7]


STEPS = [[1.0, 2.0, 4.0, 8.0], [1.5, 2.5, 4.5, 8.5], [100.0, 200.0, 400.0, 800.0]]
ROW = [20, 3, 3, 17.0, 12.5, 10.0, 1.5, 2.5, 4.5, 8.5]


def test_a_window_has_the_medians_of_its_steps():
    assert WINDOW == 10
    assert window_row(20, 3, STEPS) == ROW
    times = window_times(ROW)
    assert times == WindowTimes(20, 3, 3, 17.0, 12.5, 10.0, 1.5, 2.5, 4.5, 8.5)
    assert (times.total, times.outside_backward, times.outside_passes) == (17.0, 12.5, 10.0)
    assert window_row(0, 0, [[1.23456, 0.0, 0.0, 0.0]])[3] == 1.235


@pytest.mark.parametrize(
    "row",
    [
        None,
        tuple(ROW),
        ROW[:-1],
        [*ROW, 1.0],
        [20.0, *ROW[1:]],
        [True, *ROW[1:]],
        [*ROW[:2], 3.0, *ROW[3:]],
        [*ROW[:-1], -0.5],
        [*ROW[:-1], 1e9],
        [*ROW[:3], float("nan"), *ROW[4:]],
        [*ROW[:3], "17", *ROW[4:]],
    ],
)
def test_a_row_of_another_form_has_no_times(row):
    assert window_times(row) is None


def test_times_may_be_nothing_or_very_long():
    assert window_times([*ROW[:-1], 0]).update == 0
    assert window_times([*ROW[:-1], 9e8]).update == 9e8
