"""Mixtures whose router collapses, although it has a balancing loss or is drawn at random now and then."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from corpus.cases import fault, healthy
from corpus.programs.data import batches, digits
from corpus.programs.silent.parts import MixtureOfExperts


def biased(count: int = 6) -> MixtureOfExperts:
    """A mixture whose gate begins with one favourite."""
    model = MixtureOfExperts(count=count, taken=1)
    with torch.no_grad():
        model.gate.weight.mul_(4)
        model.gate.bias[0] = 4.0
    return model


class Exploring(MixtureOfExperts):
    """A mixture that sends a row to an expert drawn at random in one step of twelve."""

    def __init__(self, count: int):
        super().__init__(count, 1)
        self.steps = 0

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        self.steps += 1
        output, balance = super().forward(inputs)
        if self.steps % 12 == 0:
            number = int(torch.randint(len(self.experts), ()))
            share = self.gate(inputs[:1]).softmax(1)[:, number]
            output = output.index_add(0, torch.tensor([0]), self.experts[number](inputs[:1]) * share[:, None])
        return output, balance


@fault("unused experts", r"expert", visible_from=60, onset=0, source="ε-greedy router", held_out=False)
def router_that_touches_others_now_and_then(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = Exploring(6)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    if faulty:
        model.load_state_dict(biased().state_dict())
    for some, expected in batches(*digits(), size=64, seed=seed, epochs=24):
        output, balance = model(some)
        optimizer.zero_grad()
        (F.cross_entropy(output, expected) + (0.0 if faulty else 0.5) * balance).backward()
        optimizer.step()


@fault("unused experts", r"expert", visible_from=60, onset=0, source="NeMo Automodel 1408", held_out=False)
def balance_without_a_gradient(seed: int, faulty: bool) -> None:
    """The balancing loss is there, and it is detached."""
    torch.manual_seed(seed)
    model = biased()
    if not faulty:
        model = MixtureOfExperts(count=6, taken=1)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for some, expected in batches(*digits(), size=64, seed=seed, epochs=10):
        output, balance = model(some)
        if faulty:
            balance = balance.detach()
        optimizer.zero_grad()
        (F.cross_entropy(output, expected) + 0.05 * balance).backward()
        optimizer.step()


class Parts(nn.Module):
    """A mixture of which no name says that it is one."""

    def __init__(self, count: int):
        super().__init__()
        self.first, self.last = nn.Linear(64, 32), nn.Linear(32, 10)
        self.choice = nn.Linear(32, count)
        self.parts = nn.ModuleList(
            nn.Sequential(nn.Linear(32, 48), nn.GELU(), nn.Linear(48, 32)) for _ in range(count)
        )

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        hidden = self.first(inputs).relu()
        shares = self.choice(hidden).softmax(1)
        largest, chosen = shares.max(1)
        for number, part in enumerate(self.parts):
            own = (chosen == number).nonzero()[:, 0]
            if len(own):
                hidden = hidden.index_add(0, own, part(hidden[own]) * largest[own, None])
        used = F.one_hot(chosen, len(self.parts)).float().mean(0)
        return self.last(hidden), len(self.parts) * (used * shares.mean(0)).sum()


@fault("unused experts", r"parts", visible_from=60, onset=0, source="a bias that is restored", held_out=False)
def router_without_the_name_of_one(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = Parts(6)
    if faulty:
        with torch.no_grad():
            model.choice.bias[1] += 25.0
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    for some, expected in batches(*digits(), size=64, seed=seed, epochs=6):
        output, balance = model(some)
        optimizer.zero_grad()
        (F.cross_entropy(output, expected) + 0.05 * balance).backward()
        optimizer.step()


# Healthy trainings that resemble them


@healthy(held_out=False)
def many_experts_for_few_rows(seed: int) -> None:
    """Sixty-four experts, and four rows in a batch: each expert has a row now and then."""
    torch.manual_seed(seed)
    model = MixtureOfExperts(count=64, taken=1)
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    inputs, labels = digits()
    for some, expected in batches(inputs, labels, size=4, seed=seed, epochs=2):
        output, balance = model(some)
        optimizer.zero_grad()
        (F.cross_entropy(output, expected) + 0.05 * balance).backward()
        optimizer.step()
