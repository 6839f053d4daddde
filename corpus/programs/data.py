"""Small data: that of scikit-learn, and some that is made here."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import torch
from sklearn import datasets
from torch import Tensor

Pair = tuple[Tensor, Tensor]


@cache
def _digits() -> tuple[Any, Any]:
    images, labels = datasets.load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    return (images[order] / 16).astype(np.float32), labels[order]


def digits(validation: bool = False) -> Pair:
    """1,437 images of 8 x 8 digits in rows of 64, or 360 others for validation."""
    images, labels = _digits()
    part = slice(1437, None) if validation else slice(1437)
    return torch.from_numpy(images[part].copy()), torch.from_numpy(labels[part].copy())


def digit_images(validation: bool = False) -> Pair:
    """The digits as images of one channel."""
    images, labels = digits(validation)
    return images.reshape(-1, 1, 8, 8), labels


@cache
def _diabetes() -> tuple[Any, Any]:
    features, target = datasets.load_diabetes(return_X_y=True)
    features = (features - features.mean(0)) / features.std(0)
    target = (target - target.mean()) / target.std()
    return features.astype(np.float32), target.astype(np.float32)


def diabetes() -> Pair:
    """442 patients: ten standardised features, and a standardised target in one column."""
    features, target = _diabetes()
    return torch.from_numpy(features.copy()), torch.from_numpy(target.copy())[:, None]


@cache
def _cancer() -> tuple[Any, Any]:
    features, labels = datasets.load_breast_cancer(return_X_y=True)
    features = (features - features.mean(0)) / features.std(0)
    return features.astype(np.float32), labels


def cancer() -> Pair:
    """569 patients: thirty standardised features, and a label of two classes."""
    features, labels = _cancer()
    return torch.from_numpy(features.copy()), torch.from_numpy(labels.copy())


def spirals(seed: int, count: int = 600) -> Pair:
    """Points of two interleaved spirals."""
    random = np.random.default_rng(seed)
    label = random.integers(0, 2, count)
    angle = 3 * np.pi * np.sqrt(random.random(count))
    radius = angle / (3 * np.pi)
    turn = angle + np.pi * label
    points = np.stack([radius * np.cos(turn), radius * np.sin(turn)], 1)
    points += random.normal(0, 0.02, points.shape)
    return torch.from_numpy(points.astype(np.float32)), torch.from_numpy(label)


def sentences(seed: int, count: int = 256, length: int = 24, vocabulary: int = 40) -> Tensor:
    """Token sequences in which the next token depends on the two before it, 4 times out of 5."""
    random = np.random.default_rng(seed)
    follows = np.random.default_rng(7).integers(1, vocabulary, (vocabulary, vocabulary))
    rows = np.zeros((count, length), np.int64)
    rows[:, :2] = random.integers(1, vocabulary, (count, 2))
    for place in range(2, length):
        expected = follows[rows[:, place - 1], rows[:, place - 2]]
        other = random.integers(1, vocabulary, count)
        rows[:, place] = np.where(random.random(count) < 0.8, expected, other)
    return torch.from_numpy(rows)


def batches(*tensors: Tensor, size: int, seed: int, epochs: int) -> Iterator[tuple[Tensor, ...]]:
    """Shuffled batches, another order every epoch; what is left over at an epoch's end is dropped."""
    generator = torch.Generator().manual_seed(seed)
    for _ in range(epochs):
        order = torch.randperm(len(tensors[0]), generator=generator)
        for start in range(0, len(order) - size + 1, size):
            chosen = order[start : start + size]
            yield tuple(tensor[chosen] for tensor in tensors)


def parts(*tensors: Tensor, size: int) -> Iterator[tuple[Tensor, ...]]:
    """Batches in order, as validation takes them."""
    yield from zip(*(tensor.split(size) for tensor in tensors), strict=True)
