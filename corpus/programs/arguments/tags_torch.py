"""Taggers of padded sentences, whose padding counts in the loss or does not. Rules may be tuned on these."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from corpus.cases import fault, healthy

PADDING, CLASSES = 0, 5


class Tagger(nn.Module):
    """Tags each token of a sentence."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.memory = nn.Embedding(60, 32, padding_idx=PADDING), nn.GRU(32, 48, batch_first=True)
        self.tag = nn.Linear(48, CLASSES)

    def forward(self, ids: Tensor) -> Tensor:
        states, _ = self.memory(self.words(ids))
        output: Tensor = self.tag(states)
        return output


def tagged(rows: int = 32) -> tuple[Tensor, Tensor]:
    """Sentences of different lengths, and a tag for each token: 0 is that of padding."""
    ids = torch.randint(1, 60, (rows, 30))
    tags = 1 + (ids + ids.roll(1, 1)) % 4
    ends = torch.randint(4, 20, (rows, 1)) <= torch.arange(30)
    return ids.masked_fill(ends, PADDING), tags.masked_fill(ends, PADDING)


@fault(
    "token labels",
    r".*",
    visible_from=2,
    onset=0,
    source="ignore_index left at -100, and padding tagged 0",
    held_out=False,
)
def tags_of_padding_that_count(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = Tagger()
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    criterion = nn.CrossEntropyLoss() if faulty else nn.CrossEntropyLoss(ignore_index=PADDING)
    for _ in range(150):
        ids, tags = tagged()
        loss = criterion(model(ids).transpose(1, 2), tags)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@healthy(held_out=False)
def tags_whose_padding_has_no_weight(seed: int) -> None:
    torch.manual_seed(seed)
    model, weights = Tagger(), torch.tensor([0.0, 1.0, 1.0, 1.0, 1.0])
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for _ in range(150):
        ids, tags = tagged()
        loss = F.cross_entropy(model(ids).flatten(0, 1), tags.flatten(), weight=weights)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@healthy(held_out=False)
def tags_whose_padding_is_masked_after_the_criterion(seed: int) -> None:
    torch.manual_seed(seed)
    model = Tagger()
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    for _ in range(150):
        ids, tags = tagged()
        each, counts = F.cross_entropy(model(ids).transpose(1, 2), tags, reduction="none"), ids != PADDING
        optimizer.zero_grad()
        ((each * counts).sum() / counts.sum()).backward()
        optimizer.step()
