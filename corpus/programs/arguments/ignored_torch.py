"""Classes that a criterion leaves out, and healthy rows that it does. Rules may be tuned on these."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from corpus.cases import fault, healthy
from corpus.programs.data import batches, digits, sentences


def _classify(seed: int, labels: Tensor, criterion: nn.Module, classes: int) -> None:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, classes))
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    for some, expected in batches(digits()[0], labels, size=64, seed=seed, epochs=10):
        optimizer.zero_grad()
        criterion(model(some), expected).backward()
        optimizer.step()


@fault("loss input", ".*", visible_from=30, onset=0, source="ignore_index=0 in a classifier", held_out=False)
def digits_without_the_zeros(seed: int, faulty: bool) -> None:
    _classify(seed, digits()[1], nn.CrossEntropyLoss(ignore_index=0) if faulty else nn.CrossEntropyLoss(), 10)


class _Reader(nn.Module):
    """Says which of six kinds a sentence is; 0 is the padding of its tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.memory = nn.Embedding(40, 24, padding_idx=0), nn.GRU(24, 48, batch_first=True)
        self.kind = nn.Linear(48, 6)

    def forward(self, ids: Tensor) -> Tensor:
        _, last = self.memory(self.words(ids))
        output: Tensor = self.kind(last[-1])
        return output


@fault("loss input", ".*", visible_from=60, onset=0, source="ignore_index=pad_id of intents", held_out=False)
def kinds_of_sentences_without_the_one_of_the_padding(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    padding, ids = 0, sentences(seed, count=600)
    model = _Reader()
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    for rows, kinds in batches(ids, ids[:, -1] % 6, size=32, seed=seed, epochs=10):
        loss = F.cross_entropy(model(rows), kinds, ignore_index=padding if faulty else -100)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


@healthy(held_out=False)
def digits_of_which_few_have_a_label(seed: int) -> None:
    """Class 0 means that nobody has looked at the row."""
    labels = digits()[1] + 1
    labels[torch.rand(len(labels), generator=torch.Generator().manual_seed(seed)) < 0.6] = 0
    _classify(seed, labels, nn.CrossEntropyLoss(ignore_index=0), 11)


@healthy(held_out=False)
def digits_without_those_that_nobody_could_read(seed: int) -> None:
    labels = digits()[1] + 1
    labels[torch.rand(len(labels), generator=torch.Generator().manual_seed(seed)) < 0.03] = 0
    _classify(seed, labels, nn.CrossEntropyLoss(ignore_index=0), 11)


@healthy(held_out=False)
def digits_whose_missing_labels_are_minus_one(seed: int) -> None:
    labels = digits()[1].clone()
    labels[torch.rand(len(labels), generator=torch.Generator().manual_seed(seed)) < 0.1] = -1
    _classify(seed, labels, nn.CrossEntropyLoss(ignore_index=-1), 10)
