"""Small trainings with PyTorch, watched or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import smdebug.pytorch as smd

EVERY_STEP = smd.SaveConfig(save_interval=1)


def since(version: str, why: str) -> pytest.MarkDecorator:
    """A test of what older versions of PyTorch do not have; the newest has all of it."""
    known, asked = ([int(n) for n in v.split(".")[:2]] for v in (torch.__version__, version))
    return pytest.mark.skipif(known < asked, reason=f"since PyTorch {version}: {why}")


class Net(nn.Module):
    """Two layers, and something in between."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(8, 4)
        self.relu = nn.ReLU()
        self.dropout = nn.Dropout(0.1)
        self.fc2 = nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc2(self.dropout(self.relu(self.fc1(x))))


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(5, 8), torch.randint(0, 3, (5,))


def hook_in(folder: Any, **settings: Any) -> smd.Hook:
    """Return a hook that by default saves everything at every step."""
    settings = {"save_config": EVERY_STEP, "save_all": True, **settings}
    return smd.Hook(str(folder), **settings)


def train(
    out_dir: Any = None,
    *,
    steps: int = 4,
    wrap: Callable[[nn.Module], Any] = lambda model: model,
    make: Callable[[], nn.Module] = Net,
    look: Callable[[nn.Module, torch.Tensor], object] = lambda model, loss: None,
    **settings: Any,
) -> nn.Module:
    """Train a model, always the same; `look` sees it just before each update."""
    torch.manual_seed(0)
    model = make()
    called, criterion = wrap(model), nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    hook = None
    if out_dir is not None:
        hook = hook_in(out_dir, **settings)
        hook.register_module(called)
        hook.register_loss(criterion)
    for _ in range(steps):
        inputs, labels = batch()
        optimizer.zero_grad()
        loss = criterion(called(inputs), labels)
        loss.backward()
        look(model, loss)
        optimizer.step()
    if hook is not None:
        hook.close()
    return model


def values(trial: Any, name: str) -> dict[int, np.ndarray[Any, Any]]:
    """Every value of a tensor, by step."""
    tensor = trial.tensor(name)
    return {step: tensor.value(step) for step in tensor.steps()}


def same(first: nn.Module, other: nn.Module) -> bool:
    """Return whether both have the same parameters and buffers, to the bit."""
    here, there = first.state_dict(), other.state_dict()
    return here.keys() == there.keys() and all(torch.equal(here[key], there[key]) for key in here)


def trial_of(run):
    return smd.create_trial(str(run))


def forward_of(model, *inputs, run, **settings):
    """The trial of one forward, and of its backward."""
    with hook_in(run, **settings) as hook:
        hook.register_module(model)
        output = model(*inputs)
        loss = output if isinstance(output, torch.Tensor) else next(iter(hook.tensors_in(output)))
        if loss.requires_grad:
            loss.sum().backward()
    return trial_of(run)


# Gradients


def gradient(run, name, step=0):
    return trial_of(run).tensor(f"gradient/{name}").value(step)
