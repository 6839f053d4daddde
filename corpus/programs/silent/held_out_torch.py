"""Healthy trainings that resemble faults which no error shows. No rule may be tuned on these."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from corpus.cases import healthy
from corpus.programs.data import batches, digits


@healthy(held_out=True)
def layers_that_are_left_out_at_random(seed: int) -> None:
    """Of six like layers, each step uses three or four."""
    torch.manual_seed(seed)
    first, last = nn.Linear(64, 32), nn.Linear(32, 10)
    layers = nn.ModuleList([nn.Linear(32, 32) for _ in range(6)])
    model = nn.ModuleDict({"first": first, "layers": layers, "last": last})
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
    random = torch.Generator().manual_seed(seed)
    for some, expected in batches(*digits(), size=48, seed=seed, epochs=10):
        values = first(some).relu()
        for layer in layers:
            if torch.rand(1, generator=random) < 0.6:
                values = values + layer(values).relu()
        optimizer.zero_grad()
        F.cross_entropy(last(values), expected).backward()
        optimizer.step()


@healthy(held_out=True)
def weighted_classes_that_overlap(seed: int) -> None:
    """Three classes of unequal weight, which the inputs tell apart a little."""
    torch.manual_seed(seed)
    random = torch.Generator().manual_seed(seed)
    inputs = torch.randn(3600, 10, generator=random)
    scores = inputs[:, :3] + 4 * torch.randn(3600, 3, generator=random)
    labels = (scores + torch.tensor([2.0, 0.0, -2.0])).argmax(1)
    model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 3))
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    weights = len(labels) / (3 * labels.bincount(minlength=3).float())
    for some, expected in batches(inputs, labels, size=60, seed=seed, epochs=7):
        optimizer.zero_grad()
        F.cross_entropy(model(some), expected, weight=weights).backward()
        optimizer.step()


@healthy(held_out=True)
def critic_of_noisy_returns(seed: int) -> None:
    """The values of states are learned from rewards and a slowly moving copy's estimates."""
    torch.manual_seed(seed)
    critic = nn.Sequential(nn.Linear(6, 40), nn.Tanh(), nn.Linear(40, 1))
    behind = nn.Sequential(nn.Linear(6, 40), nn.Tanh(), nn.Linear(40, 1)).requires_grad_(False)
    behind.load_state_dict(critic.state_dict())
    optimizer = torch.optim.RMSprop(critic.parameters(), 1e-3)
    for _ in range(420):
        state = torch.randn(48, 6)
        following = 0.9 * state + 0.4 * torch.randn(48, 6)
        reward = state[:, :1] - 0.5 * state[:, 1:2].abs() + 2 * torch.randn(48, 1)
        loss = F.smooth_l1_loss(critic(state), reward + 0.9 * behind(following))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for old, new in zip(behind.parameters(), critic.parameters(), strict=True):
                old.lerp_(new, 0.02)
