"""Faults that absolute errors hide, and healthy trainings. Rules may be tuned on these."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from corpus.cases import fault, healthy
from corpus.programs.data import batches
from corpus.programs.targets_torch import houses, regressor, sensors


@fault("not learning", r"loss", visible_from=300, onset=0, source="targets of another file", held_out=False)
def absolute_errors_of_shuffled_prices(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    features, prices = houses(seed)
    if faulty:
        prices = prices[torch.randperm(len(prices))]
    model, criterion = regressor(), nn.L1Loss()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for some, expected in batches(features, prices, size=32, seed=seed, epochs=5):
        optimizer.zero_grad()
        criterion(model(some), expected).backward()
        optimizer.step()


@healthy(held_out=False)
def absolute_errors_of_noisy_prices(seed: int) -> None:
    """A seventh of the error can be explained, so that the loss falls by that, and no further."""
    torch.manual_seed(seed)
    features, prices = houses(seed, noise=6.0)
    model = regressor()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for some, expected in batches(features, prices, size=32, seed=seed, epochs=5):
        optimizer.zero_grad()
        F.l1_loss(model(some), expected).backward()
        optimizer.step()


@healthy(held_out=False)
def smooth_errors_on_the_way_to_far_targets(seed: int) -> None:
    """After six epochs it has come from 19 to 3, where a constant would have 2.6."""
    torch.manual_seed(seed)
    readings, wanted = sensors(seed)
    model = nn.Sequential(nn.Linear(12, 24), nn.GELU(), nn.Linear(24, 2))
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
    for some, expected in batches(readings, wanted, size=40, seed=seed, epochs=6):
        loss = F.smooth_l1_loss(model(some), expected, beta=0.5)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault("not learning", r"loss", visible_from=300, onset=0, source="merge without an index", held_out=False)
def written_squares_of_rolled_prices(seed: int, faulty: bool) -> None:
    """The error is written out, so that no criterion keeps the targets."""
    torch.manual_seed(seed)
    features, prices = houses(seed)
    if faulty:
        prices = prices.roll(1, 0)
    model = regressor()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for some, expected in batches(features, prices, size=32, seed=seed, epochs=5):
        loss = ((model(some) - expected) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@healthy(held_out=False)
def written_squares_of_rewards_to_go(seed: int) -> None:
    """A critic whose targets are its own estimates of the next state and a reward."""
    torch.manual_seed(seed)
    states = torch.randn(3000, 8)
    after = 0.9 * states + 0.3 * torch.randn(3000, 8)
    rewards = states[:, 0] + 0.5 * torch.randn(3000)
    critic = regressor()
    optimizer = torch.optim.Adam(critic.parameters(), 1e-3)
    for state, following, reward in batches(states, after, rewards, size=32, seed=seed, epochs=5):
        with torch.no_grad():
            wanted = reward + 0.9 * critic(following).squeeze(-1)
        loss = (critic(state).squeeze(-1) - wanted).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
