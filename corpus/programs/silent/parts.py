"""Models for faults that no error shows: a language model, an encoder, experts, a variational coder."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from corpus.programs.data import batches, sentences

VOCABULARY, LENGTH, WIDTH = 40, 24, 32
Hides = Callable[[Tensor], Tensor]


class Language(nn.Module):
    """A language model of one layer of attention; the first tokens may see each other."""

    def __init__(self, is_causal: bool, prefix: int = 0, rows: int = VOCABULARY, width: int = WIDTH):
        super().__init__()
        self.words, self.places = nn.Embedding(rows, width), nn.Embedding(LENGTH, width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.head = nn.Linear(width, rows)
        self.is_causal, self.prefix = is_causal, prefix

    def forward(self, ids: Tensor) -> Tensor:
        values = self.words(ids) + self.places(torch.arange(ids.shape[1]))
        q, k, v = self.qkv(self.norms[0](values)).chunk(3, -1)
        scores = q @ k.transpose(1, 2) / WIDTH**0.5
        if self.is_causal:
            hidden = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).triu(1)
            hidden[: self.prefix, : self.prefix] = False
            scores = scores.masked_fill(hidden, float("-inf"))
        output: Tensor = self.head(self.norms[1](values + self.out(scores.softmax(-1) @ v)))
        return output


def learn_language(model: nn.Module, seed: int, prefix: int = 0) -> None:
    """Learn the next token of sentences, from the end of the prefix on."""
    torch.manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    for (rows,) in batches(sentences(seed), size=24, seed=seed, epochs=16):
        labels = rows[:, 1:].clone()
        labels[:, : max(0, prefix - 1)] = -100
        output = model(rows[:, :-1])
        loss = F.cross_entropy(output.flatten(0, 1), labels.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class Encoder(nn.Module):
    """A classifier of texts whose attention leaves out what `hides` says."""

    def __init__(self, hides: Hides, length: int = 20, vocabulary: int = 24):
        super().__init__()
        self.words, self.places = nn.Embedding(vocabulary, WIDTH), nn.Embedding(length, WIDTH)
        self.layer = nn.TransformerEncoderLayer(WIDTH, 2, 2 * WIDTH, batch_first=True)
        self.head, self.hides = nn.Linear(WIDTH, 2), hides

    def forward(self, ids: Tensor) -> Tensor:
        values = self.words(ids) + self.places(torch.arange(ids.shape[1]))
        values = self.layer(values, src_key_padding_mask=self.hides(ids))
        kept = (ids != 0)[..., None]
        output: Tensor = self.head((values * kept).sum(1) / kept.sum(1))
        return output


class MixtureOfExperts(nn.Module):
    """Experts of which the gate takes some for each row; returns the balance of their load, too."""

    def __init__(self, count: int, taken: int):
        super().__init__()
        self.gate, self.taken = nn.Linear(64, count), taken
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(64, 24), nn.ReLU(), nn.Linear(24, 10)) for _ in range(count)
        )

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        shares = self.gate(inputs).softmax(1)
        weights, chosen = shares.topk(self.taken, dim=1)
        output = torch.zeros(len(inputs), 10)
        load = torch.zeros(len(self.experts))
        for number, expert in enumerate(self.experts):
            rows, slot = (chosen == number).nonzero(as_tuple=True)
            load[number] = len(rows) / len(inputs)
            if len(rows):
                output = output.index_add(0, rows, expert(inputs[rows]) * weights[rows, slot, None])
        return output, len(self.experts) * (load * shares.mean(0)).sum()


class VariationalCoder(nn.Module):
    """Codes images of 64 values in 8, with noise."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 48), nn.ReLU())
        self.mu, self.logvar = nn.Linear(48, 8), nn.Linear(48, 8)
        self.decoder = nn.Sequential(nn.Linear(8, 48), nn.ReLU(), nn.Linear(48, 64))

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        hidden = self.encoder(inputs)
        mean, logvar = self.mu(hidden), self.logvar(hidden)
        drawn = mean + (0.5 * logvar).exp() * torch.randn_like(mean)
        return self.decoder(drawn), mean, logvar
