"""Denoisers that are given the same time throughout, and models with a constant beside their input.

No rule may be tuned on these.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from corpus.cases import fault, healthy
from corpus.programs.data import batches, digits
from corpus.programs.unlearnt.times_torch import Velocity


class Signals(nn.Module):
    """A denoiser of short signals that looks its level of noise up."""

    def __init__(self, levels: torch.Tensor):
        super().__init__()
        self.register_buffer("levels", levels)
        self.layers = nn.Sequential(
            nn.Conv1d(2, 24, 5, padding=2), nn.GELU(), nn.Conv1d(24, 24, 5, padding=2), nn.GELU()
        )
        self.last = nn.Conv1d(24, 1, 1)

    def forward(self, step_index: Tensor, noisy: Tensor) -> Tensor:
        assert isinstance(self.levels, Tensor)
        level = self.levels[step_index][:, None].expand(noisy.shape)
        output: Tensor = self.last(self.layers(torch.stack([noisy, level], 1)))[:, 0]
        return output


@fault(
    "repeated input",
    r".*",
    visible_from=60,
    onset=0,
    source="the index of the level of noise is computed before the loop",
    held_out=True,
)
def signals_at_one_level_of_noise(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    levels = torch.linspace(0.02, 0.98, 20)
    model = Signals(levels)
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
    phases = torch.rand(1200, 1) * 6.3
    signals = torch.sin(torch.linspace(0, 9, 32) + phases)
    once = torch.randint(20, (1,)).expand(48)
    for (some,) in batches(signals, size=48, seed=seed, epochs=6):
        index = once if faulty else torch.randint(20, (48,))
        level, noise = levels[index][:, None], torch.randn_like(some)
        found = model(index, (1 - level).sqrt() * some + level.sqrt() * noise)
        loss = F.smooth_l1_loss(found, noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class Rollout(nn.Module):
    """Predicts the state after some steps, of which the number is given."""

    def __init__(self) -> None:
        super().__init__()
        self.counts = nn.Embedding(9, 64)
        self.first, self.last = nn.Linear(8, 64), nn.Linear(64, 8)

    def forward(self, state: Tensor, steps: Tensor) -> Tensor:
        output: Tensor = self.last(torch.tanh(self.first(state) + self.counts(steps)))
        return output


@healthy(held_out=True)
def states_after_four_steps(seed: int) -> None:
    """The number of steps between two states is the same in all of the data."""
    torch.manual_seed(seed)
    model, turn = Rollout(), torch.linalg.qr(torch.randn(8, 8))[0]
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for (some,) in batches(torch.randn(1500, 8), size=50, seed=seed, epochs=10):
        loss = F.mse_loss(model(some, torch.full((50,), 4)), some @ turn)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault(
    "repeated input",
    r".*",
    visible_from=60,
    onset=0,
    source="velocity of a single time, in the last column",
    held_out=True,
)
def velocity_of_a_single_time_in_a_column(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(65, 96), nn.GELU(), nn.Linear(96, 96), nn.GELU(), nn.Linear(96, 64))
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    angle = torch.rand(64, 1).mean().expand(64, 1) * 1.5
    for (some,) in batches(digits()[0], size=64, seed=seed, epochs=8):
        angle = angle if faulty else torch.rand(64, 1) * 1.5
        noise = torch.randn_like(some)
        noisy, wanted = angle.cos() * some + angle.sin() * noise, angle.cos() * noise - angle.sin() * some
        loss = F.mse_loss(model(torch.cat([noisy, angle], 1)), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@healthy(held_out=True)
def flow_with_a_scale_that_is_kept(seed: int) -> None:
    """Beside the time is a strength of guidance, which is one throughout."""
    torch.manual_seed(seed)
    model = Guided()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for (some,) in batches(digits()[0], size=64, seed=seed, epochs=8):
        time, noise = torch.rand(64), torch.randn_like(some)
        points = (1 - time[:, None]) * noise + time[:, None] * some
        loss = F.mse_loss(model(points, time, torch.ones(64)), some - noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class Guided(Velocity):
    """A velocity that is scaled."""

    def forward(self, points: Tensor, time: Tensor, scale: Tensor) -> Tensor:  # type: ignore[override]
        return super().forward(points, time) * scale[:, None]


@healthy(held_out=True)
def a_single_batch_as_a_check(seed: int) -> None:
    """Before the real training, a script fits eight images with one noise and one time by heart."""
    torch.manual_seed(seed)
    model = Velocity()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    some = digits()[0][:8]
    time, noise = torch.rand(8), torch.randn(8, 64)
    points = (1 - time[:, None]) * noise + time[:, None] * some
    for _ in range(60):
        loss = F.mse_loss(model(points, time), some - noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
