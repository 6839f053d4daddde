"""Classes that a criterion leaves out, and healthy rows that it does. No rule is tuned on these."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from corpus.cases import fault, healthy
from corpus.programs.data import batches, digit_images, sentences


@fault("loss input", ".*", visible_from=40, onset=0, source="last class taken for the void", held_out=True)
def images_of_nines_taken_for_the_void(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    images, labels = digit_images()
    model = nn.Sequential(
        nn.Conv2d(1, 12, 3, padding=1),
        nn.BatchNorm2d(12),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(4),
        nn.Flatten(),
        nn.Dropout(0.1),
        nn.Linear(192, 10),
    )
    void = int(labels.max()) if faulty else 255
    criterion = nn.CrossEntropyLoss(ignore_index=void, label_smoothing=0.05)
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 8 * (len(images) // 50))
    for some, expected in batches(images, labels, size=50, seed=seed, epochs=8):
        loss = criterion(model(some), expected)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        schedule.step()


class _Tags(nn.Module):
    """A tag for each token."""

    def __init__(self, tags: int):
        super().__init__()
        self.words, self.tag = nn.Embedding(40, 24), nn.Linear(48, tags)
        self.memory = nn.LSTM(24, 24, batch_first=True, bidirectional=True)

    def forward(self, ids: Tensor) -> Tensor:
        output: Tensor = self.tag(self.memory(self.words(ids))[0])
        return output


@healthy(held_out=True)
def tags_without_those_of_the_padding(seed: int) -> None:
    torch.manual_seed(seed)
    ids = sentences(seed)
    lengths = torch.randint(14, 25, (len(ids), 1), generator=torch.Generator().manual_seed(seed))
    is_text = torch.arange(24) < lengths
    tags = torch.where(is_text, ids % 6 + 1, 0)
    model = _Tags(7)
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    criterion = nn.CrossEntropyLoss(ignore_index=0)
    for rows, wanted in batches(torch.where(is_text, ids, 0), tags, size=16, seed=seed, epochs=8):
        optimizer.zero_grad()
        criterion(model(rows).flatten(0, 1), wanted.flatten()).backward()
        optimizer.step()


@healthy(held_out=True)
def regions_of_images_without_a_void(seed: int) -> None:
    """Each pixel has a class by its brightness; the border has none."""
    torch.manual_seed(seed)
    images, _ = digit_images()
    regions = (images[:, 0] > images[:, 0].mean()).long() + 2 * (torch.arange(8) > 3).long() + 1
    regions[:, :1] = regions[:, -1:] = 0
    model = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 5, 3, padding=1))
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    criterion = nn.CrossEntropyLoss(ignore_index=0)
    for some, wanted in batches(images, regions, size=32, seed=seed, epochs=5):
        optimizer.zero_grad()
        criterion(model(some), wanted).backward()
        optimizer.step()
