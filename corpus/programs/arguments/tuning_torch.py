"""Arguments that are wrong or forgotten, and healthy trainings near them. Rules may be tuned on these."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from corpus.cases import fault, healthy, layer
from corpus.programs.data import batches, digits, sentences


class _Strokes(nn.Module):
    """Reads the lines of an image one after the other."""

    def __init__(self, is_batch_first: bool):
        super().__init__()
        self.lines = nn.LSTM(8, 32, batch_first=is_batch_first)
        self.digit = nn.Linear(32, 10)

    def forward(self, images: Tensor) -> Tensor:
        states, _ = self.lines(images)
        output: Tensor = self.digit(states[:, -1])
        return output


@fault(
    "batch shape",
    layer("lines"),
    visible_from=1,
    source="batch_first forgotten",
    held_out=False,
)
def lines_read_across_the_batch(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = _Strokes(is_batch_first=not faulty)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for some, expected in batches(*digits(), size=32, seed=seed, epochs=6):
        loss = F.cross_entropy(model(some.view(-1, 8, 8)), expected)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class _Columns(nn.Module):
    """A language model whose columns are the sequences, as a tutorial has it."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.memory = nn.Embedding(40, 24), nn.GRU(24, 48)
        self.next = nn.Linear(48, 40)

    def forward(self, ids: Tensor) -> Tensor:
        states, _ = self.memory(self.words(ids))
        output: Tensor = self.next(states)
        return output


@healthy(held_out=False)
def sequences_in_columns(seed: int) -> None:
    torch.manual_seed(seed)
    model = _Columns()
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for (rows,) in batches(sentences(seed), size=20, seed=seed, epochs=12):
        columns = rows.T
        output = model(columns[:-1])
        loss = F.cross_entropy(output.flatten(0, 1), columns[1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def _frauds(seed: int, share: float = 0.06) -> tuple[Tensor, Tensor]:
    """Rows of which few are frauds."""
    generator = torch.Generator().manual_seed(seed)
    is_fraud = torch.rand(4000, generator=generator) < share
    rows = torch.randn(4000, 10, generator=generator)
    rows[is_fraud, :3] += 1.5
    return rows, is_fraud.float()[:, None]


def _find_frauds(seed: int, rows: Tensor, wanted: Tensor, weight: Tensor) -> None:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    criterion = nn.BCEWithLogitsLoss(pos_weight=weight)
    for some, expected in batches(rows, wanted, size=128, seed=seed, epochs=10):
        loss = criterion(model(some), expected)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault(
    "loss input",
    ".*",
    visible_from=10,
    onset=0,
    source="positives over negatives as pos_weight",
    held_out=False,
)
def frauds_weighted_by_how_rare_they_are(seed: int, faulty: bool) -> None:
    rows, wanted = _frauds(seed)
    odds = wanted.sum() / (1 - wanted).sum()
    _find_frauds(seed, rows, wanted, odds if faulty else 1 / odds)


@healthy(held_out=False)
def clicks_of_which_few_may_be_wrong(seed: int) -> None:
    """A click that is missed costs less than one that is wrongly expected."""
    rows, wanted = _frauds(seed, share=0.3)
    _find_frauds(seed, rows, wanted, torch.tensor(0.2))


def _weighted_classes(seed: int, power: float) -> None:
    torch.manual_seed(seed)
    images, labels = digits()
    kept = torch.rand(len(labels)) < 0.6 ** (labels % 5)
    images, labels = images[kept], labels[kept]
    share = torch.bincount(labels, minlength=10) / len(labels)
    criterion = nn.CrossEntropyLoss(weight=share**power / (share**power).sum())
    model = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10))
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    for some, expected in batches(images, labels, size=64, seed=seed, epochs=12):
        loss = criterion(model(some), expected)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault(
    "loss input",
    ".*",
    visible_from=10,
    onset=0,
    source="shares of the classes given as their weights",
    held_out=False,
)
def classes_weighted_by_their_shares(seed: int, faulty: bool) -> None:
    _weighted_classes(seed, 1.0 if faulty else -1.0)


class _Corridor:
    """A corridor of eight places: to the right lies a reward, and each step costs a little."""

    def __init__(self, seed: int):
        self.random = torch.Generator().manual_seed(seed)
        self.places = torch.eye(8)

    def walked(self, count: int) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Places, what was done, the rewards, the next places, and 1 where it ended."""
        at = torch.randint(0, 7, (count,), generator=self.random)
        done = torch.randint(0, 2, (count,), generator=self.random)
        to = (at + 2 * done - 1).clamp(0, 7)
        ended = (to == 7).float()
        return self.places[at], done, ended - 0.02, self.places[to], ended


def _values() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))


@fault(
    "loss input",
    ".*",
    visible_from=3,
    source="the next value without a detach",
    held_out=False,
)
def values_of_the_next_place_that_learn(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    values = _values()
    optimizer = torch.optim.Adam(values.parameters(), 2e-3)
    corridor = _Corridor(seed)
    for _ in range(300):
        places, done, rewards, following, ended = corridor.walked(64)
        best = values(following).max(1).values
        if not faulty:
            best = best.detach()
        expected = rewards + 0.98 * (1 - ended) * best
        taken = values(places).gather(1, done[:, None]).squeeze(1)
        loss = F.smooth_l1_loss(taken, expected)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@healthy(held_out=False)
def target_network_with_gradients_of_no_use(seed: int) -> None:
    """Without no_grad, gradients go into a target network that no optimizer has: wasteful, not wrong."""
    torch.manual_seed(seed)
    values = _values()
    target = copy.deepcopy(values)
    optimizer = torch.optim.Adam(values.parameters(), 2e-3)
    corridor = _Corridor(seed)
    for step in range(300):
        places, done, rewards, following, ended = corridor.walked(64)
        expected = rewards + 0.98 * (1 - ended) * target(following).max(1).values
        taken = values(places).gather(1, done[:, None]).squeeze(1)
        loss = F.mse_loss(taken, expected)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 25 == 0:
            target.load_state_dict(values.state_dict())


def _mean_teacher(seed: int, share_of: str) -> None:
    """Learn from few labels, and to agree with a mean of the weights, of which most is that of `share_of`."""
    torch.manual_seed(seed)
    student = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 10))
    teacher = copy.deepcopy(student)
    for parameter in teacher.parameters():
        parameter.detach_()
    optimizer = torch.optim.Adam(student.parameters(), 2e-3)
    for step, (some, expected) in enumerate(batches(*digits(), size=64, seed=seed, epochs=10)):
        with torch.no_grad():
            wanted = teacher(some + 0.1 * torch.randn_like(some)).softmax(1)
        output = student(some + 0.1 * torch.randn_like(some))
        agreement = F.mse_loss(output.softmax(1), wanted)
        loss = F.cross_entropy(output[:12], expected[:12]) + 5 * agreement
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        kept = min(1 - 1 / (step + 1), 0.99)
        if share_of == "student":
            kept = 0.01
        with torch.no_grad():
            for mean, value in zip(teacher.parameters(), student.parameters(), strict=True):
                mean.mul_(kept).add_(value, alpha=1 - kept)


@fault(
    "no gradient",
    ".*",
    visible_from=60,
    onset=0,
    source="alpha and 1 - alpha exchanged in the mean of a teacher",
    held_out=False,
)
def teacher_that_is_the_student_of_now(seed: int, faulty: bool) -> None:
    _mean_teacher(seed, "student" if faulty else "teacher")


@fault(
    "gradients not reset",
    ".*",
    visible_from=3,
    onset=1,
    source="step() called again, after a trainer that has stepped",
    held_out=False,
)
def digits_that_count_twice(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    for some, expected in batches(*digits(), size=64, seed=seed, epochs=5):
        optimizer.zero_grad()
        F.cross_entropy(model(some), expected).backward()
        optimizer.step()
        if faulty:
            optimizer.step()


class _Sentences(nn.Module):
    """A small language model."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(40, 24)
        self.reader = nn.GRU(24, 24, batch_first=True)
        self.head = nn.Linear(24, 40)

    def forward(self, ids: Tensor) -> Tensor:
        """Return how probable each whole sentence is, as a logarithm."""
        states, _ = self.reader(self.words(ids[:, :-1]))
        chosen = self.head(states).log_softmax(-1).gather(2, ids[:, 1:, None])
        return chosen.squeeze(2).sum(1)


@fault(
    "not learning",
    ".*",
    visible_from=60,
    onset=0,
    source="the reference of a preference is the policy itself, not a copy",
    held_out=False,
)
def policy_that_is_its_own_reference(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    policy = _Sentences()
    reference = policy if faulty else copy.deepcopy(policy).requires_grad_(False)
    optimizer = torch.optim.Adam(policy.parameters(), 1e-3)
    for _ in range(200):
        chosen, rejected = torch.randint(0, 20, (16, 9)), torch.randint(20, 40, (16, 9))
        with torch.no_grad():
            before = reference(chosen) - reference(rejected)
        loss = -F.logsigmoid(0.1 * (policy(chosen) - policy(rejected) - before)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault(
    "loss input",
    ".*",
    visible_from=1,
    source="dropout behind the last layer of a sequence",
    held_out=False,
)
def scores_that_a_dropout_sets_to_zero(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    last, dropout = nn.Linear(64, 10), nn.Dropout(0.5)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), *([last, dropout] if faulty else [dropout, last]))
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for some, expected in batches(*digits(), size=64, seed=seed, epochs=6):
        optimizer.zero_grad()
        F.cross_entropy(model(some), expected).backward()
        optimizer.step()


class _Reversing(nn.Module):
    """Returns a sequence from its end to its beginning, by two attentions that are written out."""

    def __init__(self, axis: int) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(30, 32), nn.Parameter(torch.randn(16, 32) * 0.02)
        self.mixing = nn.ModuleList(nn.Linear(32, 96) for _ in range(2))
        self.norms = nn.ModuleList(nn.LayerNorm(32) for _ in range(2))
        self.head, self.axis = nn.Linear(32, 30), axis

    def forward(self, ids: Tensor) -> Tensor:
        state = self.words(ids) + self.places
        for mixing, norm in zip(self.mixing, self.norms, strict=True):
            query, key, value = mixing(state).chunk(3, -1)
            weights = (query @ key.transpose(1, 2) / 32**0.5).softmax(self.axis)
            state = norm(state + weights @ value)
        scores: Tensor = self.head(state)
        return scores


@fault(
    "attention",
    ".*",
    visible_from=1,
    onset=0,
    source="softmax(dim=1) of the scores of an attention",
    held_out=False,
)
def sequences_reversed_over_the_wrong_axis(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = _Reversing(axis=1 if faulty else -1)
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    for _ in range(200):
        ids = torch.randint(0, 30, (32, 16))
        loss = F.cross_entropy(model(ids).flatten(0, 1), ids.flip(1).flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
