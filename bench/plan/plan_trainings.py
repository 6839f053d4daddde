"""The trainings of `bench.plan.plan_price`, and what watches them: the default plan, and its peers."""

from __future__ import annotations

import gc
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

os.environ.setdefault("SMDEBUG_LOG_LEVEL", "error")
logging.disable(logging.WARNING)

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812
from torch.optim import optimizer

import smdebug.pytorch as smd
from smdebug.pytorch.listening.process import CRITERIA, PROCESS

FOLDER = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


class Block(nn.Module):
    """Two convolutions around which the input is added."""

    def __init__(self, before: int, after: int):
        super().__init__()
        stride = 1 if before == after else 2
        self.conv1 = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.bn1, self.bn2 = nn.BatchNorm2d(after), nn.BatchNorm2d(after)
        self.short: nn.Module = nn.Identity()
        if before != after:
            self.short = nn.Conv2d(before, after, 1, stride, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inside = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(inside + self.short(x))


def mlp() -> tuple[nn.Module, torch.Tensor]:
    layers = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    return layers, torch.randn(32, 64)


def resnet() -> tuple[nn.Module, torch.Tensor]:
    """A ResNet-18: 11.2 million parameters."""
    widths = [64, 64, 64, 128, 128, 256, 256, 512, 512]
    blocks = [Block(before, after) for before, after in pairwise(widths)]
    model = nn.Sequential(
        nn.Conv2d(3, 64, 3, 1, 1, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        *blocks,
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(512, 10),
    )
    return model, torch.randn(8, 3, 32, 32)


def transformer(width: int = 256, layers: int = 4) -> tuple[nn.Module, torch.Tensor]:
    """A Transformer of 3.4 million parameters."""
    layer = nn.TransformerEncoderLayer(width, 4, 4 * width, 0.1, batch_first=True)
    model = nn.Sequential(
        nn.Embedding(1000, width),
        nn.TransformerEncoder(layer, layers),
        nn.Linear(width, 10),
        nn.Flatten(),
        nn.Linear(640, 10),
    )
    return model, torch.randint(0, 1000, (16, 64))


def small_transformer() -> tuple[nn.Module, torch.Tensor]:
    """A Transformer of 170,000 parameters."""
    return transformer(64, 2)


class UNet(nn.Module):
    """A network of convolutions down and up again, of 34,000 parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.down, self.deep, self.bottom = _conv(3, 16), _conv(16, 32), _conv(32, 32)
        self.up = nn.ConvTranspose2d(32, 16, 2, 2)
        self.out = _conv(32, 16)
        self.head = nn.Conv2d(16, 10, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        before = self.down(x)
        inside = self.bottom(self.deep(F.max_pool2d(before, 2)))
        return self.head(self.out(torch.cat([before, self.up(inside)], 1))).mean((2, 3))


def _conv(before: int, after: int) -> nn.Module:
    return nn.Sequential(nn.Conv2d(before, after, 3, padding=1), nn.GroupNorm(4, after), nn.SiLU())


def unet() -> tuple[nn.Module, torch.Tensor]:
    return UNet(), torch.randn(8, 3, 32, 32)


class Training:
    """A model, its data, and an optimizer."""

    def __init__(self, make: Callable[[], tuple[nn.Module, torch.Tensor]]):
        torch.manual_seed(0)
        self.model, self.inputs = make()
        self.labels = torch.randint(0, 10, (len(self.inputs),))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.001)

    def step(self) -> float:
        """Train a step; return the seconds that it took."""
        begin = time.perf_counter()
        self.optimizer.zero_grad()
        F.cross_entropy(self.model(self.inputs), self.labels).backward()
        self.optimizer.step()
        return time.perf_counter() - begin

    def steps(self, first: int, last: int) -> list[float]:
        """Train these steps; return the seconds of each."""
        with no_collection():
            return [self.step() for _ in range(first, last)]


@contextmanager
def no_collection() -> Iterator[None]:
    """Keep the garbage collector out of what is timed."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@contextmanager
def no_callbacks() -> Iterator[None]:
    """Make PyTorch what it is without the library: some callbacks are called for every training."""
    hooks = (optimizer._global_optimizer_pre_hooks, optimizer._global_optimizer_post_hooks)
    kept = [dict(known) for known in hooks]
    listeners = dict(PROCESS._listeners)
    replaced = [(torch.autograd, "backward"), *((F, name) for name in CRITERIA)]
    ours = [getattr(owner, name) for owner, name in replaced]
    for known in hooks:
        known.clear()
    PROCESS._listeners.update(dict.fromkeys(listeners, ()))
    for (owner, name), function in zip(replaced, ours, strict=True):
        setattr(owner, name, getattr(function, "__wrapped__", function))
    try:
        yield
    finally:
        for (owner, name), function in zip(replaced, ours, strict=True):
            setattr(owner, name, function)
        PROCESS._listeners.update(listeners)
        for known, before in zip(hooks, kept, strict=True):
            known.update(before)


@contextmanager
def the_plan(model: nn.Module, **options: Any) -> Iterator[None]:
    """A hook with a path, and options that select no tensors."""
    folder = tempfile.mkdtemp(dir=FOLDER)
    hook = smd.Hook(f"{folder}/run", **options)
    hook.register_module(model)
    hook.set_mode(smd.modes.TRAIN)
    try:
        yield
    finally:
        hook.close()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def items(model: nn.Module) -> Iterator[None]:
    """The mean of every module's output, by a hook with `.item()`, at every step."""
    means: list[float] = []

    def after(module: nn.Module, args: Any, output: torch.Tensor) -> None:
        first = output[0] if isinstance(output, tuple) else output  # attention returns two
        means.append(first.float().mean().item())

    handles = [module.register_forward_hook(after) for module in model.modules()]
    yield
    for handle in handles:
        handle.remove()


@contextmanager
def histograms(model: nn.Module) -> Iterator[None]:
    """A histogram of 64 bins of every gradient, when it is computed, at every step."""
    found: list[list[float]] = []

    def after(gradient: torch.Tensor) -> None:
        flat = gradient.detach().reshape(-1)
        low, high = flat.min().item(), flat.max().item()
        found.append(torch.histc(flat, 64, low, high).tolist())
        if len(found) > 1000:
            found.clear()

    handles = [parameter.register_hook(after) for parameter in model.parameters()]
    yield
    for handle in handles:
        handle.remove()
