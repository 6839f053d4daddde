"""What is known of a loss from what its criterion was given."""

import functools

import numpy as np
import pytest

from smdebug.numbers.loss_terms import broadcast_shape, criterion_name, loss_term

LOGITS = np.random.default_rng(0).normal(size=(16, 3))
SOFTMAX = np.exp(LOGITS) / np.exp(LOGITS).sum(axis=1, keepdims=True)


def softmax_cross_entropy_with_integer_labels(logits, labels):
    """As Optax names it."""


class MSELoss:
    """As PyTorch names it."""


@pytest.mark.parametrize(
    ("criterion", "name"),
    [
        (softmax_cross_entropy_with_integer_labels, "cross entropy"),
        (functools.partial(softmax_cross_entropy_with_integer_labels), "cross entropy"),
        ("SparseCategoricalCrossentropy", "cross entropy"),
        ("sigmoid_binary_cross_entropy", "binary cross entropy with logits"),
        (MSELoss(), "mean squared error"),
        ("l2_loss", "mean squared error"),
        ("huber_loss", "Huber"),
        ("my_own_loss", "my own loss"),
        ("cross entropy", "cross entropy"),
        (None, ""),
    ],
)
def test_criteria_have_names_whatever_their_library_calls_them(criterion, name):
    assert criterion_name(criterion) == name


@pytest.mark.parametrize(
    ("predictions", "given"),
    [
        (LOGITS, ""),
        (SOFTMAX, "softmax"),
        (np.log(SOFTMAX), "log-softmax"),
        (np.float16(SOFTMAX), "softmax"),
        (np.abs(LOGITS), ""),
        (SOFTMAX[:1], ""),
        (SOFTMAX[:, :1], ""),
        (np.full((4, 2), np.nan), ""),
        (np.zeros((0, 3)), ""),
        (np.float64(1), ""),
    ],
)
def test_rows_that_sum_to_one_are_probabilities(predictions, given):
    assert loss_term(predictions, None, "cross entropy")["given"] == given


def test_labels_of_a_classification_have_a_balance_and_those_of_a_regression_none():
    labels = np.array([0, 0, 0, 1] * 4)
    term = loss_term(LOGITS, labels, "cross entropy")
    assert (term["classes"], term["targets"], term["largest_share"]) == (3, 16, 0.75)
    assert "targets" not in loss_term(LOGITS[:, :1], labels, "mean squared error")


@pytest.mark.parametrize("half", [1, 0.5])
def test_a_loss_over_all_pairs_is_distinguished_from_one_over_rows_by_its_value(half):
    outputs, targets = LOGITS[:, :1], LOGITS[:, 1]
    pairs = half * np.mean((outputs - targets) ** 2)
    rows = half * np.mean((outputs[:, 0] - targets) ** 2)
    assert broadcast_shape(pairs, outputs, targets, "mean squared error") == [16, 16]
    assert broadcast_shape(rows, outputs, targets, "mean squared error") is None
    assert broadcast_shape(None, outputs, targets, "mean squared error") is None
    assert broadcast_shape(pairs, outputs, targets[:, None], "mean squared error") is None
    assert broadcast_shape(np.nan, outputs, targets, "mean squared error") is None
