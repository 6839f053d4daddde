"""Faults of trainings that go on from a checkpoint. No rule may be tuned on these."""

from __future__ import annotations

import io

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from corpus.cases import fault, healthy
from corpus.programs.data import batches, cancer, digit_images, digits, sentences


class Writer(nn.Module):
    """A recurrent network that writes the next token."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(40, 24)
        self.memory = nn.GRU(24, 48, batch_first=True)
        self.head = nn.Linear(48, 40)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.memory(self.words(ids))[0])


@fault("learning rate", r".*", visible_from=160, onset=160, source="only the weights uploaded", held_out=True)
def language_model_goes_on_with_a_fresh_optimizer(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    text = sentences(seed)
    file: io.BytesIO | None = None
    for _ in range(2):
        model = Writer()
        matrices = [parameter for parameter in model.parameters() if parameter.dim() > 1]
        others = [parameter for parameter in model.parameters() if parameter.dim() == 1]
        optimizer = torch.optim.AdamW([{"params": matrices}, {"params": others, "weight_decay": 0.0}], 2e-3)
        if file is not None:
            file.seek(0)
            saved = torch.load(file)
            model.load_state_dict(saved["model"])
            if not faulty:
                optimizer.load_state_dict(saved["optimizer"])
        for (ids,) in batches(text, size=16, seed=seed, epochs=10):
            loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        file = io.BytesIO()
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)


@fault("learning rate", r".*", visible_from=176, onset=176, source="StepLR made anew", held_out=True)
def convolutions_resumed_at_the_first_rate(seed: int, faulty: bool) -> None:
    """Neither the momentum nor the rate, which had fallen twice, is taken from the checkpoint."""
    torch.manual_seed(seed)
    saved: dict[str, dict[str, object]] = {}
    for part in range(2):
        model = nn.Sequential(
            nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(288, 10)
        )
        optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.3)
        if saved:
            model.load_state_dict(saved["model"])
        if saved and not faulty:
            optimizer.load_state_dict(saved["optimizer"])
            schedule.load_state_dict(saved["schedule"])
        for epoch in range(8):
            for some, expected in batches(*digit_images(), size=64, seed=seed + 8 * part + epoch, epochs=1):
                optimizer.zero_grad()
                F.cross_entropy(model(some), expected).backward()
                optimizer.step()
            schedule.step()
        saved = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "schedule": schedule.state_dict(),
        }


# Healthy trainings that resemble them


@healthy(held_out=True)
def student_that_begins_as_its_teacher(seed: int) -> None:
    """Self-distillation: a second network has the weights of the first, and learns from its answers, too."""
    torch.manual_seed(seed)
    teacher: nn.Module | None = None
    for part in range(2):
        model = nn.Sequential(nn.Linear(64, 80), nn.GELU(), nn.Linear(80, 10))
        if teacher is not None:
            model.load_state_dict(teacher.state_dict())
        optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
        for some, expected in batches(*digits(), size=48, seed=seed + part, epochs=5):
            given = model(some)
            loss = F.cross_entropy(given, expected)
            if teacher is not None:
                with torch.no_grad():
                    taught = teacher(some).softmax(-1)
                loss = F.kl_div(given.log_softmax(-1), taught, reduction="batchmean") + 0.1 * loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        teacher = model.eval()


@healthy(held_out=True)
def folds_that_begin_alike(seed: int) -> None:
    """Cross-validation: each fold has a model with the same first weights, and an optimizer of its own."""
    torch.manual_seed(seed)
    features, labels = cancer()
    first = nn.Sequential(nn.Linear(30, 24), nn.ReLU(), nn.Linear(24, 2)).state_dict()
    for fold in range(3):
        model = nn.Sequential(nn.Linear(30, 24), nn.ReLU(), nn.Linear(24, 2))
        model.load_state_dict(first)
        optimizer = torch.optim.Adam(model.parameters(), 2e-3)
        own = torch.arange(len(labels)) % 3 != fold
        for some, expected in batches(features[own], labels[own], size=32, seed=seed, epochs=8):
            optimizer.zero_grad()
            F.cross_entropy(model(some), expected).backward()
            optimizer.step()


@healthy(held_out=True)
def resumed_with_everything(seed: int) -> None:
    """Weights, moments and schedule go on where they were, in a new model and a new optimizer."""
    torch.manual_seed(seed)
    saved: dict[str, dict[str, object]] = {}
    for part in range(2):
        model = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 10))
        optimizer = torch.optim.NAdam(model.parameters(), 2e-3)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 5e-3, total_steps=240)
        if saved:
            model.load_state_dict(saved["model"])
            optimizer.load_state_dict(saved["optimizer"])
            schedule.load_state_dict(saved["schedule"])
        for some, expected in batches(*digits(), size=64, seed=seed + part, epochs=5):
            optimizer.zero_grad()
            F.cross_entropy(model(some), expected).backward()
            optimizer.step()
            schedule.step()
        saved = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "schedule": schedule.state_dict(),
        }


class OfImages(nn.Module):
    """A classifier of images with normalisation, as libraries of models initialise them."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, 12, 3, 1, 1, bias=False)
        self.second = nn.Conv2d(12, 16, 3, 2, 1, bias=False)
        self.norm, self.last_norm = nn.BatchNorm2d(12), nn.BatchNorm2d(16)
        self.head = nn.Linear(16, 10)
        for convolution in (self.first, self.second):
            nn.init.kaiming_normal_(convolution.weight, mode="fan_out")

    def forward(self, images: Tensor) -> Tensor:
        hidden = self.last_norm(self.second(self.norm(self.first(images)).relu())).relu()
        output: Tensor = self.head(hidden.mean((2, 3)))
        return output


@fault(
    "no gradient",
    r"^OfImages_",
    visible_from=60,
    onset=0,
    source="pretrained=False, and requires_grad = False",
    held_out=True,
)
def backbone_of_images_that_was_never_trained(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = OfImages()
    for is_first in [False] if faulty else [True, False]:
        for parameter in model.parameters():
            parameter.requires_grad = is_first
        if not is_first:
            model.head = nn.Linear(16, 10)
        optimizer = torch.optim.Adam([each for each in model.parameters() if each.requires_grad], 3e-3)
        for some, expected in batches(*digit_images(), size=64, seed=seed + is_first, epochs=5):
            optimizer.zero_grad()
            F.cross_entropy(model(some), expected).backward()
            optimizer.step()
