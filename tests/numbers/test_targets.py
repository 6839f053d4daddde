"""Facts of the targets of a loss."""

import numpy as np
import pytest

from smdebug.numbers.targets import (
    MAX_COLUMNS,
    MAX_COMPARED,
    MAX_COUNTED,
    class_facts,
    constant_cost,
    error_between,
    number_facts,
    weight_facts,
)


def test_labels_are_counted_without_those_that_the_criterion_ignores():
    facts = class_facts(np.array([[0, 2, 2], [-100, 5, 5]]), ignored=5)
    assert facts["counts"] == [[0, 1], [2, 2]]
    assert (facts["targets"], facts["largest_class"], facts["classes_seen"]) == (3, 2, 2)
    assert facts["ignored"] == 0.5
    assert facts["changes"] == 0.5  # 0 2 2


def test_labels_that_are_all_ignored_have_no_classes():
    assert class_facts(np.full(4, -100)) == {"ignored": 1.0}


def test_a_class_that_is_ignored_is_named_and_a_number_that_none_has_is_not():
    labels = np.array([0, 1, 2, 2])
    assert class_facts(labels, ignored=2)["ignored_class"] == 2
    assert "ignored_class" not in class_facts(labels, ignored=-100)
    assert "ignored_class" not in class_facts(labels)


def test_counts_of_many_classes_are_not_listed():
    assert len(class_facts(np.arange(MAX_COUNTED))["counts"]) == MAX_COUNTED
    assert "counts" not in class_facts(np.arange(MAX_COUNTED + 1))


def test_numbers_have_a_mean_and_a_variance_for_each_column():
    facts = number_facts(np.array([[1.0, 10.0], [3.0, 10.0]], np.float32))
    assert (facts["means"], facts["variances"]) == ([2.0, 10.0], [1.0, 0.0])
    assert (facts["lowest"], facts["highest"], facts["target_rows"]) == (1.0, 10.0, 2)


@pytest.mark.parametrize(("values", "ascending", "changes"), [([1, 2, 3], 1.0, 1.0), ([3, 3, 1], 0.5, 0.5)])
def test_the_order_of_a_single_column_is_a_fact(values, ascending, changes):
    facts = number_facts(np.array(values, np.float32))
    assert (facts["ascending"], facts["changes"]) == (ascending, changes)


def test_columns_are_listed_up_to_a_number_and_only_if_all_values_are_finite():
    assert "means" in number_facts(np.zeros((2, MAX_COLUMNS)))
    assert "means" not in number_facts(np.zeros((2, MAX_COLUMNS + 1)))
    assert number_facts(np.array([1.0, np.nan])) == {"target_rows": 2, "columns": 1}
    assert number_facts(np.zeros((0, 2))) == {}


@pytest.mark.parametrize(("knee", "scale"), [(0.0, 1.0), (0.5, 1.0), (2.0, 2.0)])
def test_the_cost_of_a_constant_is_the_lowest_error_of_any(knee, scale):
    targets = np.random.default_rng(0).exponential(size=(501, 2))

    def cost(constant):
        apart = np.abs(targets - constant)
        small = apart**2 / (2 * knee) if knee else apart
        return scale * np.where(apart < knee, small, apart - knee / 2).mean(0)

    best = np.min([cost(constant) for constant in np.linspace(0, 3, 301)], axis=0).mean()
    assert constant_cost(targets, knee, scale) == pytest.approx(best, rel=0.02)


def test_targets_that_are_not_finite_cost_nothing_that_is_known():
    assert constant_cost(np.array([1.0, np.nan])) is None


def test_a_single_label_and_labels_that_begin_with_zero_are_counted():
    assert class_facts(np.array([0])) == {
        "ignored": 0.0,
        "targets": 1,
        "classes_seen": 1,
        "largest_class": 0,
        "largest_share": 1.0,
        "counts": [[0, 1]],
    }
    assert class_facts(np.array([1, 0, 0]), ignored=0)["counts"] == [[1, 1]]
    assert class_facts(np.array([1, 0, 0]), ignored=0)["ignored_class"] == 0
    assert class_facts(np.zeros(0, int)) == {"ignored": 0.0}


def test_shares_have_six_digits():
    facts = class_facts(np.array([0, 0, 0, 1, -1, -1, -1]))
    assert (facts["changes"], facts["ignored"]) == (0.333333, 0.428571)
    assert number_facts(np.array([1.0, 2.0, 1.0, 1.0]))["ascending"] == 0.666667


def test_targets_of_any_shape_have_rows_and_columns():
    assert number_facts(np.array(3.0)) == {
        "target_rows": 1,
        "columns": 1,
        "lowest": 3.0,
        "highest": 3.0,
        "means": [3.0],
        "variances": [0.0],
    }
    cube = number_facts(np.arange(12.0).reshape(2, 3, 2))
    assert (cube["target_rows"], cube["columns"], cube["means"]) == (2, 6, [3.0, 4.0, 5.0, 6.0, 7.0, 8.0])
    assert "changes" not in cube
    assert "changes" not in number_facts(np.array([[1.0, 2.0], [3.0, 4.0]]))
    assert (MAX_COLUMNS, MAX_COUNTED, MAX_COMPARED) == (64, 128, 8192)
    assert number_facts(np.array([1.0, -np.inf])) == {"target_rows": 2, "columns": 1}


POSITIVES = np.array([[1, 0], [1, 1], [1, 0]])


@pytest.mark.parametrize(
    ("weights", "targets", "facts"),
    [
        ([2.5], [1, 0, 0, 1, 1], {"weights": [2.5], "positives": [3], "labels": 5}),
        (2.5, [1, 0, 0], {"weights": [2.5], "positives": [1], "labels": 3}),
        ([2.5], POSITIVES, {"weights": [2.5], "positives": [4], "labels": 6}),
        ([2.0, 3.0], POSITIVES, {"weights": [2.0, 3.0], "positives": [3, 1], "labels": 3}),
        ([2.0, 3.0], [1, 0], {}),
        ([[2.0, 3.0]], POSITIVES, {}),
        ([2.0, 3.0, 4.0], POSITIVES, {}),
        ([2.0], [], {}),
        ([2.0], [1, 2], {}),
        ([2.0], [1, 0.5], {}),
    ],
)
def test_weights_of_positives_stand_beside_their_counts(weights, targets, facts):
    assert weight_facts(np.array(weights), np.array(targets)) == facts


def test_a_constant_is_the_median_or_the_mean_whichever_costs_less():
    targets = np.array([0.0, 0.0, 3.0])
    assert constant_cost(targets) == 1.0
    assert constant_cost(targets, scale=2.0) == 2.0
    assert constant_cost(targets, knee=100.0) == pytest.approx(2 / 200)
    assert constant_cost(np.array(5.0)) == 0.0
    assert constant_cost(np.zeros((0, 2))) is None
    assert constant_cost(np.array([[0.0, 0.0], [2.0, 4.0]])) == 1.5


def test_of_many_targets_rows_at_even_distances_count():
    targets = np.zeros(2 * MAX_COMPARED)
    targets[1::2] = 7.0
    assert constant_cost(targets) == 0.0
    assert constant_cost(targets[: MAX_COMPARED + 1]) == pytest.approx(3.5, abs=1e-2)
    assert constant_cost(np.stack([targets[:MAX_COMPARED]] * 2, axis=1)) == 0.0


@pytest.mark.parametrize(
    ("knee", "scale", "error"),
    [
        (None, 1.0, 5.0),
        (None, 3.0, 5.0),
        (0.0, 1.0, 2.0),
        (0.0, 3.0, 6.0),
        (1.0, 1.0, 1.5),
        (2.0, 1.0, 1.125),
    ],
)
def test_errors_are_squared_or_absolute_beyond_a_knee(knee, scale, error):
    assert error_between(np.array([[1.0], [5.0]]), np.array([2.0, 2.0]), knee, scale) == error
    assert error_between(np.array([2.0, 2.0]), np.array([1.0, 5.0]), knee, scale) == error


def test_an_error_that_is_not_finite_is_none():
    assert error_between(np.array([1.0, np.nan]), np.array([1.0, 2.0]), None) is None
    assert error_between(np.zeros(0), np.zeros(0), 0.0) is None
    assert error_between(np.array([1, 3]), np.array([2, 2]), 0.0) == 1.0
