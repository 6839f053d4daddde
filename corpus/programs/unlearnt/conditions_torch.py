"""Denoisers whose condition never reaches them, and healthy ones that have one. For tuning rules."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from corpus.cases import fault, healthy
from corpus.programs.data import batches, digits

NONE = 10
"""The row of the table that stands for no condition."""


class Guided(nn.Module):
    """A denoiser of digits that is told which digit it is, or nothing."""

    def __init__(self, dropped: float = 0.1, forced: bool = False):
        super().__init__()
        self.dropped, self.forced = dropped, forced
        self.kinds = nn.Embedding(11, 24)
        self.layers = nn.Sequential(nn.Linear(65 + 24, 128), nn.SiLU(), nn.Linear(128, 64))

    def forward(self, points: Tensor, time: Tensor, kinds: Tensor) -> Tensor:
        dropped = torch.rand(len(kinds)) < self.dropped
        if self.forced:
            dropped = torch.ones_like(dropped)
        given = self.kinds(torch.where(dropped, NONE, kinds))
        output: Tensor = self.layers(torch.cat([points, time[:, None], given], 1))
        return output


def _denoise(model: nn.Module, seed: int, kinds: Tensor, epochs: int = 8) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    for some, of in batches(digits()[0], kinds, size=64, seed=seed, epochs=epochs):
        time, noise = torch.rand(64), torch.randn_like(some)
        points = (1 - time[:, None]) * noise + time[:, None] * some
        loss = F.mse_loss(model(points, time, of), some - noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault("no gradient", r"kinds", visible_from=60, onset=0, source="drop_prob=10, in percent", held_out=False)
def conditions_that_are_dropped_in_ten_of_one_cases(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    _denoise(Guided(10 if faulty else 0.1), seed, digits()[1])


@fault(
    "no gradient", r"kinds", visible_from=60, onset=0, source="force_drop_ids left on for all", held_out=False
)
def conditions_that_a_flag_of_the_sampler_drops(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    _denoise(Guided(forced=faulty), seed, digits()[1])


@healthy(held_out=False)
def denoiser_of_a_single_kind(seed: int) -> None:
    """The kind of all digits is the same one: the others are trained another time."""
    torch.manual_seed(seed)
    _denoise(Guided(0.0), seed, torch.full((len(digits()[1]),), 4))


@healthy(held_out=False)
def denoiser_that_is_told_nothing_on_purpose(seed: int) -> None:
    """The base of a conditional model is trained without conditions first."""
    torch.manual_seed(seed)
    _denoise(Guided(0.0), seed, torch.full((len(digits()[1]),), NONE))


@healthy(held_out=False)
def denoiser_that_is_told_half_of_the_kinds(seed: int) -> None:
    torch.manual_seed(seed)
    _denoise(Guided(0.5), seed, digits()[1])
