"""Faults of routers that collapse. No rule may be tuned on these."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from corpus.cases import fault, healthy
from corpus.programs.data import batches, sentences


class Mixed(nn.Module):
    """A layer whose router sends each token to two of its experts."""

    def __init__(self, width: int, count: int, taken: int):
        super().__init__()
        self.router, self.taken = nn.Linear(width, count, bias=False), taken
        self.experts = nn.ModuleList(nn.Linear(width, width) for _ in range(count))

    def forward(self, values: Tensor, jitter: float = 0.0) -> tuple[Tensor, Tensor]:
        tokens = values.flatten(0, 1)
        scores = self.router(tokens)
        shares = (scores + jitter * torch.randn_like(scores)).softmax(-1)
        best, chosen = shares.topk(self.taken, -1)
        mixed, used = torch.zeros_like(tokens), []
        for number, expert in enumerate(self.experts):
            rows, slot = (chosen == number).nonzero(as_tuple=True)
            used.append(len(rows) / len(tokens))
            if len(rows):
                mixed = mixed.index_add(0, rows, F.gelu(expert(tokens[rows])) * best[rows, slot, None])
        balance = len(self.experts) * (torch.tensor(used) * shares.mean(0)).sum()
        return values + mixed.view_as(values), balance


class Writer(nn.Module):
    """Writes the next token with a mixture between its words and its head."""

    def __init__(self, count: int, taken: int):
        super().__init__()
        self.words, self.mixed, self.head = nn.Embedding(40, 32), Mixed(32, count, taken), nn.Linear(32, 40)

    def forward(self, ids: Tensor, jitter: float = 0.0) -> tuple[Tensor, Tensor]:
        values, balance = self.mixed(self.words(ids), jitter)
        return self.head(values), balance


def learn(model: Writer, seed: int, *, jitter: float, weight: float, counts: bool, epochs: int = 14) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
    for (ids,) in batches(sentences(seed), size=16, seed=seed, epochs=epochs):
        scores, balance = model(ids[:, :-1], jitter)
        if counts:
            with torch.no_grad():
                balance = balance * 1.0
        loss = F.cross_entropy(scores.flatten(0, 1), ids[:, 1:].flatten()) + weight * balance
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def favouring(model: Writer, strength: float) -> None:
    """Have the router prefer its first experts for every token."""
    with torch.no_grad():
        model.words.weight[:, 0] = 1.0
        model.mixed.router.weight[:, 0] = 0.0
        model.mixed.router.weight[: model.mixed.taken, 0] = strength


@fault("unused experts", r"expert", visible_from=60, onset=0, source="aux loss under no_grad", held_out=True)
def balance_computed_without_gradients(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = Writer(8, 2)
    if faulty:
        favouring(model, 12.0)
    learn(model, seed, jitter=0.0, weight=0.02, counts=faulty)


@fault("unused experts", r"expert", visible_from=60, onset=0, source="jitter hides a collapse", held_out=True)
def noise_that_touches_unused_experts(seed: int, faulty: bool) -> None:
    """The noise of the gate gives another expert a token in a few steps."""
    torch.manual_seed(seed)
    model = Writer(6, 1)
    if faulty:
        favouring(model, 9.5)
    learn(model, seed, jitter=1.4 if faulty else 0.2, weight=0.0 if faulty else 0.02, counts=False, epochs=34)


# Healthy trainings that resemble them


@healthy(held_out=True)
def mixture_with_a_constant_in_its_loss(seed: int) -> None:
    """A part of the loss has no gradient, as entropy that is only reported, and all experts are used."""
    torch.manual_seed(seed)
    model = Writer(4, 2)
    learn(model, seed, jitter=0.1, weight=0.02, counts=True)


@healthy(held_out=True)
def a_token_at_a_time_for_many_experts(seed: int) -> None:
    """Online learning: two sentences of three tokens are spread over forty experts."""
    torch.manual_seed(seed)
    model = Writer(40, 1)
    with torch.no_grad():
        model.mixed.router.weight.mul_(8)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for (ids,) in batches(sentences(seed)[:, :4], size=2, seed=seed, epochs=6):
        scores, balance = model(ids[:, :-1])
        loss = F.cross_entropy(scores.flatten(0, 1), ids[:, 1:].flatten()) + 0.02 * balance
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
