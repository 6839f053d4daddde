"""Healthy trainings drawn at random: depth, width, optimizer, rate, batch, data. None may draw an alarm.

The ranges are those in which such trainings work, and training stops when validation gets no better.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sklearn import datasets
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from corpus.cases import Program

NAME = "random"
Rows = tuple[Tensor, Tensor]

BALL = "a ball in ten dimensions"
"""No plane tells its inside from its outside: a model without a hidden layer would learn nothing."""

ACTIVATIONS = (nn.ReLU, nn.Tanh, nn.GELU, nn.SiLU, nn.LeakyReLU, nn.ELU)
RATES = {"SGD": (0.01, 0.1), "Adam": (5e-4, 5e-3), "AdamW": (5e-4, 5e-3), "RMSprop": (3e-4, 2e-3)}
SCHEDULES = ("none", "cosine", "warm-up", "steps")


@dataclass(frozen=True)
class Plan:
    """What was drawn for one training."""

    data: str
    depth: int
    width: int
    activation: type[nn.Module]
    norm: str
    dropout: float
    optimizer: str
    rate: float
    momentum: float
    decay: float
    batch: int
    schedule: str
    clip: float | None
    validates: bool
    epochs: int

    def __str__(self) -> str:
        return (
            f"{self.data}, {self.depth} hidden layers of {self.width}, {self.activation.__name__}, "
            f"norm {self.norm}, dropout {self.dropout}, {self.optimizer} at {self.rate:.2g}, momentum "
            f"{self.momentum}, decay {self.decay}, batches of {self.batch}, schedule {self.schedule}, "
            f"clip {self.clip}, {self.epochs} epochs, {'with' if self.validates else 'no'} validation"
        )


def drawn(number: int) -> Plan:
    """The training of that number."""
    random = np.random.default_rng(number)
    depth = int(random.integers(0, 6))
    norm = "batch" if depth > 3 else str(random.choice(["none", "batch", "layer"]))
    optimizer = str(random.choice([*RATES]))
    low, high = RATES[optimizer]
    momentum = float(random.choice([0.0, 0.9])) if optimizer == "SGD" else 0.0
    rate = float(np.exp(random.uniform(math.log(low), math.log(high)))) * (1 if momentum else 2)
    width = int(np.exp(random.uniform(math.log(12), math.log(200))))
    data = str(random.choice([*DATA]))
    return Plan(
        data=data,
        depth=max(depth, 1) if data == BALL else depth,
        width=width,
        activation=ACTIVATIONS[int(random.integers(len(ACTIVATIONS)))],
        norm=norm,
        dropout=float(random.choice([0.0, 0.0, 0.1, 0.3])),
        optimizer=optimizer,
        rate=rate if optimizer == "SGD" else rate / 2,
        momentum=momentum,
        decay=float(random.choice([0.0, 1e-4, 1e-2])),
        batch=int(random.choice([16, 25, 32, 50, 64, 128])),
        schedule=str(random.choice(SCHEDULES)),
        clip=float(random.choice([0.5, 1.0, 5.0])) if random.random() < 0.4 else None,
        validates=bool(random.random() < 0.7),
        epochs=int(random.integers(5, 25)),
    )


def programs(count: int) -> Iterator[Program]:
    """So many random programs."""
    yield from (program(number) for number in range(count))


def program(number: int) -> Program:
    """The random program of that number; its seed is added to it."""
    return Program(f"{NAME} {number}", "pytorch", True, lambda seed: train(drawn(number), seed))


def train(plan: Plan, seed: int) -> float:
    """Train as planned, and return the last loss."""
    print(plan)
    torch.manual_seed(seed)
    rows, classes = DATA[plan.data](seed)
    held = len(rows[0]) // 5
    inputs, labels = rows[0][held:], rows[1][held:]
    model = _model(plan, inputs.shape[1], classes or 1)
    optimizer = _optimizer(plan, model)
    per_epoch = len(inputs) // plan.batch
    schedule = _schedule(plan, optimizer, plan.epochs * per_epoch)
    loss, best, waited = math.inf, math.inf, 0
    for _ in range(plan.epochs):
        model.train()
        order = torch.randperm(len(inputs))
        for number in range(per_epoch):
            chosen = order[number * plan.batch : (number + 1) * plan.batch]
            value = _loss(model(inputs[chosen]), labels[chosen])
            optimizer.zero_grad()
            value.backward()
            if plan.clip is not None:
                nn.utils.clip_grad_norm_(model.parameters(), plan.clip)
            optimizer.step()
            if schedule is not None:
                schedule.step()
            loss = value.item()
        if plan.validates:
            model.eval()
            with torch.no_grad():
                value = _loss(model(rows[0][:held]), rows[1][:held])
            best, waited = (value.item(), 0) if value < best else (best, waited + 1)
            if waited == 3:
                break
    return loss


def _loss(output: Tensor, labels: Tensor) -> Tensor:
    if labels.is_floating_point():
        return F.mse_loss(output[:, 0], labels)
    return F.cross_entropy(output, labels)


def _model(plan: Plan, given: int, classes: int) -> nn.Sequential:
    model = nn.Sequential()
    for _ in range(plan.depth):
        model.append(nn.Linear(given, plan.width))
        if plan.norm != "none":
            model.append((nn.BatchNorm1d if plan.norm == "batch" else nn.LayerNorm)(plan.width))
        model.append(plan.activation())
        if plan.dropout:
            model.append(nn.Dropout(plan.dropout))
        given = plan.width
    return model.append(nn.Linear(given, classes))


def _optimizer(plan: Plan, model: nn.Module) -> torch.optim.Optimizer:
    made: type[torch.optim.Optimizer] = getattr(torch.optim, plan.optimizer)
    more = {"momentum": plan.momentum} if plan.optimizer == "SGD" else {}
    return made(model.parameters(), lr=plan.rate, weight_decay=plan.decay, **more)  # type: ignore[call-arg]


def _schedule(plan: Plan, optimizer: torch.optim.Optimizer, steps: int) -> Any:
    schedules = torch.optim.lr_scheduler
    if plan.schedule == "cosine":
        return schedules.CosineAnnealingLR(optimizer, steps)
    if plan.schedule == "warm-up":
        return schedules.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / (0.1 * steps + 1)))
    if plan.schedule == "steps":
        return schedules.MultiStepLR(optimizer, [steps // 2, 3 * steps // 4])
    return None


def _scaled(features: Any, labels: Any, seed: int) -> Rows:
    order = np.random.default_rng(seed).permutation(len(labels))
    features = (features - features.mean(0)) / np.maximum(features.std(0), 0.1)
    labels = np.asarray(labels)[order]
    kind = torch.float32 if labels.dtype.kind == "f" else torch.int64
    return torch.tensor(features[order]).float(), torch.tensor(labels).to(kind)


def _digits(seed: int) -> tuple[Rows, int]:
    features, labels = datasets.load_digits(return_X_y=True)
    return _scaled(features, labels, seed), 10


def _cancer(seed: int) -> tuple[Rows, int]:
    return _scaled(*datasets.load_breast_cancer(return_X_y=True), seed), 2


def _diabetes(seed: int) -> tuple[Rows, int]:
    features, target = datasets.load_diabetes(return_X_y=True)
    return _scaled(features, (target - target.mean()) / target.std(), seed), 0


def _blobs(seed: int) -> tuple[Rows, int]:
    return _scaled(*datasets.make_blobs(900, 12, centers=6, random_state=seed), seed), 6


def _moons(seed: int) -> tuple[Rows, int]:
    return _scaled(*datasets.make_moons(1000, noise=0.15, random_state=seed), seed), 2


def _hastie(seed: int) -> tuple[Rows, int]:
    features, labels = datasets.make_hastie_10_2(1500, random_state=seed)
    return _scaled(features, (labels > 0).astype(int), seed), 2


def _friedman(seed: int) -> tuple[Rows, int]:
    features, target = datasets.make_friedman1(1200, noise=0.5, random_state=seed)
    return _scaled(features, (target - target.mean()) / target.std(), seed), 0


DATA: dict[str, Callable[[int], tuple[Rows, int]]] = {
    "digits": _digits,
    "breast cancer": _cancer,
    "diabetes": _diabetes,
    "blobs": _blobs,
    "moons": _moons,
    BALL: _hastie,
    "a smooth function": _friedman,
}
