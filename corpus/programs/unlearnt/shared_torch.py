"""Denoisers whose noise is drawn for each row, or once for a batch. Rules may be tuned on these."""

from __future__ import annotations

import torch
from torch.nn import functional as F  # noqa: N812

from corpus.cases import fault, healthy
from corpus.programs.data import batches, digit_images
from corpus.programs.unlearnt.times_torch import Denoiser


@fault(
    "repeated input",
    r".*",
    visible_from=9,
    onset=0,
    source="noise of the shape of one image, and the velocity as the target",
    held_out=False,
)
def velocities_of_one_noise_for_a_batch(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model, share = Denoiser(), torch.cos(torch.linspace(0.02, 1.5, 50)) ** 2
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    for (some,) in batches(2 * digit_images()[0] - 1, size=32, seed=seed, epochs=4):
        step = torch.randint(50, (len(some),))
        noise = torch.randn(1, *some.shape[1:]).expand_as(some) if faulty else torch.randn_like(some)
        kept, added = share[step].sqrt()[:, None, None, None], (1 - share[step]).sqrt()[:, None, None, None]
        loss = F.mse_loss(model(kept * some + added * noise, step), kept * noise - added * some)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@healthy(held_out=False)
def velocities_of_one_time_for_a_batch(seed: int) -> None:
    """What rows have in common is the share of the images, and no noise."""
    torch.manual_seed(seed)
    model, share = Denoiser(), torch.cos(torch.linspace(0.02, 1.5, 50)) ** 2
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    for (some,) in batches(2 * digit_images()[0] - 1, size=32, seed=seed, epochs=4):
        step, noise = torch.randint(50, (1,)).expand(len(some)), torch.randn_like(some)
        kept, added = share[step].sqrt()[:, None, None, None], (1 - share[step]).sqrt()[:, None, None, None]
        loss = F.mse_loss(model(kept * some + added * noise, step), kept * noise - added * some)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
