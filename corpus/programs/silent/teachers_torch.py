"""Teachers that do not teach what they know, and healthy ones. Rules may be tuned on these."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from corpus.cases import fault, healthy
from corpus.programs.data import batches, digits, sentences

WORDS, WIDTH = 40, 32


class Teacher(nn.Module):
    """A classifier of digits with dropout."""

    def __init__(self, width: int = 96, dropout: float = 0.4):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.drop, self.head = nn.Dropout(dropout), nn.Linear(width, 10)

    def forward(self, inputs: Tensor) -> Tensor:
        output: Tensor = self.head(self.drop(self.body(inputs)))
        return output


def taught(seed: int, dropout: float = 0.4) -> Teacher:
    """A teacher that has learnt for four epochs."""
    torch.manual_seed(seed)
    teacher = Teacher(dropout=dropout)
    optimizer = torch.optim.Adam(teacher.parameters(), 2e-3)
    for some, expected in batches(*digits(), size=64, seed=seed, epochs=4):
        optimizer.zero_grad()
        F.cross_entropy(teacher(some), expected).backward()
        optimizer.step()
    return teacher


@fault(
    "mode mismatch",
    r"Teacher\.drop",
    visible_from=150,
    onset=88,
    source="teacher.train() by the trainer",
    held_out=False,
)
def teacher_that_still_drops(seed: int, faulty: bool) -> None:
    teacher = taught(seed)
    if not faulty:
        teacher.eval()
    student = nn.Sequential(nn.Linear(64, 24), nn.ReLU(), nn.Linear(24, 10))
    optimizer = torch.optim.Adam(student.parameters(), 3e-3)
    for some, expected in batches(*digits(), size=64, seed=seed + 1, epochs=10):
        with torch.no_grad():
            wanted = (teacher(some) / 2).softmax(1)
        output = student(some)
        soft = F.kl_div((output / 2).log_softmax(1), wanted, reduction="batchmean") * 4
        loss = 0.7 * soft + 0.3 * F.cross_entropy(output, expected)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@healthy(held_out=False)
def teacher_that_follows_and_drops(seed: int) -> None:
    """A mean teacher: the average of the student's weights, with noise of its own on purpose."""
    torch.manual_seed(seed)
    student = Teacher(dropout=0.2)
    teacher = copy.deepcopy(student).requires_grad_(False)
    optimizer = torch.optim.Adam(student.parameters(), 2e-3)
    for some, expected in batches(*digits(), size=64, seed=seed, epochs=10):
        with torch.no_grad():
            wanted = teacher(some).softmax(1)
        output = student(some)
        agreement = F.mse_loss(output.softmax(1), wanted)
        loss = F.cross_entropy(output[:16], expected[:16]) + 5 * agreement
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for mean, value in zip(teacher.parameters(), student.parameters(), strict=True):
                mean.lerp_(value, 0.01)


@healthy(held_out=False)
def teacher_that_is_asked_five_times(seed: int) -> None:
    """What a teacher says with five draws of its dropout is averaged."""
    teacher = taught(seed)
    student = nn.Sequential(nn.Linear(64, 24), nn.ReLU(), nn.Linear(24, 10))
    optimizer = torch.optim.Adam(student.parameters(), 3e-3)
    for some, _ in batches(*digits(), size=64, seed=seed + 1, epochs=8):
        with torch.no_grad():
            wanted = torch.stack([teacher(some).softmax(1) for _ in range(5)]).mean(0)
        loss = F.kl_div(student(some).log_softmax(1), wanted, reduction="batchmean")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@healthy(held_out=False)
def head_on_features_that_are_dropped(seed: int) -> None:
    """The features of a body that stays as it is are dropped out before they reach the head."""
    teacher = taught(seed)
    body = nn.Sequential(teacher.body, nn.Dropout(0.3)).requires_grad_(False)
    head = nn.Linear(96, 10)
    optimizer = torch.optim.Adam(head.parameters(), 3e-3)
    for some, expected in batches(*digits(), size=64, seed=seed + 1, epochs=8):
        with torch.no_grad():
            features = body(some)
        optimizer.zero_grad()
        F.cross_entropy(head(features), expected).backward()
        optimizer.step()


class Model(nn.Module):
    """A language model with dropout."""

    def __init__(self, layers: int, dropout: float):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 64, dropout=dropout, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, ids: Tensor) -> Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1])
        output: Tensor = self.head(self.encoder(self.words(ids), mask=mask, is_causal=True))
        return output


@fault(
    "mode mismatch",
    r"^Model\.",
    visible_from=150,
    onset=0,
    source="Lightning sets all modules to training",
    held_out=False,
)
def large_language_model_that_teaches_with_dropout(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    large, small = Model(2, 0.2), Model(1, 0.0)
    optimizer = torch.optim.AdamW(large.parameters(), 3e-3)
    for (rows,) in batches(sentences(seed), size=24, seed=seed, epochs=3):
        optimizer.zero_grad()
        F.cross_entropy(large(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten()).backward()
        optimizer.step()
    large.requires_grad_(False)
    large.train(faulty)
    optimizer = torch.optim.AdamW(small.parameters(), 3e-3)
    for (rows,) in batches(sentences(seed), size=24, seed=seed + 1, epochs=14):
        given = rows[:, :-1]
        loss = F.kl_div(
            small(given).log_softmax(-1).flatten(0, 1),
            large(given).log_softmax(-1).flatten(0, 1),
            log_target=True,
            reduction="batchmean",
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


# Networks that were to follow the trained one


class Values(nn.Module):
    """The values of three actions."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(4, 48), nn.Linear(48, 3)

    def forward(self, states: Tensor) -> Tensor:
        output: Tensor = self.head(torch.relu(self.body(states)))
        return output


@fault(
    "no gradient",
    r"^Values_body",
    visible_from=800,
    onset=1,
    source="DQN whose target network is never synchronised",
    held_out=False,
)
def target_network_that_is_never_copied(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    values, target = Values(), Values()
    target.load_state_dict(values.state_dict())
    optimizer = torch.optim.Adam(values.parameters(), 1e-3)
    for step in range(800):
        states = torch.randn(32, 4)
        rewards, later = (states[:, 0] > 0).float(), 0.8 * states + 0.5 * torch.randn(32, 4)
        with torch.no_grad():
            wanted = rewards + 0.9 * target(later).max(1).values
        taken = values(states).gather(1, torch.randint(3, (32, 1))).squeeze(1)
        optimizer.zero_grad()
        F.smooth_l1_loss(taken, wanted).backward()
        optimizer.step()
        if not faulty and step % 300 == 299:
            target.load_state_dict(values.state_dict())


@healthy(held_out=False)
def policy_that_keeps_to_an_untrained_reference(seed: int) -> None:
    """A small language model learns preferences; the reference is a copy that stays on purpose."""
    torch.manual_seed(seed)
    policy = Model(1, 0.0)
    reference = copy.deepcopy(policy).eval().requires_grad_(False)
    optimizer = torch.optim.AdamW(policy.parameters(), 1e-3)

    def likelihood(model: nn.Module, ids: Tensor) -> Tensor:
        scores: Tensor = model(ids[:, :-1]).log_softmax(-1)
        return scores.gather(-1, ids[:, 1:, None]).sum((1, 2))

    for _ in range(550):
        asked = torch.randint(4, WORDS, (12, 4))
        chosen = torch.cat([asked, asked.flip(1)], 1)
        rejected = torch.cat([asked, torch.randint(4, WORDS, (12, 4))], 1)
        with torch.no_grad():
            before = likelihood(reference, chosen) - likelihood(reference, rejected)
        margin = likelihood(policy, chosen) - likelihood(policy, rejected) - before
        optimizer.zero_grad()
        (-F.logsigmoid(0.1 * margin).mean()).backward()
        optimizer.step()


@healthy(held_out=False)
def target_that_is_random_on_purpose(seed: int) -> None:
    """What a network of random weights gives is learnt: where that fails, states are new."""
    torch.manual_seed(seed)
    target, model = Values().requires_grad_(False), Values()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for _ in range(600):
        states = torch.randn(32, 4)
        optimizer.zero_grad()
        F.mse_loss(model(states), target(states)).backward()
        optimizer.step()
