"""Attention whose scores are not divided, and healthy ones near it. No rule is tuned on these."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from corpus.cases import fault, healthy
from corpus.programs.data import batches, digit_images, sentences

WORDS = 40


class _Rotating(nn.Module):
    """A block whose queries and keys are rotated by their places."""

    def __init__(self, width: int, heads: int, scale: float | None):
        super().__init__()
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.gate, self.up, self.down = (
            nn.Linear(*sizes, bias=False) for sizes in ((width, 96), (width, 96), (96, width))
        )
        self.before, self.after = nn.RMSNorm(width), nn.RMSNorm(width)
        self.heads, self.scale = heads, scale

    def forward(self, state: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        given = self.before(state)
        query, key, value = (
            layer(given).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for layer in (self.wq, self.wk, self.wv)
        )
        query, key = (part * cosine + _half_turned(part) * sine for part in (query, key))
        seen = F.scaled_dot_product_attention(query, key, value, is_causal=True, scale=self.scale)
        state = state + self.wo(seen.transpose(1, 2).flatten(2))
        given = self.after(state)
        output: Tensor = state + self.down(F.silu(self.gate(given)) * self.up(given))
        return output


def _half_turned(values: Tensor) -> Tensor:
    first, second = values.chunk(2, -1)
    return torch.cat((-second, first), -1)


class _Rotated(nn.Module):
    """A language model with rotated queries and keys."""

    def __init__(self, scale: float | None, width: int = 96, heads: int = 2):
        super().__init__()
        self.tok_embeddings, self.layers = (
            nn.Embedding(WORDS, width),
            nn.ModuleList(_Rotating(width, heads, scale) for _ in range(2)),
        )
        self.norm, self.output, self.each = (
            nn.RMSNorm(width),
            nn.Linear(width, WORDS, bias=False),
            width // heads,
        )

    def forward(self, ids: Tensor) -> Tensor:
        rates = 10_000.0 ** -(torch.arange(0, self.each, 2) / self.each)
        angles = torch.outer(torch.arange(ids.shape[1]), rates).repeat(1, 2)
        state = self.tok_embeddings(ids)
        for layer in self.layers:
            state = layer(state, angles.cos(), angles.sin())
        scores: Tensor = self.output(self.norm(state))
        return scores


@fault("attention", ".*", visible_from=1, onset=0, source="scale=1.0 of the fused attention", held_out=True)
def rotated_language_model_of_scale_one(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = _Rotated(1.0 if faulty else None)
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3, weight_decay=0.1)
    for (rows,) in batches(sentences(seed), size=16, seed=seed, epochs=8):
        logits = model(rows[:, :-1])
        loss = F.cross_entropy(logits.reshape(-1, WORDS), rows[:, 1:].reshape(-1))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()


class SelfAttention(nn.Module):
    """Attention of one head over the hours of a day."""

    def __init__(self, dim: int, scale: float):
        super().__init__()
        self.to_qkv, self.proj, self.scale = nn.Linear(dim, dim * 3, bias=False), nn.Linear(dim, dim), scale

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.to_qkv(x).chunk(3, dim=-1)
        attn = torch.bmm(q, k.transpose(1, 2)) * self.scale
        attn = torch.softmax(attn, dim=-1)
        output: Tensor = self.proj(torch.bmm(attn, v))
        return output


@fault("attention", ".*", visible_from=1, onset=0, source="self.scale = dim ** 0.5", held_out=True)
def forecast_with_the_root_on_the_wrong_side(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    dim = 48

    class Forecaster(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.pos = nn.Linear(2, dim), nn.Parameter(torch.zeros(1, 24, dim))
            self.norm1, self.attn = nn.LayerNorm(dim), SelfAttention(dim, dim**0.5 if faulty else dim**-0.5)
            self.norm2, self.head = nn.LayerNorm(dim), nn.Linear(dim, 1)
            nn.init.trunc_normal_(self.pos, std=0.02)

        def forward(self, x: Tensor) -> Tensor:
            x = self.embed(x) + self.pos
            x = x + self.attn(self.norm1(x))
            output: Tensor = self.head(self.norm2(x)[:, -1]).squeeze(-1)
            return output

    model = Forecaster()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(200):
        start = 6.28 * torch.rand(32, 1)
        hours = start + torch.arange(25) * 0.26
        load = hours.sin() + 0.1 * torch.randn(32, 25)
        series = torch.stack([load[:, :24], (2 * hours[:, :24]).cos()], -1)
        optimizer.zero_grad()
        F.mse_loss(model(series), load[:, 24]).backward()
        optimizer.step()


class _Recalling(nn.Module):
    """A recurrent network that looks back at its states by their products, undivided, as Luong's does."""

    def __init__(self, width: int = 64):
        super().__init__()
        self.words, self.memory = nn.Embedding(WORDS, width), nn.GRU(width, width, batch_first=True)
        self.general, self.joined = nn.Linear(width, width, bias=False), nn.Linear(2 * width, WORDS)

    def forward(self, ids: Tensor) -> Tensor:
        states, _ = self.memory(self.words(ids))
        later = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).triu(1)
        scores = (self.general(states) @ states.transpose(1, 2)).masked_fill(later, -1e9)
        output: Tensor = self.joined(torch.cat([states, scores.softmax(-1) @ states], -1))
        return output


@healthy(held_out=True)
def states_recalled_by_their_products(seed: int) -> None:
    torch.manual_seed(seed)
    model = _Recalling()
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for (rows,) in batches(sentences(seed), size=32, seed=seed, epochs=10):
        optimizer.zero_grad()
        F.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten()).backward()
        optimizer.step()


class _Narrow(nn.Module):
    """Reads the lines of a digit by one layer of attention."""

    def __init__(self, heads: int, is_folded: bool, factor: float):
        super().__init__()
        self.line, self.places = nn.Linear(8, 64), nn.Parameter(torch.randn(8, 64) * 0.02)
        self.norm, self.mixing, self.head = nn.LayerNorm(64), nn.Linear(64, 192), nn.Linear(64, 10)
        self.heads, self.factor = heads, factor
        if is_folded:
            with torch.no_grad():
                self.mixing.weight[:64] /= math.sqrt(64 / heads)

    def forward(self, lines: Tensor) -> Tensor:
        state = self.line(lines) + self.places
        query, key, value = self.mixing(self.norm(state)).unflatten(-1, (3, self.heads, -1)).unbind(2)
        scores = query.transpose(1, 2) @ key.permute(0, 2, 3, 1)
        if self.factor != 1:
            scores = scores * self.factor
        seen = (scores.softmax(-1) @ value.transpose(1, 2)).transpose(1, 2).flatten(2)
        output: Tensor = self.head((state + seen).mean(1))
        return output


def _read_digits(model: nn.Module, seed: int) -> None:
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    images, labels = digit_images()
    for some, expected in batches(images.squeeze(1), labels, size=64, seed=seed, epochs=6):
        optimizer.zero_grad()
        F.cross_entropy(model(some), expected).backward()
        optimizer.step()


@healthy(held_out=True)
def division_that_is_in_the_weights(seed: int) -> None:
    torch.manual_seed(seed)
    _read_digits(_Narrow(heads=1, is_folded=True, factor=1.0), seed)


@healthy(held_out=True)
def narrow_heads_without_a_division(seed: int) -> None:
    torch.manual_seed(seed)
    _read_digits(_Narrow(heads=8, is_folded=False, factor=1.0), seed)


@healthy(held_out=True)
def sharp_attention_that_divides(seed: int) -> None:
    """The weights begin large, so that each line looks at few others; the scores are divided."""
    torch.manual_seed(seed)
    model = _Narrow(heads=1, is_folded=False, factor=64**-0.5)
    with torch.no_grad():
        model.mixing.weight[:128] *= 3
    _read_digits(model, seed)
