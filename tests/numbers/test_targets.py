"""Facts of the targets of a loss."""

import numpy as np
import pytest

from smdebug.numbers.targets import MAX_COLUMNS, MAX_COUNTED, class_facts, constant_cost, number_facts


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
