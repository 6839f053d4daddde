"""Arguments that are wrong or forgotten, and healthy trainings near them. No rule may be tuned on these."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from corpus.cases import fault, healthy, layer
from corpus.programs.data import batches, digits, sentences


class _Reviews(nn.Module):
    """Reads words in both directions, and takes the largest of what it has noted."""

    def __init__(self, is_batch_first: bool):
        super().__init__()
        self.words = nn.Embedding(40, 16)
        self.reader = nn.GRU(16, 24, num_layers=2, bidirectional=True, batch_first=is_batch_first)
        self.score = nn.Linear(48, 1)

    def forward(self, ids: Tensor) -> Tensor:
        states, _ = self.reader(self.words(ids))
        output: Tensor = self.score(states.max(dim=1).values).squeeze(1)
        return output


@fault(
    "batch shape",
    layer("reader"),
    visible_from=1,
    source="batch_first forgotten in a bidirectional reader",
    held_out=True,
)
def reviews_read_across_the_batch(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = _Reviews(is_batch_first=not faulty)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for (ids,) in batches(sentences(seed), size=32, seed=seed, epochs=20):
        is_good = (ids == 7).any(1).float()
        loss = F.binary_cross_entropy_with_logits(model(ids), is_good)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class _Forecasts(nn.Module):
    """Predicts the next reading of each sensor at each time; its input begins with the time."""

    def __init__(self) -> None:
        super().__init__()
        self.memory, self.next = nn.LSTM(1, 24), nn.Linear(24, 1)

    def forward(self, readings: Tensor) -> Tensor:
        states, _ = self.memory(readings.unsqueeze(2))
        output: Tensor = self.next(states).squeeze(2)
        return output


@healthy(held_out=True)
def readings_that_begin_with_the_time(seed: int) -> None:
    torch.manual_seed(seed)
    model = _Forecasts()
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    for _ in range(160):
        phase, times = torch.rand(1, 12) * 6, torch.arange(41).unsqueeze(1) / 4
        readings = torch.sin(times + phase) + 0.1 * torch.randn(41, 12)
        loss = F.mse_loss(model(readings[:-1]), readings[1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def _tagged(seed: int) -> tuple[Tensor, Tensor]:
    """Rows with four tags, of which each is rare."""
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randn(3000, 12, generator=generator)
    limits = torch.tensor([1.2, 1.5, 1.8, 1.4])
    return rows, (rows[:, :4] + 0.3 * rows[:, 4:8] > limits).float()


@fault(
    "loss input",
    ".*",
    visible_from=10,
    onset=0,
    source="counts of positives over those of negatives as pos_weight",
    held_out=True,
)
def tags_with_the_odds_as_their_weights(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    rows, tags = _tagged(seed)
    positives, negatives = tags.sum(0), (1 - tags).sum(0)
    criterion = nn.BCEWithLogitsLoss(pos_weight=positives / negatives if faulty else negatives / positives)
    model = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 4))
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
    for some, expected in batches(rows, tags, size=64, seed=seed, epochs=6):
        loss = criterion(model(some), expected)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@healthy(held_out=True)
def classes_weighted_by_the_root_of_their_counts(seed: int) -> None:
    torch.manual_seed(seed)
    images, labels = digits()
    kept = torch.rand(len(labels)) < 0.5 ** (labels % 5)
    images, labels = images[kept], labels[kept]
    counts = torch.bincount(labels, minlength=10)
    weights = (counts.max() / counts).sqrt()
    model = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10))
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    for some, expected in batches(images, labels, size=32, seed=seed, epochs=12):
        loss = F.cross_entropy(model(some), expected, weight=weights, label_smoothing=0.0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class _Chain:
    """A walk on seven places, of which the last one is worth a reward."""

    def __init__(self, seed: int):
        self.random = torch.Generator().manual_seed(seed)
        self.places = torch.eye(7)

    def walked(self, count: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Places, the next places, the rewards, and 0 where a walk ends."""
        at = torch.randint(1, 6, (count,), generator=self.random)
        to = at + 2 * torch.randint(0, 2, (count,), generator=self.random) - 1
        ends = (to == 0) | (to == 6)
        return self.places[at], self.places[to], (to == 6).float(), (~ends).float()


@fault(
    "loss input",
    ".*",
    visible_from=3,
    source="an advantage that is squared for the critic, without a detach of its next value",
    held_out=True,
)
def critic_that_moves_its_own_target(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    critic = nn.Sequential(nn.Linear(7, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(critic.parameters(), 3e-3)
    chain = _Chain(seed)
    for _ in range(300):
        places, following, rewards, goes_on = chain.walked(32)
        next_values = critic(following).squeeze(1)
        if not faulty:
            next_values = next_values.detach()
        errors = rewards + 0.95 * goes_on * next_values - critic(places).squeeze(1)
        loss = errors.pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@healthy(held_out=True)
def two_views_that_both_learn_to_agree(seed: int) -> None:
    """Both sides of the error have a gradient on purpose; their spread is kept up."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 16))
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for some, _ in batches(*digits(), size=128, seed=seed, epochs=16):
        first = model(some + 0.1 * torch.randn_like(some))
        other = model(some * (torch.rand_like(some) > 0.2))
        spread = sum(F.relu(1 - (each.var(0) + 1e-4).sqrt()).mean() for each in (first, other))
        apart = [each - each.mean(0) for each in (first, other)]
        mixed = sum((each.T @ each / 127).fill_diagonal_(0).pow(2).sum() / 16 for each in apart)
        loss = 25 * F.mse_loss(first, other) + 25 * spread + mixed
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class _Online(nn.Module):
    """An encoder with the predictor of what its mean says."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 48), nn.BatchNorm1d(48), nn.ReLU(), nn.Linear(48, 24))
        self.predictor = nn.Sequential(nn.Linear(24, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, 24))

    def forward(self, inputs: Tensor) -> Tensor:
        output: Tensor = self.predictor(self.encoder(inputs))
        return output


@fault(
    "no gradient",
    ".*",
    visible_from=60,
    onset=0,
    source="momentum and 1 - momentum exchanged in the update of a target",
    held_out=True,
)
def target_that_is_the_network_of_now(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    online = _Online()
    target = copy.deepcopy(online.encoder).requires_grad_(False)
    optimizer = torch.optim.Adam(online.parameters(), 1e-3)
    momentum = 0.99
    for some, _ in batches(*digits(), size=64, seed=seed, epochs=10):
        first = some + 0.15 * torch.randn_like(some)
        other = some * (torch.rand_like(some) > 0.25)
        with torch.no_grad():
            wanted = F.normalize(target(other), dim=1)
        loss = 2 - 2 * (F.normalize(online(first), dim=1) * wanted).sum(1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        for mean, value in zip(target.parameters(), online.encoder.parameters(), strict=True):
            if faulty:
                mean.data.mul_(1 - momentum).add_(value.data, alpha=momentum)
            else:
                mean.data.mul_(momentum).add_(value.data, alpha=1 - momentum)


@fault(
    "gradients not reset",
    ".*",
    visible_from=3,
    onset=1,
    source="a function that ends a batch steps, and so does the loop",
    held_out=True,
)
def reviews_that_count_twice(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = _Reviews(is_batch_first=True)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, 200)

    def end_batch(loss: Tensor) -> None:
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()

    for (ids,) in batches(sentences(seed), size=32, seed=seed, epochs=8):
        is_good = (ids == 7).any(1).float()
        end_batch(F.binary_cross_entropy_with_logits(model(ids), is_good))
        if faulty:
            optimizer.step()
        model.zero_grad(set_to_none=False)


@fault(
    "not learning",
    ".*",
    visible_from=60,
    onset=0,
    source="scores of a frozen model taken from the weights that are trained",
    held_out=True,
)
def margins_against_the_weights_of_now(seed: int, faulty: bool) -> None:
    """Learn which of two digits is larger, by a squared margin over what a first model says."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 1))
    first = copy.deepcopy(model)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    for some, expected in batches(*digits(), size=64, seed=seed, epochs=8):
        order = expected.argsort()
        low, high = some[order[: len(order) // 2]], some[order[-(len(order) // 2) :]]
        frozen = model if faulty else first
        scores = model(high) - model(low)
        loss = (scores - (frozen(high) - frozen(low)).detach() - 1.0).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class _Tagged(nn.Module):
    """Says which of four words a sentence has; its dropout is written last and may be called last."""

    def __init__(self, is_last: bool) -> None:
        super().__init__()
        self.words = nn.Embedding(40, 24)
        self.tags = nn.Linear(24, 4)
        self.dropout = nn.Dropout(0.3)
        self.is_last = is_last

    def forward(self, ids: Tensor) -> Tensor:
        read = self.words(ids).mean(1)
        tags: Tensor = self.dropout(self.tags(read)) if self.is_last else self.tags(self.dropout(read))
        return tags


@fault(
    "loss input",
    ".*",
    visible_from=1,
    source="self.dropout around the whole head",
    held_out=True,
)
def tags_that_a_dropout_sets_to_zero(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = _Tagged(is_last=faulty)
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for (ids,) in batches(sentences(seed), size=32, seed=seed, epochs=12):
        has = torch.stack([(ids == word).any(1) for word in (3, 7, 11, 19)], 1).float()
        optimizer.zero_grad()
        F.binary_cross_entropy_with_logits(model(ids), has).backward()
        optimizer.step()


class _Heads(nn.Module):
    """Says whether a sentence has a word twice, by an attention of four heads that einsum computes."""

    def __init__(self, axis: int) -> None:
        super().__init__()
        self.words, self.mixing = nn.Embedding(40, 32), nn.Linear(32, 96)
        self.dropout, self.score, self.axis = nn.Dropout(0.1), nn.Linear(64, 1), axis

    def forward(self, ids: Tensor) -> Tensor:
        state = self.words(ids)
        query, key, value = self.mixing(state).unflatten(-1, (3, 4, 8)).unbind(2)
        scores = torch.einsum("bqhd,bkhd->bhqk", query, key) / 8**0.5
        weights = self.dropout(scores.softmax(self.axis))
        seen = torch.einsum("bhqk,bkhd->bqhd", weights, value).flatten(2)
        return self.score(torch.cat([state, seen], -1).amax(1)).squeeze(1)


@fault(
    "attention",
    ".*",
    visible_from=1,
    onset=0,
    source="softmax over dim=2 of [rows, heads, queries, keys]",
    held_out=True,
)
def heads_that_share_each_key(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = _Heads(axis=2 if faulty else 3)
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
    for (ids,) in batches(sentences(seed), size=32, seed=seed, epochs=12):
        ordered = ids.sort(1).values
        has_twice = (ordered[:, 1:] == ordered[:, :-1]).any(1).float()
        loss = F.binary_cross_entropy_with_logits(model(ids), has_twice)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
