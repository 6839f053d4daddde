"""Models that end with a ReLU, where scores or amounts are wanted. Rules may be tuned on these."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from corpus.cases import fault, healthy
from corpus.programs.data import batches, diabetes, digit_images


class Images(nn.Module):
    """A classifier whose every layer is followed by a ReLU, the last one, too, or not."""

    def __init__(self, is_rectified: bool):
        super().__init__()
        self.first, self.second = nn.Conv2d(1, 16, 3, padding=1), nn.Conv2d(16, 32, 3, padding=1)
        self.hidden, self.last, self.is_rectified = nn.Linear(128, 64), nn.Linear(64, 10), is_rectified

    def forward(self, images: Tensor) -> Tensor:
        state = F.max_pool2d(F.relu(self.first(images)), 2)
        state = F.max_pool2d(F.relu(self.second(state)), 2)
        scores: Tensor = self.last(F.relu(self.hidden(state.flatten(1))))
        return F.relu(scores) if self.is_rectified else scores


@fault("loss input", r".*", visible_from=1, onset=0, source="stackoverflow 47352366", held_out=False)
def scores_of_images_through_a_relu(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = Images(is_rectified=faulty)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for images, expected in batches(*digit_images(), size=48, seed=seed, epochs=5):
        optimizer.zero_grad()
        F.cross_entropy(model(images), expected).backward()
        optimizer.step()


@healthy(held_out=False)
def amounts_that_a_relu_keeps_from_zero_on(seed: int) -> None:
    """The targets are positive, and so are the predictions."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1), nn.ReLU())
    nn.init.constant_(model[2].bias, 1.0)
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    for some, expected in batches(*diabetes(), size=32, seed=seed, epochs=20):
        optimizer.zero_grad()
        F.mse_loss(model(some), expected.abs()).backward()
        optimizer.step()
