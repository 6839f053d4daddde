"""Means of the weights that are validated and never change, and healthy copies. Not for tuning rules."""

from __future__ import annotations

from copy import deepcopy

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from corpus.cases import fault, healthy
from corpus.programs.data import batches, diabetes, digit_images, parts, sentences


class _Ema:
    """Keeps a mean of the weights of a model, as people write it."""

    def __init__(self, model: nn.Module, decay: float):
        self.module = deepcopy(model).eval()
        self.decay = decay

    @torch.no_grad()
    def update(self, model: nn.Module) -> None:
        for own, new in zip(self.module.state_dict().values(), model.state_dict().values(), strict=True):
            own.copy_(self.decay * own + (1 - self.decay) * new if own.is_floating_point() else new)


@fault("no gradient", ".*", visible_from=110, onset=0, source="decay = 1 - 1e-9 of a float32", held_out=True)
def denoiser_whose_mean_stands_still(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = nn.Sequential(
        nn.Conv2d(2, 24, 3, padding=1),
        nn.SiLU(),
        nn.Conv2d(24, 24, 3, padding=1),
        nn.SiLU(),
        nn.Conv2d(24, 1, 1),
    )
    ema = _Ema(model, 1.0 if faulty else 0.97)
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)

    def error(network: nn.Module, images: Tensor) -> Tensor:
        level = torch.rand(len(images), 1, 1, 1)
        noise = torch.randn_like(images)
        noisy = (1 - level) * images + level * noise
        return F.mse_loss(network(torch.cat([noisy, level.expand_as(noisy)], 1)), noise)

    for epoch in range(6):
        for (images,) in batches(digit_images()[0], size=32, seed=seed + 97 * epoch, epochs=1):
            loss = error(model, images)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            ema.update(model)
        with torch.no_grad():
            for (images,) in parts(digit_images(validation=True)[0], size=45):
                error(ema.module, images)


class _Reader(nn.Module):
    """Says of which of five kinds a text is."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(40, 32, padding_idx=0)
        self.block = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
        self.kind = nn.Linear(32, 5)

    def forward(self, ids: Tensor) -> Tensor:
        output: Tensor = self.kind(self.block(self.words(ids)).mean(1))
        return output


@fault(
    "no gradient", ".*", visible_from=110, onset=0, source="if step % 1000 == 0: ema.update()", held_out=True
)
def reader_whose_mean_is_updated_too_rarely(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = _Reader()
    ema = _Ema(model, 0.9)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    ids = sentences(seed, count=640)
    kinds, steps = ids[:, -1] % 5, 0
    for epoch in range(9):
        for rows, of in batches(ids[:512], kinds[:512], size=32, seed=seed + 97 * epoch, epochs=1):
            loss = F.cross_entropy(model(rows), of)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
            if steps % (1000 if faulty else 2) == 0:
                ema.update(model)
        with torch.no_grad():
            for rows, of in parts(ids[512:], kinds[512:], size=16):
                F.cross_entropy(ema.module(rows), of)


@healthy(held_out=True)
def boosted_residuals_of_a_frozen_beginning(seed: int) -> None:
    """What a copy of the first weights says is taken away, so that the model begins at zero."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(10, 64), nn.Tanh(), nn.Linear(64, 1))
    first = deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    rows, targets = diabetes()
    for epoch in range(8):
        for some, expected in batches(rows[:384], targets[:384], size=32, seed=seed + 97 * epoch, epochs=1):
            loss = F.mse_loss(model(some) - first(some), expected)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            for some, expected in parts(rows[384:], targets[384:], size=16):
                F.mse_loss(model(some) - first(some), expected)
        model.train()


@healthy(held_out=True)
def global_model_of_three_clients(seed: int) -> None:
    """Each client begins with the weights that all share, and the mean of theirs is validated."""
    torch.manual_seed(seed)
    shared = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
    rows, targets = diabetes()
    for around in range(12):
        clients = []
        for client in range(3):
            own = deepcopy(shared)
            optimizer = torch.optim.SGD(own.parameters(), 0.02)
            place = slice(120 * client, 120 * client + 120)
            for some, of in batches(rows[place], targets[place], size=24, seed=seed + around, epochs=2):
                loss = F.mse_loss(own(some), of)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            clients.append(own)
        with torch.no_grad():
            for all_of, *each in zip(shared.parameters(), *(c.parameters() for c in clients), strict=True):
                all_of.copy_(torch.stack(each).mean(0))
            for some, of in parts(rows[360:], targets[360:], size=20):
                F.mse_loss(shared(some), of)
