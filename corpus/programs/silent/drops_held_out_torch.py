"""Dropout that is strong, by mistake or on purpose. No rule may be tuned on these."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from corpus.cases import fault, healthy, layer
from corpus.programs.data import batches, digit_images, digits, parts
from corpus.programs.healthy_torch import validate


class Head(nn.Module):
    """Two layers, with dropout between them."""

    def __init__(self, rate: float):
        super().__init__()
        self.hidden, self.last = nn.Linear(16 * 9, 48), nn.Linear(48, 10)
        self.rate = rate

    def forward(self, values: Tensor) -> Tensor:
        output: Tensor = self.last(F.dropout(self.hidden(values).relu(), self.rate, self.training))
        return output


@fault("not learning", layer("4"), visible_from=200, onset=0, source="p=0.95 of a sweep", held_out=True)
def dropout_that_a_search_has_left_high(seed: int, faulty: bool) -> float:
    torch.manual_seed(seed)
    body = (nn.Conv2d(1, 16, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
    model = nn.Sequential(*body, Head(0.95 if faulty else 0.3))
    optimizer = torch.optim.SGD(model.parameters(), 0.02, momentum=0.9)
    criterion, accuracy = nn.CrossEntropyLoss(), 0.0
    for epoch in range(12):
        for some, expected in batches(*digit_images(), size=32, seed=seed + epoch, epochs=1):
            optimizer.zero_grad()
            criterion(model(some), expected).backward()
            optimizer.step()
        accuracy = validate(model, *digit_images(validation=True))
    return accuracy


@healthy(held_out=True)
def images_restored_from_a_tenth_of_their_pixels(seed: int) -> None:
    """Dropout makes the task: it is applied to the images themselves, and validation sees them whole."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Dropout(0.9), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64))
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    images, _ = digits()
    held, _ = digits(validation=True)
    for epoch in range(12):
        for (some,) in batches(images, size=32, seed=seed + epoch, epochs=1):
            optimizer.zero_grad()
            F.mse_loss(model(some), some).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            for (some,) in parts(held, size=120):
                F.mse_loss(model(some), some)
        model.train()


@healthy(held_out=True)
def words_of_which_most_values_are_dropped(seed: int) -> float:
    """Each pixel's grey is a word with a wide embedding, so that a tenth of the values is enough."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Embedding(64 * 17, 256), nn.Dropout(0.9), Mean(), nn.Linear(256, 10))
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    criterion, accuracy = nn.CrossEntropyLoss(), 0.0
    words, labels = as_words(*digits())
    for epoch in range(8):
        for some, expected in batches(words, labels, size=64, seed=seed + epoch, epochs=1):
            optimizer.zero_grad()
            criterion(model(some), expected).backward()
            optimizer.step()
        accuracy = validate(model, *as_words(*digits(validation=True)))
    return accuracy


class Mean(nn.Module):
    """The mean of all words of a text."""

    def forward(self, values: Tensor) -> Tensor:
        return values.mean(1)


def as_words(images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """A word for each grey of each pixel."""
    greys = (16 * (images - images.min()) / (images.max() - images.min())).round().long()
    return greys + 17 * torch.arange(64), labels
