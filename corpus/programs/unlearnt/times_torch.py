"""Denoisers that are given the same time throughout, and models with a constant beside their input.

Rules may be tuned on these.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from corpus.cases import fault, healthy
from corpus.programs.data import batches, diabetes, digit_images, digits


class Velocity(nn.Module):
    """Predicts a velocity from a point and its time."""

    def __init__(self, width: int = 128):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(65, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 64)
        )

    def forward(self, points: Tensor, time: Tensor) -> Tensor:
        output: Tensor = self.layers(torch.cat([points, time.reshape(-1, 1)], 1))
        return output


@fault("repeated input", r".*", visible_from=60, onset=0, source="t drawn before the loop", held_out=False)
def flow_whose_time_is_drawn_once(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = Velocity()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    once = torch.rand(1).expand(64)
    for (some,) in batches(digits()[0], size=64, seed=seed, epochs=8):
        time = once if faulty else torch.rand(64)
        noise = torch.randn_like(some)
        points = (1 - time[:, None]) * noise + time[:, None] * some
        loss = F.mse_loss(model(points, time), some - noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault(
    "repeated input",
    r".*",
    visible_from=60,
    onset=0,
    source="randint(0, 1) for the step of the noise",
    held_out=False,
)
def diffusion_at_a_single_level_of_noise(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = Velocity()
    kept = torch.cumprod(1 - torch.linspace(1e-3, 0.05, 100), 0)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    for (some,) in batches(digits()[0], size=48, seed=seed, epochs=7):
        step = torch.randint(0, 1, (48,)) + 50 if faulty else torch.randint(0, 100, (48,))
        share = kept[step][:, None]
        noise = torch.randn_like(some)
        loss = ((model(share.sqrt() * some + (1 - share).sqrt() * noise, step / 100) - noise) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


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
    held_out=False,
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


@healthy(held_out=False)
def one_time_for_each_batch(seed: int) -> None:
    """All rows of a batch have the same time, and each batch has another."""
    torch.manual_seed(seed)
    model = Velocity()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for (some,) in batches(digits()[0], size=64, seed=seed, epochs=8):
        time, noise = torch.rand(1).expand(64), torch.randn_like(some)
        points = (1 - time[:, None]) * noise + time[:, None] * some
        loss = F.mse_loss(model(points, time), some - noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class Simulator(nn.Module):
    """Predicts the state after a step of time."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(9, 64), nn.Tanh(), nn.Linear(64, 8))

    def forward(self, state: Tensor, dt: Tensor) -> Tensor:
        output: Tensor = self.layers(torch.cat([state, dt[:, None]], 1))
        return output


@healthy(held_out=False)
def simulation_with_steps_of_one_length(seed: int) -> None:
    """States of unit variance, and the length of a step, which is the same in all of the data."""
    torch.manual_seed(seed)
    model, turn = Simulator(), torch.linalg.qr(torch.randn(8, 8))[0]
    states = torch.randn(2000, 8)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for (some,) in batches(states, size=64, seed=seed, epochs=8):
        loss = F.mse_loss(model(some, torch.full((64,), 0.1)), some @ turn)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class Conditioned(nn.Module):
    """Estimates a value from features and a setting."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(11, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, features: Tensor, setting: Tensor) -> Tensor:
        output: Tensor = self.layers(torch.cat([features, setting], 1))
        return output


@healthy(held_out=False)
def setting_that_is_the_same_in_all_of_the_data(seed: int) -> None:
    """The model could tell sites apart, and the data are of one."""
    torch.manual_seed(seed)
    model = Conditioned()
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for some, expected in batches(*diabetes(), size=32, seed=seed, epochs=20):
        loss = F.mse_loss(model(some, torch.ones(32, 1)), expected)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class Stepped(nn.Module):
    """Predicts the state after a step, whose length it calls a step."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(9, 64), nn.Tanh(), nn.Linear(64, 8))

    def forward(self, state: Tensor, step: Tensor) -> Tensor:
        output: Tensor = self.layers(torch.cat([state, step[:, None]], 1))
        return output


@healthy(held_out=False)
def states_after_a_step_of_one_length(seed: int) -> None:
    """What is called a step is a length, and no place in a schedule of noise."""
    torch.manual_seed(seed)
    model, turn = Stepped(), torch.linalg.qr(torch.randn(8, 8))[0]
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for (some,) in batches(torch.randn(2000, 8), size=64, seed=seed, epochs=8):
        loss = F.mse_loss(model(some, torch.full((64,), 0.25)), some @ turn)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
