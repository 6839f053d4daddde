"""Models whose condition never reaches them, and healthy ones that use one row. Not for tuning rules."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from corpus.cases import fault, healthy
from corpus.programs.data import batches, digit_images, sentences


class _Labels(nn.Module):
    """The embedding of a label, or of none in some cases, as of a diffusion transformer."""

    def __init__(self, count: int, width: int, share: float):
        super().__init__()
        self.share = share
        self.embedding_table = nn.Embedding(count + 1, width)

    def forward(self, labels: Tensor, train: bool) -> Tensor:
        if train:
            labels = labels + 1
            labels = torch.where(torch.rand(len(labels)) < self.share, 0, labels)
        output: Tensor = self.embedding_table(labels)
        return output


class _Painter(nn.Module):
    """Denoises images with layers that a label and a level modulate."""

    def __init__(self, share: float):
        super().__init__()
        self.label = _Labels(10, 32, share)
        self.level = nn.Sequential(nn.Linear(1, 32), nn.SiLU())
        self.first, self.last = nn.Conv2d(1, 32, 3, padding=1), nn.Conv2d(32, 1, 3, padding=1)
        self.scale = nn.Linear(32, 64)

    def forward(self, images: Tensor, level: Tensor, labels: Tensor) -> Tensor:
        modulation = self.scale(self.label(labels, self.training) + self.level(level[:, None]))
        scale, shift = modulation[:, :, None, None].chunk(2, 1)
        output: Tensor = self.last(F.gelu(self.first(images) * (1 + scale) + shift))
        return output


@fault("no gradient", r"label", visible_from=60, onset=0, source="cfg_dropout=1 for 0.1", held_out=True)
def labels_of_which_all_are_dropped(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = _Painter(1.0 if faulty else 0.15)
    optimizer = torch.optim.Adam(model.parameters(), 2e-3, betas=(0.9, 0.99))
    for images, labels in batches(*digit_images(), size=32, seed=seed, epochs=4):
        level, noise = torch.rand(32), torch.randn_like(images)
        angle = level * torch.pi / 2
        noisy = angle.cos()[:, None, None, None] * images + angle.sin()[:, None, None, None] * noise
        optimizer.zero_grad()
        F.mse_loss(model(noisy, level, labels), noise).backward()
        optimizer.step()


class _Speakers(nn.Module):
    """Writes what one of eight speakers says next, or a ninth of whom nothing is known."""

    def __init__(self, known: float = 0.9) -> None:
        super().__init__()
        self.known = known
        self.words, self.speaker = nn.Embedding(40, 24), nn.Embedding(9, 24)
        self.memory, self.next = nn.GRU(24, 64, batch_first=True), nn.Linear(64, 40)

    def forward(self, ids: Tensor, speakers: Tensor) -> Tensor:
        keep = (torch.rand(len(ids)) < self.known).long()
        values, _ = self.memory(self.words(ids) + self.speaker(speakers * keep + 8 * (1 - keep))[:, None])
        output: Tensor = self.next(values)
        return output


@fault("no gradient", r"speaker", visible_from=60, onset=0, source="p of dropping 1 too high", held_out=True)
def speakers_that_are_all_unknown(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    ids = sentences(seed, count=512)
    model = _Speakers(0.0 if faulty else 0.9)
    optimizer = torch.optim.SGD(model.parameters(), 0.5, momentum=0.9)
    for rows, of in batches(ids, ids[:, 0] % 8, size=32, seed=seed, epochs=10):
        logits = model(rows[:, :-1], of)
        loss = F.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


@healthy(held_out=True)
def speaker_of_whom_there_is_more_to_learn(seed: int) -> None:
    """A model of nine speakers is fitted to one of them."""
    torch.manual_seed(seed)
    ids = sentences(seed, count=512)
    model = _Speakers(1.0)
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
    for (rows,) in batches(ids, size=32, seed=seed, epochs=8):
        logits = model(rows[:, :-1], torch.full((32,), 5))
        loss = F.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
