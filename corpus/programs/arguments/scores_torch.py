"""Attention whose scores are not divided, and healthy ones near it. Rules may be tuned on these."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from corpus.cases import fault, healthy
from corpus.programs.data import batches, digit_images, sentences

WORDS = 40


class _CausalAttention(nn.Module):
    """Attention as small language models have it, with a mask that is kept."""

    def __init__(self, width: int, heads: int, longest: int, is_divided: bool):
        super().__init__()
        self.mixing, self.back = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.heads, self.is_divided = heads, is_divided
        self.mask: Tensor
        self.register_buffer("mask", torch.tril(torch.ones(longest, longest)).view(1, 1, longest, longest))

    def forward(self, state: Tensor) -> Tensor:
        rows, length, width = state.shape
        query, key, value = (
            part.view(rows, length, self.heads, width // self.heads).transpose(1, 2)
            for part in self.mixing(state).split(width, dim=2)
        )
        scores = query @ key.transpose(-2, -1)
        if self.is_divided:
            scores = scores * (1.0 / math.sqrt(key.size(-1)))
        scores = scores.masked_fill(self.mask[:, :, :length, :length] == 0, float("-inf"))
        seen = F.softmax(scores, dim=-1) @ value
        output: Tensor = self.back(seen.transpose(1, 2).contiguous().view(rows, length, width))
        return output


class _SmallLanguageModel(nn.Module):
    """Two blocks that are normalised first."""

    def __init__(self, is_divided: bool, width: int = 64):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, width), nn.Embedding(32, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(4))
        self.attention = nn.ModuleList(_CausalAttention(width, 1, 32, is_divided) for _ in range(2))
        self.mixing = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
            for _ in range(2)
        )
        self.end, self.head = nn.LayerNorm(width), nn.Linear(width, WORDS, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        state = self.words(ids) + self.places(torch.arange(ids.shape[1]))
        for number in range(2):
            state = state + self.attention[number](self.norms[2 * number](state))
            state = state + self.mixing[number](self.norms[2 * number + 1](state))
        output: Tensor = self.head(self.end(state))
        return output


def _learn_language(model: nn.Module, seed: int, rate: float = 1e-3) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), rate)
    for (rows,) in batches(sentences(seed), size=32, seed=seed, epochs=12):
        loss = F.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()


@fault("attention", ".*", visible_from=1, onset=0, source="att = q @ k.transpose(-2, -1)", held_out=False)
def language_model_without_the_root_of_its_width(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    _learn_language(_SmallLanguageModel(is_divided=not faulty), seed)


class _HeadsOfAnnotations(nn.Module):
    """Attention of several heads with a layer for each of queries, keys and values."""

    def __init__(self, width: int, heads: int, is_divided: bool):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(4))
        self.heads, self.is_divided, self.dropout = heads, is_divided, nn.Dropout(0.1)

    def forward(self, state: Tensor) -> Tensor:
        query, key, value = (layer(state).unflatten(-1, (self.heads, -1)) for layer in self.layers[:3])
        scores = torch.einsum("nqhd,nkhd->nhqk", query, key)
        if self.is_divided:
            scores = scores / math.sqrt(query.shape[-1])
        weights = self.dropout(scores.softmax(-1))
        output: Tensor = self.layers[3](torch.einsum("nhqk,nkhd->nqhd", weights, value).flatten(2))
        return output


class _Lines(nn.Module):
    """Reads a digit as a sequence of its eight lines."""

    def __init__(self, is_divided: bool, width: int = 64):
        super().__init__()
        self.line, self.places = nn.Linear(8, width), nn.Parameter(torch.randn(8, width))
        self.norm, self.attention = nn.LayerNorm(width), _HeadsOfAnnotations(width, 2, is_divided)
        self.after, self.head = nn.LayerNorm(width), nn.Linear(width, 10)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter)

    def forward(self, lines: Tensor) -> Tensor:
        state = self.norm(self.line(lines) + self.places)
        state = self.after(state + self.attention(state))
        output: Tensor = self.head(state.mean(1))
        return output


@fault("attention", ".*", visible_from=1, onset=0, source="einsum of queries and keys alone", held_out=False)
def lines_of_digits_without_the_root_of_the_width(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = _Lines(is_divided=not faulty)
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    images, labels = digit_images()
    for some, expected in batches(images.squeeze(1), labels, size=64, seed=seed, epochs=8):
        optimizer.zero_grad()
        F.cross_entropy(model(some), expected).backward()
        optimizer.step()


class _Attending(nn.Module):
    """A language model of one layer, whose scores are computed in some way."""

    def __init__(self, width: int = 64, bias: bool = True):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, width), nn.Embedding(32, width)
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, WORDS)
        self.query, self.key, self.value = (nn.Linear(width, width, bias=bias) for _ in range(3))

    def attend(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
        scores = (query @ key.transpose(1, 2) / query.shape[-1] ** 0.5).masked_fill(mask, -torch.inf)
        return scores.softmax(-1) @ value

    def forward(self, ids: Tensor) -> Tensor:
        state = self.words(ids) + self.places.weight[: ids.shape[1]]
        given = self.norm(state)
        mask = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).triu(1)
        seen = self.attend(self.query(given), self.key(given), self.value(given), mask)
        output: Tensor = self.head(state + seen)
        return output


class _DrawnSmaller(_Attending):
    """Divides nothing: its queries are drawn so much smaller, as T5's are."""

    def __init__(self) -> None:
        super().__init__(bias=False)
        width = self.query.in_features
        nn.init.normal_(self.query.weight, std=width**-0.5 * width**-0.5)
        nn.init.normal_(self.key.weight, std=width**-0.5)

    def attend(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(
            query[:, None], key[:, None], value[:, None], attn_mask=~mask, scale=1.0
        )[:, 0]


@healthy(held_out=False)
def attention_of_scale_one_with_smaller_queries(seed: int) -> None:
    torch.manual_seed(seed)
    _learn_language(_DrawnSmaller(), seed, 3e-3)


class _OfUnitLength(_Attending):
    """Compares directions, times a factor that is learnt and begins with 10."""

    def __init__(self) -> None:
        super().__init__()
        self.factor = nn.Parameter(torch.tensor(math.log(10.0)))

    def attend(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
        query, key = F.normalize(query, dim=-1), F.normalize(key, dim=-1)
        scores = (query @ key.transpose(1, 2) * self.factor.exp()).masked_fill(mask, -torch.inf)
        return scores.softmax(-1) @ value


@healthy(held_out=False)
def attention_of_directions_with_a_factor(seed: int) -> None:
    torch.manual_seed(seed)
    _learn_language(_OfUnitLength(), seed, 3e-3)


class _Finding(_Attending):
    """Divides nothing and begins with weights that were trained: each token finds the ones that are alike."""

    def __init__(self) -> None:
        super().__init__()
        for layer in (self.query, self.key):
            nn.init.zeros_(layer.bias)
            layer.weight.data = torch.eye(64) + 0.05 * torch.randn(64, 64)

    def attend(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
        return (query @ key.transpose(1, 2)).masked_fill(mask, -torch.inf).softmax(-1) @ value


@healthy(held_out=False)
def attention_that_was_trained_without_a_division(seed: int) -> None:
    torch.manual_seed(seed)
    _learn_language(_Finding(), seed, 1e-3)
