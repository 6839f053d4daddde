"""Forecasts that only repeat the last value, and healthy ones: no rule may be tuned on these."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from corpus.cases import fault, healthy
from corpus.programs.data import batches


class Recurrent(nn.Module):
    """An estimate from the last state of a GRU."""

    def __init__(self, features: int, width: int = 32):
        super().__init__()
        self.memory, self.head = nn.GRU(features, width, batch_first=True), nn.Linear(width, 1)

    def forward(self, given: torch.Tensor) -> torch.Tensor:
        output: torch.Tensor = self.head(self.memory(given)[0][:, -1])
        return output


def loads(seed: int, count: int = 2400, length: int = 10) -> tuple[torch.Tensor, torch.Tensor]:
    """A walk that a second feature drives, and its next value."""
    generator = torch.Generator().manual_seed(seed)
    drive = torch.randn(count, length + 1, generator=generator)
    steps = 0.3 * drive + 0.1 * torch.randn(count, length + 1, generator=generator)
    walk = torch.randn(count, 1, generator=generator) + steps.cumsum(1)
    driven = torch.stack([walk[:, :-1], drive[:, 1:]], -1)
    return driven, walk[:, -1:]


@fault("not learning", r"loss", visible_from=400, onset=0, source="joined on the wrong key", held_out=True)
def weather_of_other_places(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    given, wanted = loads(seed)
    if faulty:
        given = torch.stack([given[..., 0], given[torch.randperm(len(given)), :, 1]], -1)
    model = Recurrent(2)
    optimizer = torch.optim.AdamW(model.parameters(), 4e-3)
    for some, expected in batches(given, wanted, size=40, seed=seed, epochs=14):
        loss = F.mse_loss(model(some), expected)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@healthy(held_out=True)
def slow_start_of_a_forecast(seed: int) -> None:
    """A small rate, so that the model is above the last value for long, and comes below it slowly."""
    torch.manual_seed(seed)
    given, wanted = loads(seed + 9)
    model = Recurrent(2, 16)
    optimizer = torch.optim.SGD(model.parameters(), 0.02, momentum=0.9)
    for some, expected in batches(given, wanted, size=32, seed=seed, epochs=10):
        optimizer.zero_grad()
        F.smooth_l1_loss(model(some), expected).backward()
        optimizer.step()
