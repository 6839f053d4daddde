"""Means of the weights that are validated and never updated, and healthy copies. For tuning rules."""

from __future__ import annotations

from copy import deepcopy

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from corpus.cases import fault, healthy
from corpus.programs.data import batches, digits, parts, sentences
from corpus.programs.healthy_torch import classifier


def losses_of(model: nn.Module, size: int = 60) -> float:
    """The validation loss of a model in batches."""
    model.eval()
    with torch.no_grad():
        losses = [F.cross_entropy(model(some), of) for some, of in parts(*digits(validation=True), size=size)]
    return float(torch.stack(losses).mean())


@fault("no gradient", ".*", visible_from=110, onset=0, source="ema.update(model) forgotten", held_out=False)
def validated_mean_that_nobody_updates(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = classifier()
    mean = deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for epoch in range(8):
        model.train()
        for some, expected in batches(*digits(), size=48, seed=seed + 97 * epoch, epochs=1):
            loss = F.cross_entropy(model(some), expected)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if not faulty:
                for ours, theirs in zip(mean.parameters(), model.parameters(), strict=True):
                    ours.lerp_(theirs.detach(), 0.02)
        losses_of(mean)


@fault("no gradient", ".*", visible_from=110, onset=0, source="swa_start beyond the end", held_out=False)
def averaged_model_that_would_begin_after_the_end(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(64, 80), nn.LayerNorm(80), nn.SiLU(), nn.Linear(80, 10))
    mean = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.98))
    begin = 1000 if faulty else 1
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    for epoch in range(8):
        model.train()
        for some, expected in batches(*digits(), size=64, seed=seed + 97 * epoch, epochs=1):
            loss = F.cross_entropy(model(some), expected, label_smoothing=0.1)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if epoch >= begin:
                mean.update_parameters(model)
        losses_of(mean)


class _Writer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.memory = nn.Embedding(40, 24), nn.LSTM(24, 48, batch_first=True)
        self.next = nn.Linear(48, 40)

    def forward(self, ids: Tensor) -> Tensor:
        output: Tensor = self.next(self.memory(self.words(ids))[0])
        return output


@fault(
    "no gradient", ".*", visible_from=110, onset=0, source="p = 0.99 * p + 0.01 * q in a loop", held_out=False
)
def writer_whose_mean_is_a_name_in_a_loop(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = _Writer()
    mean = deepcopy(model)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    ids = sentences(seed, count=640)
    for epoch in range(9):
        model.train()
        for (rows,) in batches(ids[:512], size=32, seed=seed + 97 * epoch, epochs=1):
            loss = F.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            with torch.no_grad():
                for own, new in zip(mean.parameters(), model.parameters(), strict=True):
                    if faulty:
                        own = 0.95 * own + 0.05 * new
                    else:
                        own.mul_(0.95).add_(new, alpha=0.05)
        mean.eval()
        with torch.no_grad():
            for (rows,) in parts(ids[512:], size=16):
                F.cross_entropy(mean(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())


@healthy(held_out=False)
def compared_with_its_own_beginning_after_each_epoch(seed: int) -> None:
    """How much better than at first, on the same rows."""
    torch.manual_seed(seed)
    model = classifier()
    first = deepcopy(model)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for epoch in range(8):
        model.train()
        for some, expected in batches(*digits(), size=48, seed=seed + 97 * epoch, epochs=1):
            loss = F.cross_entropy(model(some), expected)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        losses_of(model)
        losses_of(first)


@healthy(held_out=False)
def served_copy_that_is_replaced_now_and_then(seed: int) -> None:
    """The best weights so far are kept in a copy, which is validated alone from time to time."""
    torch.manual_seed(seed)
    model = classifier()
    best = deepcopy(model)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    lowest = float("inf")
    for epoch in range(10):
        model.train()
        for some, expected in batches(*digits(), size=48, seed=seed + 97 * epoch, epochs=1):
            loss = F.cross_entropy(model(some), expected)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        now = losses_of(model)
        if now < lowest:
            lowest = now
            best.load_state_dict(model.state_dict())
        losses_of(best)


@healthy(held_out=False)
def its_own_beginning_compared_with_it(seed: int) -> None:
    """The untrained weights are validated first, then those of now."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10))
    first = deepcopy(model)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for epoch in range(8):
        model.train()
        for some, expected in batches(*digits(), size=48, seed=seed + 97 * epoch, epochs=1):
            loss = F.cross_entropy(model(some), expected)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        losses_of(first)
        losses_of(model)
