"""Weights of attention that sum to 1 over the tokens that look, and others that may."""

import math

import pytest
import torch
from torch.nn import functional as F  # noqa: N812

from tests.frameworks.pytorch.observing.test_attention import (
    WIDTH,
    Language,
    causal_mask,
    following,
    pytestmark,  # noqa: F401 - before PyTorch 2.7 nothing is read
    titles,
)

WRONG = "Attention is normalised over the wrong axis"


def attend(axis, *, heads=1, dropout=0.0, mask=True, as_sum=False):
    """Attention written out, with its softmax over this axis of [..., queries, keys]."""

    def of(query, key, value, is_causal):
        query, key, value = (each.expand(-1, heads, -1, -1) for each in (query, key, value))
        scores = query @ key.transpose(-2, -1) / math.sqrt(WIDTH)
        if mask:
            scores = scores.masked_fill(~causal_mask(scores.shape[-1]), -1e9)
        weights = F.dropout(scores.softmax(axis), dropout)
        found = torch.einsum("bhqk,bhkd->bhqd", weights, value) if as_sum else weights @ value
        return found.mean(1, keepdim=True)

    return of


@pytest.mark.parametrize("how", [{}, {"heads": 3}, {"dropout": 0.2}, {"mask": False}, {"as_sum": True}])
@pytest.mark.parametrize("axis", [-2, 2])
def test_a_softmax_over_the_queries_is_found(tmp_path, axis, how):
    assert WRONG in titles(tmp_path / "run", Language(attend(axis, **how), True), following)


@pytest.mark.parametrize("how", [{}, {"heads": 3}, {"dropout": 0.2}, {"as_sum": True}])
@pytest.mark.parametrize("axis", [-1, 3])
def test_a_softmax_over_the_keys_passes(tmp_path, axis, how):
    assert WRONG not in titles(tmp_path / "run", Language(attend(axis, **how), True), following)


def slots(query, key, value, is_causal):
    """Tokens compete for the queries, whose weights are then made to sum to 1 again."""
    weights = (query @ key.transpose(-2, -1)).softmax(-2) + 1e-8
    return (weights / weights.sum(-1, keepdim=True)) @ value


def linear(query, key, value, is_causal):
    """Keys are normalised over the tokens, and multiplied with the values first."""
    return query.softmax(-1) @ (key.softmax(-2).transpose(-2, -1) @ value)


def linear_as_sum(query, key, value, is_causal):
    return query.softmax(-1) @ torch.einsum("bhnd,bhne->bhde", key.softmax(-2), value)


def to_the_other_side_as_sum(query, key, value, is_causal):
    weights = (query @ key.transpose(-2, -1)).softmax(-2)
    return torch.einsum("bhqk,bhqd->bhkd", weights, value)


def from_both_sides(query, key, value, is_causal):
    """Matches of tokens that have to choose each other."""
    scores = query @ key.transpose(-2, -1)
    return (scores.softmax(-1) * scores.softmax(-2)) @ value


def to_the_other_side(query, key, value, is_causal):
    """Weights over the queries, given to the keys."""
    return (query @ key.transpose(-2, -1)).softmax(-2).transpose(-2, -1) @ value


@pytest.mark.parametrize(
    "how",
    [slots, linear, linear_as_sum, from_both_sides, to_the_other_side, to_the_other_side_as_sum],
)
def test_weights_that_may_sum_to_1_over_the_queries_pass(tmp_path, how):
    assert WRONG not in titles(tmp_path / "run", Language(how, False), following)
