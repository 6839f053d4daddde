"""Models that generate, and one whose labels are wrong. Rules may be tuned on these."""

from __future__ import annotations

import torch
from sklearn.datasets import make_swiss_roll
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from corpus.cases import fault, healthy
from corpus.programs.data import batches, digits

NOISE = 16


def _adversaries(seed: int, *, label_of_maker: float) -> None:
    """Train a generator of digits, with this label, and a discriminator, which looks first."""
    torch.manual_seed(seed)
    judge = nn.Sequential(nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Dropout(0.2), nn.Linear(64, 1))
    maker = nn.Sequential(nn.Linear(NOISE, 64), nn.ReLU(), nn.Linear(64, 64), nn.Sigmoid())
    of_judge = torch.optim.Adam(judge.parameters(), 5e-4, betas=(0.5, 0.999))
    of_maker = torch.optim.Adam(maker.parameters(), 5e-4, betas=(0.5, 0.999))
    criterion = nn.BCEWithLogitsLoss()
    label = torch.empty(64, 1)
    for real, _ in batches(*digits(), size=64, seed=seed, epochs=10):
        if len(real) < len(label):
            continue
        of_judge.zero_grad()
        criterion(judge(real), label.fill_(1.0)).backward()
        made = maker(torch.randn(len(real), NOISE))
        criterion(judge(made.detach()), label.fill_(0.0)).backward()
        of_judge.step()
        of_maker.zero_grad()
        criterion(judge(made), label.fill_(label_of_maker)).backward()
        of_maker.step()


@fault(
    "loss input",
    r"Sequential(-2)?_output_0",
    visible_from=3,
    source="a label that is filled for the discriminator and used for the generator",
    held_out=False,
)
def generator_with_the_label_of_what_it_makes(seed: int, faulty: bool) -> None:
    _adversaries(seed, label_of_maker=0.0 if faulty else 1.0)


class _Velocity(nn.Module):
    """The velocity of noisy points at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.given, self.times = nn.Linear(2, 64), nn.Embedding(100, 64)
        self.layers = nn.ModuleList([nn.Linear(64, 64) for _ in range(3)])
        self.last = nn.Linear(64, 2)

    def forward(self, points: Tensor, times: Tensor) -> Tensor:
        hidden = self.given(points) + self.times(times)
        for layer in self.layers:
            hidden = hidden + F.gelu(layer(hidden))
        output: Tensor = self.last(hidden)
        return output


@healthy(held_out=False)
def velocities_of_points_on_a_roll(seed: int) -> None:
    """A straight line from the noisy points to their velocity is no better than the mean."""
    torch.manual_seed(seed)
    points = torch.tensor(make_swiss_roll(4000, noise=0.3, random_state=seed)[0][:, [0, 2]]).float() / 8
    kept = (1 - torch.linspace(1e-4, 0.06, 100)).cumprod(0)
    model = _Velocity()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for _ in range(340):
        some, noise = points[torch.randint(0, len(points), (128,))], torch.randn(128, 2)
        times = torch.randint(0, 100, (128,))
        share = kept[times].unsqueeze(1)
        noisy = share.sqrt() * some + (1 - share).sqrt() * noise
        loss = F.mse_loss(model(noisy, times), share.sqrt() * noise - (1 - share).sqrt() * some)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
