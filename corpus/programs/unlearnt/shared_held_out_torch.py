"""Denoisers whose noise is drawn for each row, or once for a batch. No rule may be tuned on these."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from corpus.cases import fault, healthy
from corpus.programs.data import batches, digits


class Signals(nn.Module):
    """Tells noise from signals, by attention to what a timestep says."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.level = nn.Linear(32, 96), nn.Linear(1, 96)
        self.last = nn.Sequential(nn.SiLU(), nn.Linear(96, 96), nn.SiLU(), nn.Linear(96, 32))

    def forward(self, noisy: Tensor, timesteps: Tensor) -> Tensor:
        output: Tensor = self.last(self.first(noisy) + self.level(timesteps[:, None]))
        return output


@fault(
    "repeated input",
    r".*",
    visible_from=9,
    onset=0,
    source="a start of a flow that is broadcast",
    held_out=True,
)
def flow_from_one_start_for_a_batch(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = Signals()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    for _ in range(200):
        signals = torch.sin(torch.linspace(0, 8, 32) + 6.3 * torch.rand(48, 1))
        start, timesteps = torch.randn(1 if faulty else 48, 32), torch.rand(48)
        points = (1 - timesteps[:, None]) * start + timesteps[:, None] * signals
        loss = F.smooth_l1_loss(model(points, timesteps), signals - start)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class Follower(nn.Module):
    """Predicts a state some time later."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(65, 96), nn.Tanh(), nn.Linear(96, 64))

    def forward(self, state: Tensor, t: Tensor) -> Tensor:
        output: Tensor = self.layers(torch.cat([state, t[:, None]], 1))
        return output


@healthy(held_out=True)
def digits_that_fade_with_time(seed: int) -> None:
    """The targets have the form of the inputs, and are no noise; batches hold one class after another."""
    torch.manual_seed(seed)
    model, (images, classes) = Follower(), digits()
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    for _ in range(4):
        for (some,) in batches(images[classes.argsort()], size=32, seed=seed, epochs=1):
            time = torch.rand(len(some))
            loss = F.mse_loss(model(some, time), some * torch.exp(-time)[:, None])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
