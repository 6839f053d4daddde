"""Scores of attention that nothing divides are found in a model that is not trained, and pass elsewhere."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from tests.frameworks.pytorch.observing.test_attention import (
    pytestmark,  # noqa: F401 - before PyTorch 2.7 nothing is read
    titles,
)

UNDIVIDED = "The scores of attention are not divided"
WORDS, LENGTH, ROWS, WIDTH = 16, 12, 6, 64


class Attending(nn.Module):
    def __init__(self, attend, width=WIDTH, layers=1, drawn=None):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, width), nn.Embedding(LENGTH, width)
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 3)
        self.mixing = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(layers))
        self.attend = attend if isinstance(attend, list) else [attend] * layers
        for mixing in self.mixing:
            if drawn is not None:
                drawn(mixing.weight.data)

    def forward(self, ids):
        state = self.words(ids) + self.places.weight
        for mixing, attend in zip(self.mixing, self.attend, strict=True):
            state = state + attend(*mixing(self.norm(state)).chunk(3, -1))
        return self.head(state.mean(1))


def classed(step):
    random = torch.Generator().manual_seed(step)
    ids = torch.randint(0, WORDS, (ROWS, LENGTH), generator=random)
    return ids, ids[:, 0] % 3


def plain(query, key, value):
    return (query @ key.transpose(1, 2)).softmax(-1) @ value


def masked(query, key, value):
    later = torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1)
    scores = (query @ key.transpose(1, 2)).masked_fill(later, -torch.inf)
    return F.dropout(scores.softmax(-1), 0.1) @ value


def chosen(query, key, value):
    later = torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1)
    return torch.where(later, -1e9, query @ key.transpose(1, 2)).softmax(-1) @ value


def in_heads(query, key, value):
    query, key, value = (part.unflatten(-1, (1, -1)) for part in (query, key, value))
    scores = torch.einsum("bqhd,bkhd->bhqk", query, key)
    return torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), value).flatten(2)


def fused(query, key, value):
    parts = (part[:, None] for part in (query, key, value))
    return F.scaled_dot_product_attention(*parts, scale=1.0)[:, 0]


def multiplied(query, key, value):
    return (query @ key.transpose(1, 2) * math.sqrt(WIDTH)).softmax(-1) @ value


def turned(query, key):
    angles = torch.outer(torch.arange(LENGTH), torch.rand(WIDTH // 2)).repeat(1, 2)
    return [
        part * angles.cos()
        + torch.cat([-part[..., WIDTH // 2 :], part[..., : WIDTH // 2]], -1) * angles.sin()
        for part in (query, key)
    ]


def rotated(query, key, value):
    return plain(*turned(query, key), value)


@pytest.mark.parametrize("attend", [plain, masked, chosen, in_heads, fused, multiplied, rotated])
@pytest.mark.parametrize("layers", [1, 2])
def test_scores_that_nothing_divides_are_found(tmp_path, attend, layers):
    assert titles(tmp_path / "run", Attending(attend, layers=layers), classed) == [UNDIVIDED]


def test_they_are_found_at_a_rate_that_changes_the_weights_at_once(tmp_path):
    model = Attending(plain)
    assert titles(tmp_path / "run", model, classed, rate=0.02) == [UNDIVIDED]


def divided(query, key, value):
    return (query @ key.transpose(1, 2) / math.sqrt(WIDTH)).softmax(-1) @ value


def divided_by_a_tensor(query, key, value):
    return (query @ key.transpose(1, 2) / torch.sqrt(torch.tensor(64.0))).softmax(-1) @ value


def divided_before(query, key, value):
    return plain(query * WIDTH**-0.5, key, value)


def divided_on_both_sides(query, key, value):
    return plain(*turned(query * WIDTH**-0.25, key * WIDTH**-0.25), value)


def by_default(query, key, value):
    parts = (part[:, None] for part in (query, key, value))
    return F.scaled_dot_product_attention(*parts)[:, 0]


def lowered(query, key, value):
    """A factor that somebody chose, and that leaves the weights on few tokens."""
    return plain(query * 0.9, key, value)


def of_unit_length(query, key, value):
    return (F.normalize(query, dim=-1) @ F.normalize(key, dim=-1).transpose(1, 2) * 10).softmax(-1) @ value


def normalised(query, key, value):
    return plain(F.layer_norm(query, (WIDTH,)), F.layer_norm(key, (WIDTH,)), value)


@pytest.mark.parametrize(
    "attend",
    [
        divided,
        divided_by_a_tensor,
        divided_before,
        divided_on_both_sides,
        by_default,
        lowered,
        of_unit_length,
        normalised,
    ],
)
def test_scores_that_are_divided_or_made_otherwise_pass(tmp_path, attend):
    assert titles(tmp_path / "run", Attending(attend), classed) == []


class Tempered(Attending):
    def __init__(self):
        super().__init__(self.tempered)
        self.factor = nn.Parameter(torch.ones(1))

    def tempered(self, query, key, value):
        return (query @ key.transpose(1, 2) * self.factor).softmax(-1) @ value


def test_a_factor_that_is_learnt_passes(tmp_path):
    assert titles(tmp_path / "run", Tempered(), classed) == []


def smaller(weights):
    weights[:WIDTH] /= math.sqrt(WIDTH)


def trained(weights):
    weights.normal_(0, 0.1)


@pytest.mark.parametrize("drawn", [smaller, trained])
def test_weights_that_make_scores_small_or_are_trained_pass(tmp_path, drawn):
    assert titles(tmp_path / "run", Attending(plain, drawn=drawn), classed) == []


def test_narrow_queries_pass(tmp_path):
    assert titles(tmp_path / "run", Attending(plain, width=16), classed) == []


def test_a_model_that_divides_in_one_of_its_layers_passes(tmp_path):
    assert titles(tmp_path / "run", Attending([plain, divided], layers=2), classed) == []
