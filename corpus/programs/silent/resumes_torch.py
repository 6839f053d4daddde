"""Trainings that go on from a checkpoint, with all of it or with a part."""

from __future__ import annotations

import copy

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from corpus.cases import fault, healthy
from corpus.programs.data import batches, diabetes, digits


def classifier() -> nn.Sequential:
    return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))


@fault(
    "learning rate", r".*", visible_from=110, onset=110, source="optimizer_state_dict unused", held_out=False
)
def resume_without_moments(seed: int, faulty: bool) -> None:
    """The checkpoint has the state of Adam, and the script that goes on loads the weights alone."""
    torch.manual_seed(seed)
    model = classifier()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for part in range(2):
        if part:
            saved = copy.deepcopy({"model": model.state_dict(), "optimizer": optimizer.state_dict()})
            model = classifier()
            model.load_state_dict(saved["model"])
            optimizer = torch.optim.Adam(model.parameters(), 1e-3)
            if not faulty:
                optimizer.load_state_dict(saved["optimizer"])
        for some, expected in batches(*digits(), size=64, seed=seed + part, epochs=5):
            optimizer.zero_grad()
            F.cross_entropy(model(some), expected).backward()
            optimizer.step()


@fault(
    "learning rate", r".*", visible_from=176, onset=176, source="scheduler not in checkpoint", held_out=False
)
def schedule_that_begins_anew(seed: int, faulty: bool) -> None:
    """The state of the optimizer is loaded, and the schedule is made as at the start."""
    torch.manual_seed(seed)
    features, wanted = diabetes()
    saved: dict[str, dict[str, object]] = {}
    for _ in range(2):
        model = nn.Sequential(nn.Linear(10, 48), nn.Tanh(), nn.Linear(48, 1))
        optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 360)
        if saved:
            model.load_state_dict(saved["model"])
            optimizer.load_state_dict(saved["optimizer"])
            if faulty:
                schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 360)
                for group in optimizer.param_groups:
                    group["lr"] = group["initial_lr"]
            else:
                schedule.load_state_dict(saved["schedule"])
        for some, expected in batches(features, wanted, size=20, seed=seed, epochs=8):
            optimizer.zero_grad()
            F.mse_loss(model(some), expected).backward()
            optimizer.step()
            schedule.step()
        parts = {"model": model, "optimizer": optimizer, "schedule": schedule}
        saved = {name: copy.deepcopy(part.state_dict()) for name, part in parts.items()}


# Healthy trainings that resemble them


@healthy(held_out=False)
def fine_tuned_at_a_tenth_of_the_rate(seed: int) -> None:
    """The weights of a training are loaded into a new model, which is trained on with a smaller rate."""
    torch.manual_seed(seed)
    model = classifier()
    for part, rate in enumerate((2e-3, 2e-4)):
        before, model = model, classifier()
        model.load_state_dict(before.state_dict())
        optimizer = torch.optim.Adam(model.parameters(), rate)
        for some, expected in batches(*digits(), size=64, seed=seed + part, epochs=5):
            optimizer.zero_grad()
            F.cross_entropy(model(some), expected).backward()
            optimizer.step()


@healthy(held_out=False)
def clients_that_begin_with_shared_weights(seed: int) -> None:
    """Federated learning: each client has a model and an optimizer of its own; the server takes the mean."""
    torch.manual_seed(seed)
    server = classifier()
    inputs, labels = digits()
    for _ in range(2):
        trained = []
        for client in range(3):
            model = copy.deepcopy(server)
            optimizer = torch.optim.Adam(model.parameters(), 1e-3)
            own = slice(client, None, 3)
            for some, expected in batches(inputs[own], labels[own], size=32, seed=seed, epochs=5):
                optimizer.zero_grad()
                F.cross_entropy(model(some), expected).backward()
                optimizer.step()
            trained.append(model.state_dict())
        server.load_state_dict({name: sum(each[name] for each in trained) / 3 for name in trained[0]})


@healthy(held_out=False)
def the_next_task_with_the_weights_of_the_last(seed: int) -> None:
    """Continual learning: a copy of the model learns other labels, with an optimizer of its own."""
    torch.manual_seed(seed)
    model = classifier()
    inputs, labels = digits()
    for task in range(2):
        model = copy.deepcopy(model)
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        wanted = (labels + 3 * task) % 10
        for some, expected in batches(inputs, wanted, size=64, seed=seed + task, epochs=6):
            optimizer.zero_grad()
            F.cross_entropy(model(some), expected).backward()
            optimizer.step()
