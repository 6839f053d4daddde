"""Facts of a batch."""

import numpy as np
import pytest

from smdebug.numbers.batches import (
    MOST_DIGESTS,
    batch_facts,
    digests_of,
    distinct_rows,
    label_facts,
    row_digests,
)


@pytest.mark.parametrize(
    ("batch", "expected"),
    [
        (np.arange(6).reshape(3, 2), 3),
        (np.array([[1.0, 2.0], [1.0, 2.0], [2.0, 1.0]]), 2),
        (np.zeros((4, 3, 2), np.float16), 1),
        (np.array([[1, 2], [3, 4]]).T[:, ::-1], 2),
        (np.zeros((1, 3)), None),
        (np.zeros((0, 3)), None),
        (np.zeros((3, 0)), None),
        (np.float32(1.0).reshape(()), None),
        (np.array([["a"], ["b"]]), None),
    ],
)
def test_rows_that_are_the_same_count_once(batch, expected):
    assert distinct_rows(batch) == expected


def test_the_first_input_with_rows_is_compared_and_every_shape_is_told():
    facts = batch_facts([np.float64(1.0).reshape(()), np.ones((2, 3)), np.ones(2)])
    assert facts == {"shapes": [[], [2, 3], [2]], "distinct_rows": 1}
    assert batch_facts([]) == {}


@pytest.mark.parametrize(
    ("labels", "seen", "largest", "share"),
    [
        (np.array([0, 1, 1, 1]), 2, 1, 0.75),
        (np.array([[0.0], [2.0]]), 2, 0, 0.5),
        (np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]), 2, 1, 2 / 3),
        (np.array([True, True]), 1, 1, 1.0),
    ],
)
def test_labels_are_whole_numbers_or_rows_with_a_single_1(labels, seen, largest, share):
    facts = label_facts(labels)
    assert facts["targets"] == len(labels)
    assert (facts["classes_seen"], facts["largest_class"]) == (seen, largest)
    assert facts["largest_share"] == pytest.approx(share)


@pytest.mark.parametrize(
    "targets",
    [
        np.array([0.5, 1.0]),
        np.array([-1, 0]),
        np.array([np.nan, 1.0]),
        np.array([1e9, 0.0]),
        np.array([[0.2, 0.8], [0.5, 0.5]]),
        np.zeros(0),
        np.array(["a"]),
    ],
)
def test_targets_of_a_regression_have_no_balance(targets):
    assert label_facts(targets) == {}


def test_equal_rows_have_equal_digests_and_the_smallest_of_many_are_kept():
    rows = np.random.default_rng(0).normal(size=200)
    kept = digests_of(row_digests(rows))
    assert kept == sorted(kept)
    assert len(kept) == MOST_DIGESTS
    assert digests_of(row_digests(rows[::-1])) == kept
    single = {digest for row in rows for digest in digests_of(row_digests(np.array([row])))}
    assert kept == sorted(single)[:MOST_DIGESTS]


def test_rows_that_are_not_finite_have_no_digest():
    assert row_digests(np.array([np.nan, np.inf])) is None
    assert len(digests_of(row_digests(np.array([np.nan, 1.0])))) == 1


@pytest.mark.parametrize("damaged", ["no base64!", "AAA", 7])
def test_damaged_digests_are_none(damaged):
    assert digests_of(damaged) == []


def test_the_digest_of_a_row_is_the_same_in_every_version():
    """Rows of one step are sought in other steps, and in other runs."""
    text = row_digests(np.array([1.0, 2.5, -3.0, 0.1]))
    assert text == "ffU3Jf+I9FW9Xd7AXf1K0Q=="
    assert digests_of(text) == [624424317, 1442089215, 3235798461, 3511352669]
    assert row_digests(np.array([])) is None


def test_eight_shapes_are_told():
    assert len(batch_facts([np.ones((2, 3))] * 9)["shapes"]) == 8
    assert batch_facts([np.float64(1.0)]) == {}
