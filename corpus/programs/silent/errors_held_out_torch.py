"""Faults that absolute errors hide, and healthy trainings with such errors: no rule may be tuned on these."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from corpus.cases import fault, healthy
from corpus.programs.data import batches, diabetes, digits
from corpus.programs.targets_torch import houses, sensors


@fault("not learning", r"loss", visible_from=300, onset=0, source="df.sample of the labels", held_out=True)
def bounded_errors_of_rolled_prices(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    features, prices = houses(seed, 2800, noise=0.5)
    prices = (prices - prices.mean()) / prices.std()
    if faulty:
        prices = prices.roll(7, 0)
    model = nn.Sequential(nn.Linear(8, 24), nn.GELU(), nn.Linear(24, 1))
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
    for some, expected in batches(features, prices, size=40, seed=seed, epochs=6):
        loss = F.huber_loss(model(some), expected, delta=0.7)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@healthy(held_out=True)
def median_of_what_can_be_told_of_patients(seed: int) -> None:
    """Few rows in many passes, with an absolute error and weight decay."""
    torch.manual_seed(seed)
    features, wanted = diabetes()
    model = nn.Sequential(nn.Linear(features.shape[1], 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3, weight_decay=0.05)
    for some, expected in batches(features, wanted, size=26, seed=seed, epochs=30):
        optimizer.zero_grad()
        F.l1_loss(model(some), expected.reshape(-1, 1), reduction="mean").backward()
        optimizer.step()


@fault("not learning", r"loss", visible_from=300, onset=0, source="labels of another run", held_out=True)
def written_absolute_errors_of_other_readings(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    readings, wanted = sensors(seed)
    wanted = (wanted[:, 0] - wanted[:, 0].mean()) / wanted[:, 0].std()
    if faulty:
        wanted = wanted[torch.randperm(len(wanted))]
    model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    for some, expected in batches(readings, wanted, size=32, seed=seed, epochs=5):
        loss = (expected - model(some).squeeze(1)).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@healthy(held_out=True)
def written_squares_of_images_that_are_coded(seed: int) -> None:
    """Sums of squares, divided by the rows: an autoencoder whose code is narrow."""
    torch.manual_seed(seed)
    images, _ = digits()
    model = nn.Sequential(nn.Linear(64, 24), nn.ReLU(), nn.Linear(24, 6), nn.Linear(6, 64), nn.Sigmoid())
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    for (some,) in batches(images, size=32, seed=seed, epochs=8):
        loss = ((model(some) - some) ** 2).sum() / len(some)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@healthy(held_out=True)
def written_squares_of_a_noise_that_was_added(seed: int) -> None:
    """Of much of the noise nothing can be told."""
    torch.manual_seed(seed)
    images, _ = digits()
    model = nn.Sequential(nn.Linear(65, 96), nn.SiLU(), nn.Linear(96, 96), nn.SiLU(), nn.Linear(96, 64))
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    for (some,) in batches(images, size=64, seed=seed, epochs=20):
        share, noise = torch.rand(len(some), 1), torch.randn_like(some)
        given = torch.cat([(1 - share) * (2 * some - 1) + share * noise, share], 1)
        loss = torch.mean((noise - model(given)).square())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
