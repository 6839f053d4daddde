"""Contrastive trainings, some of whose rows are compared with themselves. Rules may be tuned on these."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from corpus.cases import fault, healthy
from corpus.programs.data import batches, digits


def encoder(dropout: float = 0.0) -> nn.Sequential:
    """An encoder of digits with its projection."""
    return nn.Sequential(
        nn.Linear(64, 96), nn.ReLU(), nn.Dropout(dropout), nn.Linear(96, 48), nn.ReLU(), nn.Linear(48, 24)
    )


def view(images: Tensor) -> Tensor:
    """Images with noise, and some of their pixels hidden."""
    return (images + 0.2 * torch.randn_like(images)) * (torch.rand_like(images) > 0.2)


@fault("repeated input", r".*", source="both views from one call of the transform", held_out=False)
def one_view_for_both(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = encoder()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for (some,) in batches(digits()[0], size=64, seed=seed, epochs=8):
        first = view(some)
        second = first if faulty else view(some)
        left, right = F.normalize(model(first), dim=1), F.normalize(model(second), dim=1)
        loss = F.cross_entropy(left @ right.T / 0.1, torch.arange(len(some)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class TwoViews(nn.Module):
    """Encodes both views in one call, and scales their similarities by what it learns."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.scale = encoder(), nn.Parameter(torch.tensor(2.0))

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        left, right = F.normalize(self.encoder(first), dim=-1), F.normalize(self.encoder(second), dim=-1)
        return self.scale.exp() * torch.einsum("nd,md->nm", left, right)


@fault("repeated input", r".*", source="a data set that returns the image twice", held_out=False)
def data_set_that_returns_the_image_twice(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = TwoViews()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    for (some,) in batches(digits()[0], size=48, seed=seed, epochs=8):
        pair = (some, some) if faulty else (view(some), view(some))
        logits, labels = model(*pair), torch.arange(len(some))
        loss = (F.cross_entropy(logits, labels) + F.cross_entropy(logits.T, labels)) / 2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@healthy(held_out=False)
def rows_that_differ_by_their_dropout_alone(seed: int) -> None:
    """Each row is encoded twice, as sentences are whose embeddings are learnt without pairs."""
    torch.manual_seed(seed)
    model = encoder(dropout=0.1)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for (some,) in batches(digits()[0], size=64, seed=seed, epochs=8):
        left, right = model(some), model(some)
        logits = F.cosine_similarity(left[:, None], right[None], dim=-1) / 0.1
        loss = F.cross_entropy(logits, torch.arange(len(some)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@healthy(held_out=False)
def as_many_rows_as_classes_and_shared_weights(seed: int) -> None:
    """The output layer is the table of the inputs: a row is compared with all of the table."""
    torch.manual_seed(seed)
    table = nn.Embedding(32, 16)
    hidden = nn.Linear(16, 16)
    optimizer = torch.optim.Adam([*table.parameters(), *hidden.parameters()], 5e-3)
    generator = torch.Generator().manual_seed(seed)
    follows = torch.randperm(32, generator=generator)
    for _ in range(200):
        words = torch.randperm(32, generator=generator)
        logits = torch.tanh(hidden(table(words))) @ table.weight.T
        loss = F.cross_entropy(logits, follows[words])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault("repeated input", r".*", source="a transform that is called once for both views", held_out=False)
def batch_of_one_view_twice(seed: int, faulty: bool) -> None:
    """Both views are one batch, and each row's similarity to itself is overwritten."""
    torch.manual_seed(seed)
    model = encoder()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for (some,) in batches(digits()[0], size=48, seed=seed, epochs=6):
        first = view(some)
        codes = F.normalize(model(torch.cat([first, first if faulty else view(some)])), dim=1)
        similarities = codes @ codes.T / 0.5
        similarities.fill_diagonal_(-1e9)
        loss = F.cross_entropy(similarities, torch.arange(96).roll(48))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
