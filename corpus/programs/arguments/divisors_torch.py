"""Losses that are divided for an accumulation, which takes place or does not.

Rules may be tuned on these.
"""

from __future__ import annotations

from argparse import Namespace

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from corpus.cases import fault, healthy
from corpus.programs.data import batches, digits


def classifier(width: int = 64) -> nn.Module:
    return nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 10))


@fault(
    "accumulation scale",
    r".*",
    visible_from=1,
    onset=0,
    source="the condition around optimizer.step() was removed, the division stayed",
    held_out=False,
)
def losses_divided_for_steps_that_nobody_skips(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model, accumulation_steps = classifier(), 8
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    for number, (some, expected) in enumerate(batches(*digits(), size=16, seed=seed, epochs=5)):
        loss = F.cross_entropy(model(some), expected) / accumulation_steps
        loss.backward()
        if faulty or (number + 1) % accumulation_steps == 0:
            optimizer.step()
            optimizer.zero_grad()


@healthy(held_out=False)
def losses_accumulated_to_the_last_ragged_group(seed: int) -> None:
    """Each epoch ends with a group of two losses, where others have four."""
    torch.manual_seed(seed)
    model, args = classifier(), Namespace(grad_accum=4)
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
    for _ in range(12):
        for number, (some, expected) in enumerate(batches(*digits(), size=24, seed=seed, epochs=1)):
            (F.cross_entropy(model(some), expected) / args.grad_accum).backward()
            if (number + 1) % args.grad_accum == 0 or number == 49:
                optimizer.step()
                optimizer.zero_grad()


@healthy(held_out=False)
def loss_that_is_halved_and_never_accumulated(seed: int) -> None:
    """Half of a squared error, with a setting for an accumulation of one."""
    torch.manual_seed(seed)
    model, accumulate = nn.Sequential(nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 64)), 1
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    for (some,) in batches(digits()[0], size=64, seed=seed, epochs=8):
        optimizer.zero_grad()
        (0.5 * F.mse_loss(model(some), some) / accumulate).backward()
        optimizer.step()
