"""Models that end with a ReLU, where scores or codes are wanted. No rule may be tuned on these."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from corpus.cases import fault, healthy
from corpus.programs.data import batches, digit_images, digits


def block(inputs: int, outputs: int, kernel: int = 3) -> nn.Sequential:
    """A layer, as a block that always ends with an activation."""
    return nn.Sequential(nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2), nn.ReLU(inplace=True))


@fault(
    "loss input",
    r".*",
    visible_from=1,
    onset=0,
    source="a mask from a block with a ReLU",
    held_out=True,
)
def masks_of_a_last_block(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    last = block(16, 1, 1) if faulty else nn.Conv2d(16, 1, 1)
    model = nn.Sequential(block(1, 16), block(16, 16), last)
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
    for (images,) in batches(digit_images()[0], size=32, seed=seed, epochs=5):
        noisy = images + 0.3 * torch.randn_like(images)
        loss = F.binary_cross_entropy_with_logits(model(noisy), (images > 0.5).float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@healthy(held_out=True)
def codes_that_are_rectified_before_the_last_layer(seed: int) -> None:
    """A head without a bias compares rectified codes with a code for each class."""
    torch.manual_seed(seed)
    body = nn.Sequential(nn.Linear(64, 48), nn.BatchNorm1d(48), nn.ReLU())
    classes = nn.Parameter(torch.randn(10, 48) * 0.1)
    optimizer = torch.optim.SGD([*body.parameters(), classes], 0.1, momentum=0.9)
    for some, expected in batches(*digits(), size=64, seed=seed, epochs=6):
        loss = F.cross_entropy(body(some) @ classes.T, expected)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
