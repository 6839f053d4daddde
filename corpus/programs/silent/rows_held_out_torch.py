"""Trainings whose validation has rows of the training: no rule may be tuned on these."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from corpus.cases import fault
from corpus.programs.data import batches


@fault(
    "shared rows",
    r"input",
    visible_from=0,
    visible_in="EVAL",
    source="oversampled, then split",
    held_out=True,
)
def rare_rows_copied_before_the_split(seed: int, faulty: bool) -> None:
    """One row in ten is positive, and the positive ones are copied until there are as many of both."""
    torch.manual_seed(seed)
    features = torch.randn(1800, 12)
    labels = (features[:, :3].sum(1) + 0.8 * torch.randn(1800) > 2.4).long()
    known = torch.randperm(1800)

    def balanced(rows: torch.Tensor) -> torch.Tensor:
        rare = rows[labels[rows] == 1]
        return torch.cat([rows, rare[torch.randint(len(rare), (len(rows) - 2 * len(rare),))]])

    if faulty:
        every = balanced(known)
        every = every[torch.randperm(len(every))]
        train, held = every[len(every) // 5 :], every[: len(every) // 5]
    else:
        train, held = balanced(known[360:]), known[:360]
    model = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Dropout(0.1), nn.Linear(24, 2))
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
    for epoch in range(8):
        model.train()
        for some, expected in batches(features[train], labels[train], size=48, seed=seed + epoch, epochs=1):
            loss = F.cross_entropy(model(some), expected)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            F.cross_entropy(model(features[held]), labels[held])
