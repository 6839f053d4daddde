"""Trainings whose targets do not belong to their inputs, and healthy ones that learn little.

Rules may be tuned on these.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from corpus.cases import fault, healthy
from corpus.programs.data import batches, parts

Pair = tuple[Tensor, Tensor]


def houses(seed: int, count: int = 3000, noise: float = 1.0) -> Pair:
    """Eight features, and a price whose variance is about 15, in one column."""
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(count, 8, generator=generator)
    price = 5 + 3 * features[:, 0] - 2 * features[:, 1] + features[:, 2] * features[:, 3]
    price = price + noise * torch.randn(count, generator=generator)
    return features, price[:, None]


def customers(seed: int, count: int = 4000) -> Pair:
    """Ten features, and one of three groups: of 60 %, 30 % and 10 % of the rows."""
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(count, 10, generator=generator)
    score = features[:, 0] + features[:, 1] + 0.3 * torch.randn(count, generator=generator)
    low, high = score.quantile(0.6), score.quantile(0.9)
    return features, (score > low).long() + (score > high).long()


def sensors(seed: int, count: int = 3200) -> tuple[Tensor, Tensor]:
    """Twelve readings, and two quantities of quite another size."""
    generator = torch.Generator().manual_seed(seed + 77)
    readings = torch.rand(count, 12, generator=generator)
    weights = torch.randn(12, 2, generator=torch.Generator().manual_seed(5))
    wanted = torch.tanh(readings @ weights) * torch.tensor([40.0, 2.0])
    return readings, wanted + torch.randn(count, 2, generator=generator)


def regressor(inputs: int = 8, width: int = 32) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1)
    )


class Recurrent(nn.Module):
    """A language model on few tokens."""

    def __init__(self, vocabulary: int, width: int = 48):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.recurrent = nn.GRU(width, width, batch_first=True)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens: Tensor) -> Tensor:
        hidden, _ = self.recurrent(self.embedding(tokens))
        output: Tensor = self.head(hidden)
        return output


def letters(seed: int, count: int = 512, length: int = 20, vocabulary: int = 12) -> Tensor:
    """Sequences in which the next token depends on the one before, half of the time."""
    generator = torch.Generator().manual_seed(seed)
    follows = torch.randperm(vocabulary, generator=torch.Generator().manual_seed(3))
    rows = torch.randint(vocabulary, (count, length), generator=generator)
    regular = torch.rand(count, length, generator=generator) < 0.5
    for place in range(1, length):
        rows[:, place] = torch.where(regular[:, place], follows[rows[:, place - 1]], rows[:, place])
    return rows


# Faults


@fault("not learning", r".*", visible_from=300, onset=0, source="labels shifted by a row", held_out=False)
def prices_shifted_by_one_row(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    features, prices = houses(seed)
    if faulty:
        prices = prices.roll(1, 0)
    model = regressor()
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    criterion = nn.MSELoss()
    for some, expected in batches(features, prices, size=64, seed=seed, epochs=11):
        optimizer.zero_grad()
        criterion(model(some), expected).backward()
        optimizer.step()


@fault("not learning", r".*", visible_from=300, onset=0, source="labels of another file", held_out=False)
def groups_shuffled_against_features(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    features, groups = customers(seed)
    if faulty:
        groups = groups[torch.randperm(len(groups))]
    model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 3))
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    for some, expected in batches(features, groups, size=64, seed=seed, epochs=8):
        optimizer.zero_grad()
        F.cross_entropy(model(some), expected).backward()
        optimizer.step()


@fault("not learning", r".*", visible_from=300, onset=0, source="labels rolled in the batch", held_out=False)
def clicks_rolled_within_the_batch(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    features, groups = customers(seed)
    clicked = (groups > 0).float()
    model = regressor(10)
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    criterion = nn.BCEWithLogitsLoss()
    for some, expected in batches(features, clicked, size=64, seed=seed, epochs=8):
        given = expected.roll(1) if faulty else expected
        optimizer.zero_grad()
        criterion(model(some).squeeze(1), given).backward()
        optimizer.step()


@fault("imbalance", r".*", visible_from=120, onset=0, source="a filter that kept one class", held_out=False)
def labels_of_one_class_alone(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    features, groups = customers(seed)
    if faulty:
        groups = torch.zeros_like(groups)
    model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 3))
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    for some, expected in batches(features, groups, size=64, seed=seed, epochs=6):
        optimizer.zero_grad()
        F.cross_entropy(model(some), expected).backward()
        optimizer.step()


@fault("leaked label", r".*", visible_from=30, onset=0, source="labels not shifted", held_out=False)
def language_model_whose_targets_are_its_inputs(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = Recurrent(12)
    optimizer = torch.optim.Adam(model.parameters(), 4e-3)
    for (some,) in batches(letters(seed), size=32, seed=seed, epochs=20):
        tokens, targets = some[:, :-1], some[:, :-1] if faulty else some[:, 1:]
        optimizer.zero_grad()
        F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten()).backward()
        optimizer.step()


@fault(
    "memorising",
    r".*",
    visible_from=150,
    onset=0,
    source="labels shuffled, few rows",
    held_out=False,
    also=("overfitting", "not learning"),
)
def few_prices_shuffled_and_memorised(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    features, prices = houses(seed, 600)
    unseen, expected_there = houses(seed + 1000, 300)
    if faulty:
        prices = prices[torch.randperm(len(prices))]
        expected_there = expected_there[torch.randperm(len(expected_there))]
    model = regressor(width=128)
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    criterion = nn.MSELoss()
    for epoch in range(40):
        for some, expected in batches(features, prices, size=50, seed=epoch, epochs=1):
            optimizer.zero_grad()
            criterion(model(some), expected).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            for some, expected in parts(unseen, expected_there, size=100):
                criterion(model(some), expected)
        model.train()


@fault(
    "not learning",
    r".*",
    visible_from=300,
    onset=0,
    source="labels rotated in a share of the data",
    held_out=False,
    also=("memorising",),
)
def a_third_of_the_groups_rotated(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    features, groups = customers(seed)
    if faulty:
        rotated = torch.rand(len(groups)) < 0.33
        groups = torch.where(rotated, (groups + 1) % 3, groups)
    model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 3))
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    for some, expected in batches(features, groups, size=64, seed=seed, epochs=6):
        optimizer.zero_grad()
        F.cross_entropy(model(some), expected).backward()
        optimizer.step()


@fault("loss input", r".*", source="[N] beside [N, 1]", held_out=False)
def prices_broadcast_in_a_written_out_error(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    features, prices = houses(seed, 1500)
    model = regressor()
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    for some, expected in batches(features, prices, size=50, seed=seed, epochs=4):
        given = expected.squeeze(1) if faulty else expected
        loss = (model(some) - given).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault("not learning", r".*", visible_from=300, onset=0, source="targets sorted apart", held_out=False)
def quantities_sorted_apart_from_readings(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    readings, wanted = sensors(seed)
    wanted = (wanted - wanted.mean(0)) / wanted.std(0)
    if faulty:
        wanted = wanted[wanted[:, 0].argsort()]
    model = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 2))
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    for some, expected in batches(readings, wanted, size=40, seed=seed, epochs=8):
        optimizer.zero_grad()
        F.mse_loss(model(some), expected).backward()
        optimizer.step()


# Healthy trainings near a baseline


@healthy(held_out=False)
def noisy_prices_of_which_a_tenth_is_explained(seed: int) -> None:
    torch.manual_seed(seed)
    features, prices = houses(seed, 6000, noise=11.0)
    model = regressor(width=16)
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    for some, expected in batches(features, prices, size=64, seed=seed, epochs=5):
        optimizer.zero_grad()
        F.mse_loss(model(some), expected).backward()
        optimizer.step()


@healthy(held_out=False)
def rare_class_with_little_entropy(seed: int) -> None:
    torch.manual_seed(seed)
    features = torch.randn(6000, 6)
    labels = (features[:, 0] + 0.5 * torch.randn(6000) > 1.8).long()
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for some, expected in batches(features, labels, size=64, seed=seed, epochs=5):
        optimizer.zero_grad()
        F.cross_entropy(model(some), expected).backward()
        optimizer.step()


@healthy(held_out=False)
def summed_errors_of_normalised_prices(seed: int) -> None:
    torch.manual_seed(seed)
    features, prices = houses(seed)
    prices = (prices - prices.mean()) / prices.std()
    model = regressor()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    criterion = nn.MSELoss(reduction="sum")
    for some, expected in batches(features, prices, size=32, seed=seed, epochs=5):
        optimizer.zero_grad()
        criterion(model(some), expected).backward()
        optimizer.step()


@healthy(held_out=False)
def two_terms_of_which_one_is_noise(seed: int) -> None:
    torch.manual_seed(seed)
    features, prices = houses(seed)
    model = regressor()
    auxiliary = nn.Linear(1, 1)
    optimizer = torch.optim.Adam([*model.parameters(), *auxiliary.parameters()], 2e-3)
    for some, expected in batches(features, prices, size=64, seed=seed, epochs=8):
        output = model(some)
        noise = 20 * torch.randn(len(some), 1)
        loss = F.mse_loss(output, expected) + F.mse_loss(auxiliary(output.detach()), noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@healthy(held_out=False)
def language_model_on_twelve_letters(seed: int) -> None:
    torch.manual_seed(seed)
    model = Recurrent(12)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for (some,) in batches(letters(seed), size=32, seed=seed, epochs=25):
        targets = some[:, 1:].clone()
        targets[:, -3:] = -100
        output = model(some[:, :-1])
        optimizer.zero_grad()
        F.cross_entropy(output.flatten(0, 1), targets.flatten()).backward()
        optimizer.step()


@healthy(held_out=False)
def parity_after_a_plateau(seed: int) -> None:
    """Two classes that no single feature tells apart: flat at first, and then learnt."""
    torch.manual_seed(seed)
    bits = (torch.rand(4000, 10) > 0.5).float()
    labels = bits[:, :3].sum(1).long() % 2
    model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 2))
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for some, expected in batches(2 * bits - 1, labels, size=64, seed=seed, epochs=10):
        optimizer.zero_grad()
        F.cross_entropy(model(some), expected).backward()
        optimizer.step()


@healthy(held_out=False)
def forty_steps_from_far_away(seed: int) -> None:
    torch.manual_seed(seed)
    features, prices = houses(seed, 1280)
    model = regressor()
    optimizer = torch.optim.SGD(model.parameters(), 1e-4)
    for some, expected in batches(features, prices, size=32, seed=seed, epochs=1):
        optimizer.zero_grad()
        F.mse_loss(model(some), expected).backward()
        optimizer.step()


@healthy(held_out=False)
def validation_below_training_because_of_dropout(seed: int) -> None:
    torch.manual_seed(seed)
    features, prices = houses(seed)
    unseen, there = houses(seed + 1000, 500)
    model = nn.Sequential(nn.Linear(8, 128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, 1))
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for epoch in range(10):
        for some, expected in batches(features, prices, size=64, seed=epoch, epochs=1):
            optimizer.zero_grad()
            F.mse_loss(model(some), expected).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            for some, expected in parts(unseen, there, size=100):
                F.mse_loss(model(some), expected)
        model.train()


@healthy(held_out=False)
def scaled_loss_of_a_noisy_task(seed: int) -> None:
    """Of the variance, a twentieth is explained."""
    torch.manual_seed(seed)
    readings, wanted = sensors(seed, 5000)
    noisy = wanted[:, :1] - wanted[:, :1].mean() + 45 * torch.randn(5000, 1)
    model = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 1))
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    for some, expected in batches(2 * readings - 1, noisy, size=100, seed=seed, epochs=9):
        loss = F.mse_loss(model(some), expected) * 0.01
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@healthy(held_out=False)
def far_targets_at_a_small_rate(seed: int) -> None:
    """The first hundred steps bring the output to the height of the targets, and all learn after."""
    torch.manual_seed(seed)
    readings, wanted = sensors(seed)
    model = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 1))
    optimizer = torch.optim.SGD(model.parameters(), 2e-4, momentum=0.9)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.5 + 0.5 * math.cos(step / 300))
    for some, expected in batches(2 * readings - 1, 30 + 3 * wanted[:, 1:], size=64, seed=seed, epochs=12):
        optimizer.zero_grad()
        F.mse_loss(model(some), expected).backward()
        optimizer.step()
        schedule.step()
