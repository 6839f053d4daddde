"""Trainings whose validation has rows of the training, and healthy ones. Rules may be tuned on these."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from corpus.cases import fault, healthy
from corpus.programs.data import batches, digits, parts
from corpus.programs.targets_torch import customers, houses, regressor


def classifier(inputs: int, classes: int, width: int = 32) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, classes))


def fit(model: nn.Module, train: tuple[Tensor, Tensor], held: tuple[Tensor, Tensor], seed: int) -> None:
    """Train for ten epochs, with a validation in batches after each."""
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for epoch in range(10):
        model.train()
        for some, expected in batches(*train, size=32, seed=seed + epoch, epochs=1):
            optimizer.zero_grad()
            F.cross_entropy(model(some), expected).backward()
            optimizer.step()
        validate(model, *held)


def validate(model: nn.Module, *held: Tensor) -> float:
    model.eval()
    with torch.no_grad():
        losses = [F.cross_entropy(model(some), expected).item() for some, expected in parts(*held, size=64)]
    return sum(losses) / len(losses)


@fault(
    "shared rows", r"input", visible_from=0, visible_in="EVAL", source="split twice, unseeded", held_out=False
)
def parts_of_two_random_splits(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    features, groups = customers(seed, 2400)
    order = torch.randperm(len(features))
    train = order[480:]
    held = torch.randperm(len(features))[:480] if faulty else order[:480]
    fit(classifier(10, 3), (features[train], groups[train]), (features[held], groups[held]), seed)


@healthy(held_out=False)
def losses_of_training_and_validation_rows(seed: int) -> None:
    """After each epoch the loss is computed of the training's rows as well, without gradients."""
    torch.manual_seed(seed)
    model = classifier(64, 10)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for epoch in range(8):
        model.train()
        for some, expected in batches(*digits(), size=32, seed=seed + epoch, epochs=1):
            optimizer.zero_grad()
            F.cross_entropy(model(some), expected).backward()
            optimizer.step()
        validate(model, *digits())
        validate(model, *digits(validation=True))


@healthy(held_out=False)
def validated_on_every_row_there_is(seed: int) -> None:
    """A surrogate for a simulation: what counts is how well it fits all known points, seen or not."""
    torch.manual_seed(seed)
    features, prices = houses(seed, 1600)
    model = regressor()
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    for epoch in range(8):
        model.train()
        for some, expected in batches(features[:1200], prices[:1200], size=40, seed=seed + epoch, epochs=1):
            optimizer.zero_grad()
            F.mse_loss(model(some), expected).backward()
            optimizer.step()
        model.eval()
        with torch.inference_mode():
            F.mse_loss(model(features), prices)
