"""What the default plan adds to a training on the CPU, with its peers in the same table.

    python -m bench.plan_price        prints the table; `make bench-hooks` does, too

Blocks of steps with and without a hook alternate in one process, and medians are compared. What is written
behind the training counts: the blocks are timed as a whole, too.
"""

from __future__ import annotations

import gc
import logging
import os
import resource
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import pairwise
from typing import Any

os.environ.setdefault("SMDEBUG_LOG_LEVEL", "error")
logging.disable(logging.WARNING)

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

import smdebug.pytorch as smd
from bench.measure import Table
from smdebug.pytorch.measuring import TorchMeasurer
from smdebug.saving.default_plan import save_config

FOLDER = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
STEPS = 10_000
_SCHEDULE = save_config().mode_save_configs[smd.modes.GLOBAL]


def is_due(step: int) -> bool:
    """Whether the default plan saves this step."""
    return step in _SCHEDULE.save_steps or step % _SCHEDULE.save_interval == 0


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
    layers = nn.Sequential(
        *(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    )
    return layers, torch.randn(32, 64)


def resnet() -> tuple[nn.Module, torch.Tensor]:
    """A ResNet-18: 11.2 million parameters."""
    widths = [64, 64, 64, 128, 128, 256, 256, 512, 512]
    blocks = [Block(before, after) for before, after in pairwise(widths)]
    model = nn.Sequential(
        *(nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU(), *blocks),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10)),
    )
    return model, torch.randn(8, 3, 32, 32)


def transformer() -> tuple[nn.Module, torch.Tensor]:
    """A Transformer of 3.4 million parameters."""
    layer = nn.TransformerEncoderLayer(256, 4, 1024, 0.1, batch_first=True)
    model = nn.Sequential(
        *(nn.Embedding(1000, 256), nn.TransformerEncoder(layer, 4), nn.Linear(256, 10)),
        *(nn.Flatten(), nn.Linear(640, 10)),
    )
    return model, torch.randint(0, 1000, (16, 64))


class Training:
    """A model, its data, and an optimizer."""

    def __init__(self, make: Callable[[], tuple[nn.Module, torch.Tensor]]):
        torch.manual_seed(0)
        self.model, self.inputs = make()
        self.labels = torch.randint(0, 10, (len(self.inputs),))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.001)

    def steps(self, first: int, last: int) -> list[float]:
        """Train these steps; return the seconds of each."""
        taken = []
        gc.collect()
        gc.disable()
        for _ in range(first, last):
            begin = time.perf_counter()
            self.optimizer.zero_grad()
            F.cross_entropy(self.model(self.inputs), self.labels).backward()
            self.optimizer.step()
            taken.append(time.perf_counter() - begin)
        gc.enable()
        return taken


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
        means.append(output.float().mean().item())

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


class Price:
    """What a step costs, in seconds."""

    def __init__(self, bare: float, idle: float, due: float):
        self.bare = bare
        self.idle = idle
        """Added to a step at which nothing is due."""
        self.due = due
        """Added by a step that is due, and to the next one, during which it is written."""

    @property
    def amortised(self) -> float:
        """The share that is added to the first 10,000 steps."""
        due = sum(map(is_due, range(STEPS)))
        return (due * self.due + (STEPS - due) * self.idle) / (STEPS * self.bare)


def price_of_plan(
    make: Callable[[], tuple[nn.Module, torch.Tensor]], steps: int, rounds: int, **options: Any
) -> Price:
    """Train so many steps with and without, in turn. The first ten steps do not count."""
    bare, idle, due = [], [], []
    for _ in range(rounds):
        plain = Training(make).steps(0, steps)[10:]
        training = Training(make)
        with the_plan(training.model, **options):
            taken = training.steps(0, steps)[10:]
        quiet = [t for step, t in enumerate(taken, 10) if not is_due(step) and not is_due(step - 1)]
        usual = statistics.median(quiet)
        loud = [  # a due step, with the step during which it is written
            taken[place] + taken[place + 1] - 2 * usual
            for place in range(len(taken) - 1)
            if is_due(place + 10) and not is_due(place + 11)
        ]
        bare.append(statistics.median(plain))
        idle.append(usual - bare[-1])
        due.append(statistics.median(loud))
    return Price(*(statistics.median(each) for each in (bare, idle, due)))


def price_of_peer(
    make: Callable[[], tuple[nn.Module, torch.Tensor]],
    around: Callable[[nn.Module], AbstractContextManager[None]],
    steps: int,
    rounds: int,
) -> float:
    """Train with and without, in turn; return the seconds added to a step."""
    added = []
    for _ in range(rounds):
        bare = statistics.median(Training(make).steps(0, steps))
        training = Training(make)
        with around(training.model):
            added.append(statistics.median(training.steps(0, steps)) - bare)
    return statistics.median(added)


def measuring_against_norm() -> float:
    """How many times as long it takes to measure 500 tensors of 64 Ki values as to compute their norms."""
    tensors = [torch.randn(1 << 16) for _ in range(500)]

    def measure() -> None:
        measurer = TorchMeasurer()
        for tensor in tensors:
            measurer.measure_tensor(tensor, digest=False)
        measurer.end_step()

    def seconds(call: Callable[[], object]) -> float:
        call()
        found = []
        for _ in range(9):
            begin = time.perf_counter()
            call()
            found.append(time.perf_counter() - begin)
        return statistics.median(found)

    return seconds(measure) / seconds(lambda: torch._foreach_norm(tensors))


def growth() -> float:
    """MB by which the process grows from step 2,000 to step 10,000 of the small training."""
    training = Training(mlp)
    with the_plan(training.model):
        training.steps(0, 2000)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        training.steps(2000, STEPS)
        return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


def price_table(rounds: int = 5) -> Table:
    """Return the table of the default plan's price."""
    table = Table("What the default plan adds to a training on the CPU")
    small = price_of_plan(mlp, 400, rounds)
    of_step = f"of {small.bare * 1e3:.2f} ms"
    table.row("MLP, a step with nothing due", f"{small.idle * 1e3:.3f} ms", of_step, "<= 0.02 ms")
    table.row("MLP, a due step", f"{small.due * 1e3:.2f} ms", of_step, "<= 0.6 ms")
    for name, options in (
        ("without system metrics", {"system_metrics": False}),
        ('evaluated beside it (evaluate="here")', {"evaluate": "here"}),
    ):
        other = price_of_plan(mlp, 400, rounds, **options)
        table.row(f"  {name}, nothing due", f"{other.idle * 1e3:.3f} ms", of_step, "")
        table.row(f"  {name}, a due step", f"{other.due * 1e3:.2f} ms", of_step, "")
    for name, peer in (("outputs' .item()", items), ("gradients' histograms", histograms)):
        added = price_of_peer(mlp, peer, 300, rounds)
        table.row(f"  peer: {name}, each step", f"{added * 1e3:.2f} ms")
    for name, make in (("ResNet-18", resnet), ("Transformer", transformer)):
        found = price_of_plan(make, 42, 1)
        table.row(
            f"{name}, a due step", f"{found.due * 1e3:.0f} ms", f"of {found.bare * 1e3:.0f} ms", ""
        )
        table.row(f"{name}, the first 10,000", f"{100 * found.amortised:.2f} %", "", "<= 1 %")
        for label, peer in (("outputs' .item()", items), ("gradients' histograms", histograms)):
            added = price_of_peer(make, peer, 6, 1)
            table.row(f"  peer: {label}, each step", f"{added * 1e3:.0f} ms")
    table.row("500 tensors of 64 Ki", f"{measuring_against_norm():.1f} norms", "", "<= 12")
    table.row("growth, step 2,000 to 10,000", f"{growth():.1f} MB", "", "none")
    return table


if __name__ == "__main__":
    torch.set_num_threads(2)
    print(price_table())
