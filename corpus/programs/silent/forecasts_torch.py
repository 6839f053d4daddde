"""Forecasts that only repeat the last value, and healthy ones. Rules may be tuned on these."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from corpus.cases import fault, healthy
from corpus.programs.data import batches


def zigzags(seed: int, count: int = 3000, length: int = 8, kept: float = -0.85) -> tuple[Tensor, Tensor]:
    """Windows of series that fall after they rose, mostly, and the value that follows each."""
    generator = torch.Generator().manual_seed(seed)
    changes = [torch.randn(count, generator=generator)]
    for _ in range(length + 6):
        noise = torch.randn(count, generator=generator)
        changes.append(kept * changes[-1] + (1 - kept**2) ** 0.5 * noise)
    values = (torch.stack(changes, 1).cumsum(1) + 6 * torch.randn(count, 1, generator=generator)) / 6
    return values[:, -length - 1 : -1], values[:, -1:]


@fault("not learning", r"loss", visible_from=400, onset=0, source="window = [last] * 8", held_out=False)
def windows_of_one_value(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    windows, following = zigzags(seed)
    if faulty:
        windows = windows[:, -1:].repeat(1, 8)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for some, expected in batches(windows, following, size=40, seed=seed, epochs=12):
        optimizer.zero_grad()
        F.mse_loss(model(some), expected).backward()
        optimizer.step()


@healthy(held_out=False)
def readings_of_which_the_last_column_is_the_best(seed: int) -> None:
    """No series, but the last feature says much of the target, and the others the rest."""
    torch.manual_seed(seed)
    features = torch.randn(3000, 6)
    wanted = features[:, -1:] + 0.4 * features[:, :1] + 0.2 * torch.randn(3000, 1)
    model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for some, expected in batches(features, wanted, size=32, seed=seed, epochs=6):
        optimizer.zero_grad()
        F.mse_loss(model(some), expected).backward()
        optimizer.step()
