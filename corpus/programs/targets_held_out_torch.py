"""The held-out trainings on targets, which were written before a rule looked at targets."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from corpus.cases import fault, healthy
from corpus.programs.data import batches, digits, parts
from corpus.programs.targets_torch import sensors


def network(inputs: int, outputs: int, width: int = 48) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(inputs, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, outputs)
    )


class Small(nn.Module):
    """A language model whose next token depends on the last ones that it saw."""

    def __init__(self, vocabulary: int, width: int = 40):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.memory = nn.LSTM(width, width, batch_first=True)
        self.logits = nn.Linear(width, vocabulary)

    def forward(self, tokens: Tensor) -> Tensor:
        output: Tensor = self.logits(self.memory(self.tokens(tokens))[0])
        return output


def words(seed: int, count: int = 480, length: int = 17, vocabulary: int = 30) -> Tensor:
    generator = torch.Generator().manual_seed(seed + 3)
    rows = torch.randint(vocabulary, (count, length), generator=generator)
    for place in range(2, length):
        follows = (rows[:, place - 1] * 7 + 3) % vocabulary
        regular = torch.rand(count, generator=generator) < 0.7
        rows[:, place] = torch.where(regular, follows, rows[:, place])
    return rows


# Faults


@fault(
    "not learning", r".*", visible_from=300, onset=0, source="labels joined by the wrong key", held_out=True
)
def labels_of_another_day(seed: int, faulty: bool) -> None:
    """Five classes of quite unequal frequency: guessing costs much less than ln 5."""
    torch.manual_seed(seed)
    readings, wanted = sensors(seed, 5000)
    cuts = torch.quantile(wanted[:, 0], torch.tensor([0.7, 0.85, 0.95, 0.98]))
    labels = torch.bucketize(wanted[:, 0].contiguous(), cuts)
    if faulty:
        labels = labels.roll(1)
    model = network(12, 5)
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    criterion = nn.CrossEntropyLoss()
    for some, expected in batches(readings, labels, size=50, seed=seed, epochs=5):
        optimizer.zero_grad()
        criterion(model(some), expected).backward()
        optimizer.step()


@fault(
    "not learning", r".*", visible_from=300, onset=0, source="augmentation drops the pairing", held_out=True
)
def tags_of_shuffled_rows(seed: int, faulty: bool) -> None:
    """Three yes-or-no labels a row; the inputs are permuted in each batch, their labels are not."""
    torch.manual_seed(seed)
    readings, wanted = sensors(seed)
    tags = torch.stack([wanted[:, 0] > 20, wanted[:, 1] > 0, wanted.sum(1) > 30], 1).float()
    model = network(12, 3)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for some, expected in batches(readings, tags, size=64, seed=seed, epochs=8):
        given = some[torch.randperm(len(some))] if faulty else some
        loss = F.binary_cross_entropy_with_logits(model(given), expected)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault(
    "imbalance",
    r".*",
    visible_from=120,
    onset=0,
    source="a comparison that is always true",
    held_out=True,
    also=("not learning",),
)
def answers_that_are_all_yes(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    readings, wanted = sensors(seed)
    answers = (wanted[:, 0] > (-1e9 if faulty else 18.0)).float()
    model = network(12, 1)
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    for some, expected in batches(readings, answers, size=64, seed=seed, epochs=6):
        optimizer.zero_grad()
        F.binary_cross_entropy_with_logits(model(some)[:, 0], expected).backward()
        optimizer.step()


@fault("leaked label", r".*", visible_from=30, onset=0, source="targets shifted the wrong way", held_out=True)
def language_model_that_predicts_the_token_before(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = Small(30)
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    for (some,) in batches(words(seed), size=32, seed=seed, epochs=18):
        tokens, targets = (some[:, 1:], some[:, :-1]) if faulty else (some[:, :-1], some[:, 1:])
        output = model(tokens).transpose(1, 2)
        optimizer.zero_grad()
        F.cross_entropy(output, targets).backward()
        optimizer.step()


@fault("leaked label", r".*", visible_from=30, onset=0, source="forecast off by one", held_out=True)
def forecast_of_the_value_it_was_given(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    walk = torch.randn(2400).cumsum(0) * 0.1
    series = (walk - walk.mean()) / walk.std()
    windows = series.unfold(0, 13, 1)
    history, wanted = windows[:, :12], windows[:, 11:12] if faulty else windows[:, 12:13]
    model = network(12, 1)
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    for some, expected in batches(history, wanted, size=64, seed=seed, epochs=8):
        optimizer.zero_grad()
        F.mse_loss(model(some), expected).backward()
        optimizer.step()


@fault(
    "memorising",
    r".*",
    visible_from=150,
    onset=0,
    source="labels shifted, few rows",
    held_out=True,
    also=("overfitting", "not learning"),
)
def few_quantities_shifted_and_memorised(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    readings, wanted = sensors(seed, 500)
    unseen, there = sensors(seed + 500, 300)
    if faulty:
        wanted, there = wanted.roll(1, 0), there.roll(1, 0)
    model = network(12, 2, width=96)
    optimizer = torch.optim.Adam(model.parameters(), 4e-3)
    for epoch in range(25):
        for some, expected in batches(readings, wanted, size=50, seed=epoch, epochs=1):
            optimizer.zero_grad()
            F.mse_loss(model(some), expected).backward()
            optimizer.step()
        with torch.no_grad():
            for some, expected in parts(unseen, there, size=100):
                F.mse_loss(model(some), expected)


@fault("loss input", r".*", source="[N] beside [N, 1]", held_out=True)
def absolute_errors_broadcast(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    readings, wanted = sensors(seed, 1600)
    model = network(12, 1)
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    for some, expected in batches(readings, wanted[:, 0], size=40, seed=seed, epochs=4):
        output = model(some)
        difference = (output if faulty else output.squeeze(1)) - expected
        optimizer.zero_grad()
        difference.abs().mean().backward()
        optimizer.step()


# Healthy trainings near a baseline


@healthy(held_out=True)
def distillation_with_soft_targets(seed: int) -> None:
    torch.manual_seed(seed)
    inputs, _ = digits()
    teacher, student = network(64, 10), network(64, 10, 24)
    optimizer = torch.optim.Adam(student.parameters(), 2e-3)
    for (some,) in batches(inputs, size=64, seed=seed, epochs=16):
        with torch.no_grad():
            soft = (teacher(some) / 2).softmax(1)
        loss = 4 * F.cross_entropy(student(some) / 2, soft)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@healthy(held_out=True)
def momentum_contrast(seed: int) -> None:
    """The positive is always the first of the choices, so all labels are 0."""
    torch.manual_seed(seed)
    inputs, _ = digits()
    encoder = network(64, 16)
    optimizer = torch.optim.Adam(encoder.parameters(), 1e-3)
    queue = F.normalize(torch.randn(256, 16), dim=1)
    for (some,) in batches(inputs, size=64, seed=seed, epochs=14):
        query = F.normalize(encoder(some + 0.1 * torch.randn_like(some)), dim=1)
        with torch.no_grad():
            key = F.normalize(encoder(some + 0.1 * torch.randn_like(some)), dim=1)
        positive = (query * key).sum(1, keepdim=True)
        logits = torch.cat([positive, query @ queue.T], 1) / 0.2
        loss = F.cross_entropy(logits, torch.zeros(len(some), dtype=torch.long))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        queue = torch.cat([key, queue])[:256]


@healthy(held_out=True)
def modular_addition_after_a_plateau(seed: int) -> None:
    """Flat at first; then the task is learnt within a few hundred steps."""
    torch.manual_seed(seed)
    pairs = torch.cartesian_prod(torch.arange(7), torch.arange(7)).repeat(40, 1)
    labels = pairs.sum(1) % 7
    model = nn.Sequential(nn.Embedding(7, 16), nn.Flatten(), nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 7))
    optimizer = torch.optim.SGD(model.parameters(), 0.15, momentum=0.5)
    for some, expected in batches(pairs, labels, size=49, seed=seed, epochs=18):
        optimizer.zero_grad()
        F.cross_entropy(model(some), expected).backward()
        optimizer.step()


@healthy(held_out=True)
def masked_language_model_that_counts_all_places(seed: int) -> None:
    """All places count, and most of the targets are the input itself."""
    torch.manual_seed(seed)
    model = Small(31)
    optimizer = torch.optim.Adam(model.parameters(), 4e-3)
    for (some,) in batches(words(seed), size=32, seed=seed, epochs=16):
        tokens = some.masked_fill(torch.rand(some.shape) < 0.15, 30)
        optimizer.zero_grad()
        F.cross_entropy(model(tokens).flatten(0, 1), some.flatten()).backward()
        optimizer.step()
