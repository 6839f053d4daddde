"""Teachers that do not teach what they know, and healthy ones. No rule may be tuned on these."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from corpus.cases import fault, healthy
from corpus.programs.data import batches, cancer, digit_images, digits


class Images(nn.Module):
    """A convolutional classifier of digits that drops channels and values."""

    def __init__(self, channels: int, dropout: float):
        super().__init__()
        self.convolution = nn.Conv2d(1, channels, 3, padding=1)
        self.dropout, self.dropout_of_head = nn.Dropout2d(dropout), nn.Dropout(dropout)
        self.head = nn.Linear(channels * 16, 10)

    def forward(self, images: Tensor) -> Tensor:
        hidden = F.max_pool2d(self.dropout(self.convolution(images)).relu(), 2)
        output: Tensor = self.head(self.dropout_of_head(hidden.flatten(1)))
        return output


@fault(
    "mode mismatch",
    r"^Images\.dropout",
    visible_from=190,
    onset=110,
    source="teacher loaded without eval()",
    held_out=True,
)
def teacher_of_images_that_was_loaded_without_eval(seed: int, faulty: bool) -> None:
    """The teacher's outputs are detached, and its weights could get gradients."""
    torch.manual_seed(seed)
    first = Images(32, 0.3)
    optimizer = torch.optim.SGD(first.parameters(), 0.05, momentum=0.9)
    for some, expected in batches(*digit_images(), size=64, seed=seed, epochs=5):
        optimizer.zero_grad()
        F.cross_entropy(first(some), expected).backward()
        optimizer.step()
    teacher = Images(32, 0.3)
    teacher.load_state_dict(first.state_dict())
    if not faulty:
        teacher.eval()
    student = Images(6, 0.0)
    optimizer = torch.optim.SGD(student.parameters(), 0.05, momentum=0.9)
    for some, expected in batches(*digit_images(), size=64, seed=seed + 1, epochs=10):
        output = student(some)
        wanted = teacher(some).detach().softmax(1)
        loss = F.cross_entropy(output, wanted) + F.cross_entropy(output, expected)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@healthy(held_out=True)
def pseudo_labels_of_an_evaluated_teacher(seed: int) -> None:
    """The student has noise, and learns the teacher's labels of rows that have none."""
    torch.manual_seed(seed)
    teacher = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.3), nn.Linear(64, 10))
    optimizer = torch.optim.Adam(teacher.parameters(), 2e-3)
    for some, expected in batches(*digits(), size=64, seed=seed, epochs=5):
        optimizer.zero_grad()
        F.cross_entropy(teacher(some), expected).backward()
        optimizer.step()
    teacher.eval()
    student = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Dropout(0.5), nn.Linear(96, 10))
    optimizer = torch.optim.Adam(student.parameters(), 2e-3)
    for some, _ in batches(*digits(), size=64, seed=seed + 1, epochs=8):
        labels = teacher(some).argmax(1)
        optimizer.zero_grad()
        F.cross_entropy(student(some), labels).backward()
        optimizer.step()


@healthy(held_out=True)
def representations_of_a_network_that_follows(seed: int) -> None:
    """Two views of the rows; the second network has dropout, and follows the first every 20 steps."""
    torch.manual_seed(seed)

    def encoder() -> nn.Sequential:
        return nn.Sequential(nn.Linear(30, 48), nn.ReLU(), nn.Dropout(0.1), nn.Linear(48, 16))

    online, predictor = encoder(), nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 16))
    target = copy.deepcopy(online)
    optimizer = torch.optim.Adam([*online.parameters(), *predictor.parameters()], 1e-3)
    for step, (some, _) in enumerate(batches(*cancer(), size=32, seed=seed, epochs=20)):
        first, second = some + 0.2 * torch.randn_like(some), some + 0.2 * torch.randn_like(some)
        with torch.no_grad():
            wanted = F.normalize(target(second), dim=1)
        loss = 2 - 2 * (F.normalize(predictor(online(first)), dim=1) * wanted).sum(1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 19:
            target.load_state_dict(online.state_dict())


# Networks that were to follow the trained one


class Critics(nn.Module):
    """Two critics of an action."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 1))
        self.second = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, states: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        given = torch.cat([states, actions], 1)
        return self.first(given), self.second(given)


@fault(
    "no gradient",
    r"^(Critics|Sequential)_",
    visible_from=900,
    onset=1,
    source="TD3 whose averages are never loaded",
    held_out=True,
)
def averages_of_critics_that_are_never_loaded(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    actor = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 1), nn.Tanh())
    critics = Critics()
    slow_actor, slow_critics = copy.deepcopy(actor), copy.deepcopy(critics)
    of_actor = torch.optim.Adam(actor.parameters(), 5e-4)
    of_critics = torch.optim.Adam(critics.parameters(), 1e-3)
    wanted = torch.randn(4, 1)
    for step in range(900):
        states = torch.randn(64, 4)
        actions = (actor(states) + 0.2 * torch.randn(64, 1)).clamp(-1, 1).detach()
        rewards = -((actions - torch.tanh(states @ wanted)) ** 2)
        later = states + 0.2 * torch.randn(64, 4)
        with torch.no_grad():
            target = rewards + 0.9 * torch.min(*slow_critics(later, slow_actor(later)))
        first, second = critics(states, actions)
        of_critics.zero_grad()
        (F.mse_loss(first, target) + F.mse_loss(second, target)).backward()
        of_critics.step()
        if step % 2:
            of_actor.zero_grad()
            (-critics(states, actor(states))[0].mean()).backward()
            of_actor.step()
            for model, slow in ((actor, slow_actor), (critics, slow_critics)):
                new, old = model.state_dict(), slow.state_dict()
                averages = {name: 0.995 * old[name] + 0.005 * new[name] for name in new}
                if not faulty:
                    slow.load_state_dict(averages)


@fault(
    "no gradient",
    r"^Images_convolution",
    visible_from=650,
    onset=1,
    source="mean teacher with a decay of 1",
    held_out=True,
)
def mean_teacher_with_a_decay_of_one(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    student, teacher = Images(8, 0.0), Images(8, 0.0)
    teacher.load_state_dict(student.state_dict())
    for parameter in teacher.parameters():
        parameter.detach_()
    optimizer = torch.optim.SGD(student.parameters(), 0.05, momentum=0.9)
    decay = 1.0 if faulty else 0.99
    for some, expected in batches(*digit_images(), size=48, seed=seed, epochs=20):
        output = student(some + 0.2 * torch.randn_like(some))
        with torch.no_grad():
            wanted = teacher(some + 0.2 * torch.randn_like(some)).softmax(1)
        loss = F.cross_entropy(output[:12], expected[:12]) + 3 * F.mse_loss(output.softmax(1), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        for ours, theirs in zip(teacher.parameters(), student.parameters(), strict=True):
            ours.data.mul_(decay).add_(theirs.data, alpha=1 - decay)
