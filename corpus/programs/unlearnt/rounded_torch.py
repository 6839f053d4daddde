"""Weights in 16 bits, some of whose updates are rounded away. Rules may be tuned on these."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from corpus.cases import fault, healthy
from corpus.programs.data import batches, digit_images, digits, sentences
from corpus.programs.healthy_torch import classifier


def train_in_16_bits(model: nn.Module, optimizer: torch.optim.Optimizer, seed: int, epochs: int = 6) -> None:
    """Train a classifier of digits, whose inputs have the type of its weights."""
    kind = next(model.parameters()).dtype
    for some, expected in batches(*digits(), size=32, seed=seed, epochs=epochs):
        loss = F.cross_entropy(model(some.to(kind)).float(), expected)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault(
    "lost update",
    r".*",
    visible_from=60,
    onset=0,
    source="model.to(torch.bfloat16) fine-tuned at 2e-5",
    held_out=False,
)
def fine_tuned_whole_in_bfloat16(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = classifier(width=96)
    train_in_16_bits(model, torch.optim.AdamW(model.parameters(), 1e-3), seed, epochs=1)
    if faulty:
        model.to(torch.bfloat16)
    train_in_16_bits(model, torch.optim.AdamW(model.parameters(), 2e-5), seed)


@fault(
    "lost update",
    r".*",
    visible_from=60,
    onset=0,
    source="autocast around a model whose weights were loaded in bfloat16",
    held_out=False,
)
def weights_loaded_in_bfloat16_for_autocast(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    kind = torch.bfloat16 if faulty else torch.float32
    model = nn.Sequential(
        nn.Embedding(40, 32, dtype=kind),
        nn.Linear(32, 64, dtype=kind),
        nn.GELU(),
        nn.Linear(64, 40, dtype=kind),
    )
    optimizer = torch.optim.Adam(model.parameters(), 3e-5)
    for (rows,) in batches(sentences(seed), size=16, seed=seed, epochs=12):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = model(rows[:, :-1])
            loss = F.cross_entropy(logits.float().flatten(0, 1), rows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault(
    "lost update",
    r".*",
    visible_from=60,
    onset=0,
    source="model.half() with momentum and a small rate",
    held_out=False,
    also=("learning rate",),
)
def convolutions_in_half_precision(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    kind = torch.float16 if faulty else torch.float32
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3), nn.ReLU(), nn.Conv2d(16, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(256, 10)
    ).to(kind)
    optimizer = torch.optim.SGD(model.parameters(), 2e-4 if faulty else 0.02, momentum=0.9)
    for some, expected in batches(*digit_images(), size=64, seed=seed, epochs=10):
        loss = F.cross_entropy(model(some.to(kind)).float(), expected)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault(
    "lost update",
    r".*",
    visible_from=60,
    onset=0,
    source="model.bfloat16() and SGD with momentum for the last epochs",
    held_out=False,
    also=("learning rate",),
)
def last_epochs_in_bfloat16_with_momentum(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = classifier(width=96)
    train_in_16_bits(model, torch.optim.SGD(model.parameters(), 0.05, momentum=0.9), seed, epochs=2)
    if faulty:
        model.bfloat16()
    train_in_16_bits(model, torch.optim.SGD(model.parameters(), 3e-4, momentum=0.9), seed)


class Stochastic(torch.optim.AdamW):
    """Rounds each weight up or down at random, so that the mean of many updates is kept."""

    @torch.no_grad()
    def step(self, closure: object = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for parameter in group["params"]:
                state = self.state[parameter]
                if not state:
                    state["first"], state["second"] = (torch.zeros(parameter.shape) for _ in range(2))
                gradient = parameter.grad.float()
                state["first"].lerp_(gradient, 0.1)
                state["second"].lerp_(gradient.square(), 0.01)
                exact = parameter.float() - group["lr"] * state["first"] / (state["second"].sqrt() + 1e-8)
                parameter.copy_(stochastically_rounded(exact))


def stochastically_rounded(exact: Tensor) -> Tensor:
    """Numbers in bfloat16 whose mean is that of these."""
    bits = exact.view(torch.int32)
    return ((bits + torch.randint_like(bits, 1 << 16)) & -65536).view(torch.float32).bfloat16()


@healthy(held_out=False)
def bfloat16_with_stochastic_rounding(seed: int) -> None:
    """At each step few of the weights change, and after some steps most have."""
    torch.manual_seed(seed)
    model = classifier(width=96).bfloat16()
    train_in_16_bits(model, Stochastic(model.parameters(), 5e-5), seed, epochs=8)


@healthy(held_out=False)
def bfloat16_copies_of_weights_in_float32(seed: int) -> None:
    """The optimizer has the weights in float32, and the model computes with copies of them."""
    torch.manual_seed(seed)
    model = classifier(width=96).bfloat16()
    masters = [nn.Parameter(parameter.detach().float()) for parameter in model.parameters()]
    optimizer = torch.optim.AdamW(masters, 2e-5)
    for some, expected in batches(*digits(), size=32, seed=seed, epochs=6):
        loss = F.cross_entropy(model(some.bfloat16()).float(), expected)
        model.zero_grad()
        loss.backward()
        for master, parameter in zip(masters, model.parameters(), strict=True):
            assert parameter.grad is not None
            master.grad = parameter.grad.float()
        optimizer.step()
        with torch.no_grad():
            for master, parameter in zip(masters, model.parameters(), strict=True):
                parameter.copy_(master)


@healthy(held_out=False)
def bfloat16_at_a_rate_that_warms_up_and_decays(seed: int) -> None:
    """At the lowest rates most updates are rounded away: at first, and at the end."""
    torch.manual_seed(seed)
    model = classifier(width=96).bfloat16()
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=360, div_factor=1e4)
    for some, expected in batches(*digits(), size=32, seed=seed, epochs=8):
        loss = F.cross_entropy(model(some.bfloat16()).float(), expected)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()


@healthy(held_out=False)
def bfloat16_with_momentum_that_has_learnt(seed: int) -> None:
    """Momentum of weights in bfloat16 at a usual rate: at the end little is left to learn."""
    torch.manual_seed(seed)
    model = classifier(width=96).bfloat16()
    train_in_16_bits(model, torch.optim.SGD(model.parameters(), 0.02, momentum=0.9), seed, epochs=8)
