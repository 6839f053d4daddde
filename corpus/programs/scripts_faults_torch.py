"""Faults in trainings as longer scripts write them: data loaders, models in classes, several phases.

Most were not shown to the rules. It is long because each program stands alone, as people write them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from sklearn import datasets
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812
from torch.utils.data import DataLoader, TensorDataset

from corpus.cases import fault, layer, tensor
from corpus.programs.scripts_healthy_torch import Digits, loader

LATE = 70
"""The step at which faults begin that are not there from the start."""


class Net(nn.Module):
    """A convolutional backbone, and a head."""

    def __init__(self, dropout: float = 0.0):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()
        )
        self.hidden = nn.Linear(192, 48)
        self.dropout = nn.Dropout(dropout)
        self.classifier = nn.Linear(48, 10)

    def forward(self, images: Tensor) -> Tensor:
        return self.classifier(self.dropout(F.relu(self.hidden(self.backbone(images)))))


def wine() -> tuple[Tensor, Tensor]:
    """178 wines as they are: one feature is near 750, most are near 1."""
    features, labels = datasets.load_wine(return_X_y=True)
    return torch.tensor(features).float(), torch.tensor(labels)


@fault(
    "lost update",
    r".*",
    visible_from=1,
    onset=0,
    source="zero_grad() between backward() and step()",
    held_out=False,
    also=("no gradient",),
)
def gradients_cleared_before_the_step(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    for _ in range(5):
        for images, labels in loader(Digits("train"), seed):
            if not faulty:
                optimizer.zero_grad()
            F.cross_entropy(model(images), labels).backward()
            if faulty:
                optimizer.zero_grad()
            optimizer.step()


@fault(
    "no gradient",
    "classifier",
    source="the head was replaced after the optimizer was made",
    held_out=True,
    also=("lost update",),
)
def head_replaced_too_late(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    model.classifier = nn.Linear(48, 10)
    if not faulty:
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for _ in range(5):
        for images, labels in loader(Digits("train"), seed):
            optimizer.zero_grad()
            F.cross_entropy(model(images), labels).backward()
            optimizer.step()


class Frozen(Net):
    """The features are computed without a graph, as in an evaluation."""

    def forward(self, images: Tensor) -> Tensor:
        with torch.no_grad():
            features = self.backbone(images)
        return self.classifier(F.relu(self.hidden(features)))


@fault("no gradient", "backbone", source="torch.no_grad() around the features", held_out=True)
def features_without_a_graph(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = Frozen() if faulty else Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    for _ in range(5):
        for images, labels in loader(Digits("train"), seed):
            optimizer.zero_grad()
            F.cross_entropy(model(images), labels).backward()
            optimizer.step()


@fault(
    "lost update",
    r".*",
    visible_from=1,
    onset=0,
    source="a rate of fine-tuning in bfloat16: every update is rounded away",
    held_out=True,
    also=("precision", "learning rate"),
)
def updates_that_bfloat16_rounds_away(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = Net().bfloat16()
    optimizer = torch.optim.SGD(model.parameters(), 1e-8 if faulty else 0.2)
    for _ in range(5):
        for images, labels in loader(Digits("train"), seed):
            optimizer.zero_grad()
            F.cross_entropy(model(images.bfloat16()).float(), labels).backward()
            optimizer.step()


@fault(
    "mode mismatch",
    r".*",
    visible_in="EVAL",
    source="dropout left on in the validation of a model in a class",
    held_out=True,
)
def validation_with_dropout(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = Net(dropout=0.4)
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    for _ in range(4):
        for images, labels in loader(Digits("train"), seed):
            optimizer.zero_grad()
            F.cross_entropy(model(images), labels).backward()
            optimizer.step()
        model.train(faulty)
        with torch.inference_mode():
            for images, labels in DataLoader(Digits("test"), 100):
                F.cross_entropy(model(images), labels)
        model.train()


@fault(
    "repeated input",
    r"input",
    visible_from=1,
    onset=0,
    source="next(iter(loader)) at every step",
    held_out=True,
)
def loader_begun_anew_at_each_step(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    data = Digits("train")
    source: Iterator[Any] = iter(())
    for _ in range(100):
        images, labels = next(source, (None, None))
        if images is None or faulty:
            source = iter(DataLoader(data, 64, drop_last=True))
            images, labels = next(source)
        optimizer.zero_grad()
        F.cross_entropy(model(images), labels).backward()
        optimizer.step()


@fault("unscaled input", r"input", source="one raw feature a thousand times the others", held_out=True)
def wines_as_they_are(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    features, labels = wine()
    if not faulty:
        features = (features - features.mean(0)) / features.std(0)
    model = nn.Sequential(nn.Linear(13, 32), nn.ReLU(), nn.Linear(32, 3))
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    for _ in range(20):
        for some, expected in loader(TensorDataset(features, labels), seed, size=32):
            optimizer.zero_grad()
            F.cross_entropy(model(some), expected).backward()
            optimizer.step()


@fault("padding", r"input|token", source="padding 87 % of tokens", held_out=True)
def texts_padded_to_the_longest(seed: int, faulty: bool) -> None:
    """One long text makes all others 128 tokens long; nothing masks the padding."""
    torch.manual_seed(seed)
    tokens = torch.randint(1, 50, (600, 12))
    labels = (tokens > 25).sum(1).gt(6).long()
    if faulty:
        tokens = F.pad(tokens, (0, 116))
    embedding, body = nn.Embedding(50, 24), nn.GRU(24, 24, batch_first=True)
    head = nn.Linear(24, 2)
    model = nn.ModuleList([embedding, body, head])
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for _ in range(6):
        for some, expected in loader(TensorDataset(tokens, labels), seed, size=40):
            optimizer.zero_grad()
            F.cross_entropy(head(body(embedding(some))[1][0]), expected).backward()
            optimizer.step()


@fault(
    "loss input",
    r"loss|target|label|output",
    source="an output of shape [n] beside a target of shape [n, 1]",
    held_out=False,
    also=("not learning",),
)
def huber_loss_of_all_pairs(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    features, target = datasets.make_regression(600, 8, noise=5, random_state=seed)
    rows = torch.tensor(features).float(), torch.tensor(target / target.std()).float()[:, None]
    model = nn.Sequential(nn.Linear(8, 32), nn.SiLU(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    for _ in range(10):
        for some, wanted in loader(TensorDataset(*rows), seed, size=50):
            output = model(some)
            optimizer.zero_grad()
            F.huber_loss(output[:, 0] if faulty else output, wanted).backward()
            optimizer.step()


@fault(
    "loss input",
    r"loss|sigmoid|input|output|logits|BCE",
    source="sigmoid before BCEWithLogitsLoss",
    held_out=True,
)
def sigmoid_before_the_loss_with_logits(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    features, labels = datasets.load_breast_cancer(return_X_y=True)
    features = (features - features.mean(0)) / features.std(0)
    rows = TensorDataset(torch.tensor(features).float(), torch.tensor(labels).float()[:, None])
    model = nn.Sequential(nn.Linear(30, 20), nn.ReLU(), nn.Linear(20, 1))
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for _ in range(10):
        for some, expected in loader(rows, seed, size=50):
            output = model(some)
            optimizer.zero_grad()
            criterion(torch.sigmoid(output) if faulty else output, expected).backward()
            optimizer.step()


@fault(
    "learning rate",
    r".*",
    visible_from=10,
    onset=0,
    source="an integer division in the warm-up",
    held_out=False,
    also=("not learning", "lost update"),
)
def warm_up_that_stays_at_zero(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1, step // 500) if faulty else min(1.0, step / 20)
    )
    for _ in range(6):
        for images, labels in loader(Digits("train"), seed):
            optimizer.zero_grad()
            F.cross_entropy(model(images), labels).backward()
            optimizer.step()
            schedule.step()


@fault(
    "learning rate",
    r".*",
    visible_from=2,
    onset=0,
    source="stackoverflow 37624102",
    held_out=True,
    also=("exploding",),
)
def loss_summed_over_the_batch(seed: int, faulty: bool) -> None:
    """The rate is meant for a mean over 64 rows, and the loss is their sum."""
    torch.manual_seed(seed)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.2)
    criterion = nn.CrossEntropyLoss(reduction="sum" if faulty else "mean")
    for _ in range(5):
        for images, labels in loader(Digits("train"), seed):
            optimizer.zero_grad()
            criterion(model(images), labels).backward()
            optimizer.step()


@fault(
    "exploding",
    r".*",
    visible_from=LATE,
    source="a missing value in one row",
    held_out=True,
    also=("corruption", "unscaled input"),
)
def missing_value_in_one_row(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    features, labels = wine()
    features = (features - features.mean(0)) / features.std(0)
    model = nn.Sequential(nn.Linear(13, 24), nn.Tanh(), nn.Linear(24, 3))
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    step = 0
    for _ in range(25):
        for some, expected in loader(TensorDataset(features, labels), seed, size=32):
            if faulty and step == LATE:
                some[3, 5] = float("nan")
            optimizer.zero_grad()
            F.cross_entropy(model(some), expected).backward()
            optimizer.step()
            step += 1


@fault(
    "bad initialisation",
    r".*",
    source="all weights set to zero",
    held_out=True,
    also=("not learning", "vanishing gradient", "dead activation"),
)
def weights_that_start_at_zero(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = Net()
    if faulty:
        for parameter in model.parameters():
            nn.init.zeros_(parameter)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(5):
        for images, labels in loader(Digits("train"), seed):
            optimizer.zero_grad()
            F.cross_entropy(model(images), labels).backward()
            optimizer.step()


@fault(
    "vanishing gradient",
    r".*",
    source="ten layers whose weights start at a hundredth",
    held_out=True,
    also=("bad initialisation",),
)
def deep_network_with_tiny_weights(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 40), nn.Tanh())
    for _ in range(8 if faulty else 2):
        model.extend([nn.Linear(40, 40), nn.Tanh()])
    model.append(nn.Linear(40, 10))
    if faulty:
        for module in model:
            if isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=0.01)
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    for _ in range(5):
        for images, labels in loader(Digits("train"), seed):
            optimizer.zero_grad()
            F.cross_entropy(model(images), labels).backward()
            optimizer.step()


@fault(
    "corruption",
    tensor("backbone.0.weight"),
    visible_from=LATE,
    source="arXiv 2604.00726",
    held_out=True,
)
def gradient_of_a_convolution_corrupted(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    step = 0
    for _ in range(6):
        for images, labels in loader(Digits("train"), seed):
            optimizer.zero_grad()
            F.cross_entropy(model(images), labels).backward()
            gradient = model.backbone[0].weight.grad
            if faulty and step == LATE and isinstance(gradient, Tensor):
                gradient.view(-1)[gradient.abs().argmax()] *= 2.0**15
            optimizer.step()
            step += 1


@fault(
    "corruption",
    tensor("hidden.weight"),
    visible_from=LATE + 1,
    onset=LATE,
    source="a weight's bit flips",
    held_out=True,
)
def exponent_of_a_weight_flips(seed: int, faulty: bool) -> None:
    """A weight near 0.05 is multiplied by 2 to the 8."""
    torch.manual_seed(seed)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    step = 0
    for _ in range(6):
        for images, labels in loader(Digits("train"), seed):
            optimizer.zero_grad()
            F.cross_entropy(model(images), labels).backward()
            optimizer.step()
            if faulty and step == LATE:
                with torch.no_grad():
                    model.hidden.weight[7, 11] = 0.05 * 2.0**8
            step += 1


@fault(
    "not learning",
    r".*",
    visible_from=30,
    onset=0,
    source="gradients clipped before they are unscaled",
    held_out=True,
    also=("learning rate", "scaler", "clipping"),
)
def gradients_clipped_while_scaled(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**14)
    for _ in range(5):
        for images, labels in loader(Digits("train"), seed):
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = F.cross_entropy(model(images), labels)
            scaler.scale(loss).backward()
            if not faulty:
                scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()


@fault(
    "overfitting",
    r".*",
    visible_from=60,
    onset=0,
    source="classic",
    held_out=True,
    also=("memorising",),
)
def thirty_rows_for_a_wide_network(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    random = np.random.default_rng(seed)
    inputs = torch.tensor(random.normal(size=(600, 10))).float()
    wanted = inputs[:, :1] + 0.5 * inputs[:, 1:2] + 0.5 * torch.randn(600, 1)
    count = 30 if faulty else 400
    model = nn.Sequential(nn.Linear(10, 200), nn.ReLU(), nn.Linear(200, 1))
    if not faulty:
        model = nn.Sequential(nn.Linear(10, 1))
    criterion = nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for _ in range(60 if faulty else 20):
        model.train()
        for some, expected in loader(TensorDataset(inputs[:count], wanted[:count]), seed, size=count // 3):
            optimizer.zero_grad()
            criterion(model(some), expected).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            criterion(model(inputs[400:]), wanted[400:])


@fault(
    "dead activation",
    layer("hidden", "act") + "|act",
    visible_from=LATE,
    source="one step far too large kills all rectifiers",
    held_out=True,
    also=("learning rate", "corruption", "spike", "exploding"),
)
def rectifiers_killed_by_one_step(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = nn.Sequential()
    model.add_module("flat", nn.Flatten())
    model.add_module("hidden", nn.Linear(64, 48))
    model.add_module("act", nn.ReLU())
    model.add_module("classifier", nn.Linear(48, 10))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    step = 0
    for _ in range(6):
        for images, labels in loader(Digits("train"), seed):
            if faulty and step == LATE:
                with torch.no_grad():
                    model.get_parameter("hidden.bias").sub_(40)
            optimizer.zero_grad()
            F.cross_entropy(model(images), labels).backward()
            optimizer.step()
            step += 1
