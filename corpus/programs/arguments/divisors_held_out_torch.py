"""Losses that are divided for an accumulation, which takes place or does not.

No rule may be tuned on these.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from corpus.cases import fault, healthy
from corpus.programs.data import batches, diabetes, digit_images


@dataclass
class Settings:
    """Those of a training."""

    rate: float = 0.05
    accumulate_grad_batches: int = 4
    sizes: list[int] = field(default_factory=lambda: [16])


class Trainer:
    """Fits a model to images."""

    def __init__(self, model: nn.Module, settings: Settings, *, every: int):
        self.model, self.settings, self.every, self.number = model, settings, every, 0
        self.optimizer = torch.optim.SGD(model.parameters(), settings.rate, momentum=0.9, nesterov=True)

    def train(self, images: Tensor, expected: Tensor) -> None:
        """Train on a batch."""
        loss = F.cross_entropy(self.model(images), expected, label_smoothing=0.05)
        (loss * (1 / self.settings.accumulate_grad_batches)).backward()
        self.number += 1
        if self.number % self.every == 0:
            self.optimizer.step()
            self.optimizer.zero_grad()


def convolutions() -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, 16, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(144, 10))


@fault(
    "accumulation scale",
    r".*",
    visible_from=3,
    onset=0,
    source="a trainer that steps every second batch and divides by four",
    held_out=True,
)
def images_of_which_half_are_accumulated(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    settings = Settings()
    trainer = Trainer(convolutions(), settings, every=2 if faulty else settings.accumulate_grad_batches)
    for images, expected in batches(*digit_images(), size=16, seed=seed, epochs=5):
        trainer.train(images, expected)


@healthy(held_out=True)
def one_of_many_targets_over_accumulated_batches(seed: int) -> None:
    """The two losses of a batch are divided and passed back one after the other."""
    torch.manual_seed(seed)
    body, heads = nn.Sequential(nn.Linear(10, 32), nn.ReLU()), [nn.Linear(32, 1), nn.Linear(32, 1)]
    optimizer = torch.optim.Adam([*body.parameters(), *heads[0].parameters(), *heads[1].parameters()], 2e-3)
    accumulated = 3
    for number, (some, expected) in enumerate(batches(*diabetes(), size=24, seed=seed, epochs=24)):
        for head, wanted in zip(heads, (expected, expected.abs()), strict=True):
            (F.mse_loss(head(body(some)), wanted) / accumulated).backward()
        if (number + 1) % accumulated == 0:
            optimizer.step()
            optimizer.zero_grad()
