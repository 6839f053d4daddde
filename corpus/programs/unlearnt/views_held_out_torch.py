"""Contrastive trainings, some of whose rows are compared with themselves. No rule may be tuned on these."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from corpus.cases import fault, healthy
from corpus.programs.data import batches, digit_images, digits


def shifted(images: Tensor, generator: torch.Generator) -> Tensor:
    """Images that are moved by a pixel at most, and made darker or lighter."""
    moved = torch.roll(images, torch.randint(-1, 2, (2,), generator=generator).tolist(), dims=(2, 3))
    return moved * (0.6 + 0.8 * torch.rand(len(images), 1, 1, 1, generator=generator))


def net() -> nn.Sequential:
    """A convolutional encoder."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(256, 64),
        nn.ReLU(),
        nn.Linear(64, 32),
    )


@fault("repeated input", r".*", source="NT-Xent of a batch that holds each view twice", held_out=True)
def batch_of_each_view_twice(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    model = net()
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    for (some,) in batches(digit_images()[0], size=32, seed=seed, epochs=6):
        first = shifted(some, generator)
        second = first if faulty else shifted(some, generator) + 0.1 * torch.randn_like(some)
        codes = F.normalize(model(torch.cat([first, second])), dim=1)
        itself = torch.eye(64, dtype=torch.bool)
        logits = (codes @ codes.T).masked_fill(itself, float("-inf")) / 0.2
        loss = F.cross_entropy(logits, (torch.arange(64) + 32) % 64)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault(
    "repeated input", r".*", source="the generator of the augmentation is seeded for each view", held_out=True
)
def augmentation_with_the_same_seed_for_both(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    for number, (some,) in enumerate(batches(digit_images()[0], size=64, seed=seed, epochs=8)):
        both = []
        for which in range(2):
            generator = torch.Generator().manual_seed(2 * number + (0 if faulty else which))
            noise = torch.randn(some.shape, generator=generator)
            both.append(shifted(some, generator) + 0.1 * noise)
        left, right = (model(each) for each in both)
        logits = F.cosine_similarity(left.unsqueeze(1), right.unsqueeze(0), dim=2) / 0.15
        loss = F.cross_entropy(logits, torch.arange(len(some)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault("repeated input", r".*", source="the projection of one view on both sides", held_out=True)
def one_projection_on_both_sides(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    body, projection = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.LayerNorm(64)), nn.Linear(64, 16)
    model = nn.ModuleDict({"body": body, "projection": projection})
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    for (some,) in batches(digits()[0], size=40, seed=seed, epochs=8):
        first, second = some + 0.3 * torch.randn_like(some), some + 0.3 * torch.randn_like(some)
        query = F.normalize(projection(body(first)), dim=-1)
        key = query if faulty else F.normalize(projection(body(second)), dim=-1)
        loss = F.cross_entropy(torch.matmul(query, key.t()).div(0.07), torch.arange(40))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@healthy(held_out=True)
def views_of_which_half_are_not_changed(seed: int) -> None:
    """A transform that is applied to every other image leaves some pairs equal."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 16))
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for (some,) in batches(digits()[0], size=64, seed=seed, epochs=10):
        views = [
            torch.where(torch.rand(64, 1) < 0.3, some + 0.5 * torch.randn_like(some), some) for _ in range(2)
        ]
        left, right = (F.normalize(model(each), dim=1) for each in views)
        loss = F.cross_entropy(left @ right.T / 0.1, torch.arange(64))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@healthy(held_out=True)
def two_halves_of_one_image(seed: int) -> None:
    """Two encoders learn which halves of an image belong together."""
    torch.manual_seed(seed)
    upper, lower = (nn.Sequential(nn.Linear(32, 48), nn.ReLU(), nn.Linear(48, 16)) for _ in range(2))
    optimizer = torch.optim.Adam([*upper.parameters(), *lower.parameters()], 2e-3)
    for (some,) in batches(digits()[0], size=50, seed=seed, epochs=12):
        left, right = F.normalize(upper(some[:, :32]), dim=1), F.normalize(lower(some[:, 32:]), dim=1)
        logits, labels = left @ right.T / 0.1, torch.arange(50)
        loss = (F.cross_entropy(logits, labels) + F.cross_entropy(logits.T, labels)) / 2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault("repeated input", r".*", source="crops of one position", held_out=True)
def signals_cut_at_the_same_place_twice(seed: int, faulty: bool) -> None:
    """The similarities of rows to themselves are overwritten by an index."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(40, 64), nn.GELU(), nn.Linear(64, 16))
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
    signals = torch.sin(torch.linspace(0, 12, 64) * (0.5 + torch.rand(1200, 1)) + torch.rand(1200, 1) * 6.3)
    rows = torch.arange(64)
    for (some,) in batches(signals, size=32, seed=seed, epochs=6):
        first = int(torch.randint(24, (1,)))
        second = first if faulty else int(torch.randint(24, (1,)))
        both = torch.cat([some[:, first : first + 40], some[:, second : second + 40]])
        codes = F.normalize(model(both if faulty else both + 0.05 * torch.randn_like(both)), dim=-1)
        scores = (codes @ codes.t()).div(0.2)
        scores[rows, rows] = float("-inf")
        loss = F.cross_entropy(scores, (rows + 32) % 64)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
