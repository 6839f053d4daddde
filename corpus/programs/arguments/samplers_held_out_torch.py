"""Loaders that draw rows by weights: wrong ones, and healthy ones. No rule may be tuned on these."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812
from torch.utils.data import BatchSampler, DataLoader, Dataset, TensorDataset, WeightedRandomSampler

from corpus.cases import fault, healthy
from corpus.programs.data import cancer, digit_images, sentences


class _Patients(Dataset[tuple[Tensor, Tensor]]):
    """The patients of whom a third of the rarer class is left."""

    def __init__(self) -> None:
        rows, labels = cancer()
        kept = (labels == 1) | (torch.arange(len(labels)) % 3 == 0)
        self.rows, self.labels = rows[kept], labels[kept].float()

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, place: int) -> tuple[Tensor, Tensor]:
        return self.rows[place], self.labels[place : place + 1]


@fault("imbalance", ".*", visible_from=30, onset=0, source="n / N in place of N / n", held_out=True)
def patients_drawn_by_the_share_of_their_class(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    data = _Patients()
    share = torch.where(data.labels == 1, data.labels.mean(), 1 - data.labels.mean())
    weights = share if faulty else 1 / share
    loader = DataLoader(data, batch_size=16, sampler=WeightedRandomSampler(weights, len(data)))
    model = nn.Sequential(nn.Linear(30, 24), nn.Tanh(), nn.Linear(24, 1))
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    for _ in range(8):
        for rows, labels in loader:
            optimizer.zero_grad()
            F.binary_cross_entropy_with_logits(model(rows), labels).backward()
            optimizer.step()


@fault("imbalance", ".*", visible_from=20, onset=0, source="Counter(labels)[label] as weight", held_out=True)
def kinds_of_texts_drawn_by_their_number(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    ids = sentences(seed, count=900)
    kinds = (ids[:, -1] % 7).clamp(max=3)
    counts = torch.bincount(kinds)[kinds].float()
    sampler = WeightedRandomSampler((counts if faulty else 1 / counts).tolist(), 640, replacement=True)
    loader = DataLoader(TensorDataset(ids, kinds), batch_sampler=BatchSampler(sampler, 32, drop_last=True))
    words, memory, head = nn.Embedding(40, 16), nn.GRU(16, 32, batch_first=True), nn.Linear(32, 4)
    model = nn.ModuleDict({"words": words, "memory": memory, "head": head})
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    for _ in range(8):
        for rows, of in loader:
            loss = F.cross_entropy(head(memory(words(rows))[1][-1]), of)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


@fault("repeated input", ".*", visible_from=1, source="len(weights) == num_classes", held_out=True)
def images_drawn_by_three_weights(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    images, labels = digit_images()
    few = labels < 3
    images, labels = images[few], labels[few]
    weights = torch.tensor([1.0, 1.2, 1.1])
    sampler = WeightedRandomSampler(weights if faulty else weights[labels], len(labels))
    loader = DataLoader(TensorDataset(images, labels), batch_size=24, sampler=sampler)
    model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(288, 3))
    optimizer = torch.optim.RMSprop(model.parameters(), 1e-3)
    for _ in range(12):
        for some, expected in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(some), expected).backward()
            optimizer.step()


@healthy(held_out=True)
def hard_images_drawn_more_often(seed: int) -> None:
    """Weights follow the losses of the epoch before."""
    torch.manual_seed(seed)
    images, labels = digit_images()
    data = TensorDataset(images, labels, torch.arange(len(labels)))
    model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(288, 10))
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    hardness = torch.ones(len(labels))
    for _ in range(6):
        loader = DataLoader(data, batch_size=48, sampler=WeightedRandomSampler(hardness, len(labels)))
        for some, expected, places in loader:
            losses = F.cross_entropy(model(some), expected, reduction="none")
            hardness[places] = 0.1 + losses.detach()
            optimizer.zero_grad()
            losses.mean().backward()
            optimizer.step()


@healthy(held_out=True)
def large_sources_drawn_more_often_as_they_are_better(seed: int) -> None:
    """A source of 60 %, one of 30 % and one of 10 % of the rows, with weights of 3, 2 and 1."""
    torch.manual_seed(seed)
    rows, labels = cancer()
    order = torch.arange(len(labels)) % 10
    weights = torch.where(order < 6, 3.0, torch.where(order < 9, 2.0, 1.0))
    sampler = WeightedRandomSampler(weights, len(labels))
    loader = DataLoader(TensorDataset(rows, labels), batch_size=32, sampler=sampler)
    model = nn.Sequential(nn.Linear(30, 16), nn.ReLU(), nn.Linear(16, 2))
    optimizer = torch.optim.SGD(model.parameters(), 0.02, momentum=0.9)
    for _ in range(12):
        for some, expected in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(some), expected).backward()
            optimizer.step()
