"""Denoisers that are given the same time throughout, and models with a constant beside their input.

No rule may be tuned on these.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from corpus.cases import fault, healthy
from corpus.programs.data import batches, digit_images, digits
from corpus.programs.unlearnt.times_torch import Velocity


class Denoiser(nn.Module):
    """A convolutional denoiser with an embedding of its time."""

    def __init__(self, steps: int = 50):
        super().__init__()
        self.times = nn.Embedding(steps, 16)
        self.first, self.last = nn.Conv2d(1, 16, 3, padding=1), nn.Conv2d(16, 1, 3, padding=1)
        self.middle = nn.Conv2d(16, 16, 3, padding=1)

    def forward(self, images: Tensor, step: Tensor) -> Tensor:
        values = F.silu(self.first(images) + self.times(step)[:, :, None, None])
        output: Tensor = self.last(F.silu(self.middle(values)))
        return output


@fault(
    "repeated input",
    r".*",
    visible_from=60,
    onset=0,
    source="the step of the noise is a default argument",
    held_out=True,
)
def images_at_one_step_of_the_noise(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = Denoiser()
    kept = torch.cumprod(1 - torch.linspace(1e-3, 0.1, 50), 0)
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    for (some,) in batches(digit_images()[0], size=32, seed=seed, epochs=5):
        step = torch.full((32,), 25) if faulty else torch.randint(50, (32,))
        share = kept[step][:, None, None, None]
        noise = torch.randn_like(some)
        loss = F.mse_loss(model(share.sqrt() * some + (1 - share).sqrt() * noise, step), noise)
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
