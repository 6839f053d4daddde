"""Loaders that draw rows by weights: wrong ones, and healthy ones. Rules may be tuned on these."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

from corpus.cases import fault, healthy
from corpus.programs.data import digits


def _uneven() -> tuple[Tensor, Tensor]:
    """Digits of which the later ones are the rarer ones."""
    images, labels = digits()
    order = torch.arange(len(labels))
    kept = torch.cat([order[labels == digit][: 140 - 12 * digit] for digit in range(10)])
    return images[kept], labels[kept]


def _classify(seed: int, rows: Tensor, labels: Tensor, weights: Tensor, size: int = 32) -> None:
    torch.manual_seed(seed)
    sampler = WeightedRandomSampler(weights.tolist(), len(labels), replacement=True)
    loader = DataLoader(TensorDataset(rows, labels), batch_size=size, sampler=sampler, drop_last=True)
    model = nn.Sequential(nn.Linear(rows.shape[1], 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for _ in range(10):
        for some, expected in loader:
            loss = F.cross_entropy(model(some), expected)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


@fault("imbalance", ".*", visible_from=20, onset=0, source="weights = counts[labels]", held_out=False)
def rows_drawn_as_often_as_their_class_is_common(seed: int, faulty: bool) -> None:
    rows, labels = _uneven()
    counts = torch.bincount(labels).double()[labels]
    _classify(seed, rows, labels, counts if faulty else 1 / counts)


@fault(
    "repeated input",
    ".*",
    visible_from=1,
    source="WeightedRandomSampler(class_weights, len(dataset))",
    held_out=False,
)
def a_weight_for_each_class_in_place_of_each_row(seed: int, faulty: bool) -> None:
    rows, labels = _uneven()
    weights = 1 / torch.bincount(labels).double()
    _classify(seed, rows, labels, weights if faulty else weights[labels])


@healthy(held_out=False)
def clean_rows_drawn_more_often_than_noisy_ones(seed: int) -> None:
    """Four of five rows were checked, and weigh four times as much: as many times as they are more."""
    rows, labels = digits()
    checked = torch.arange(1435) % 5 > 0
    rows, labels = rows[:1435] + 0.1 * (~checked)[:, None] * torch.rand(1435, 64), labels[:1435]
    _classify(seed, rows, labels, torch.where(checked, 4.0, 1.0))


@healthy(held_out=False)
def classes_drawn_by_the_root_of_their_number(seed: int) -> None:
    rows, labels = _uneven()
    _classify(seed, rows, labels, torch.bincount(labels)[labels] ** -0.5)


@healthy(held_out=False)
def rows_drawn_with_equal_weights(seed: int) -> None:
    rows, labels = _uneven()
    _classify(seed, rows, labels, torch.ones(len(labels)))
