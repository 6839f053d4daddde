"""Dropout that leaves too little to learn from, and dropout as strong that leaves enough."""

from __future__ import annotations

import torch
from torch import nn

from corpus.cases import fault, healthy, layer
from corpus.programs.healthy_torch import classifier, train_classifier


@fault("not learning", layer("2", "5"), visible_from=600, onset=0, source="keep_prob=0.9", held_out=False)
def share_to_keep_as_the_share_to_drop(seed: int, faulty: bool) -> float:
    torch.manual_seed(seed)
    model = classifier(width=128, dropout=0.9 if faulty else 0.5)
    return train_classifier(model, torch.optim.Adam(model.parameters(), 3e-3), seed, epochs=30)


@healthy(held_out=False)
def random_features_of_which_a_tenth_is_kept(seed: int) -> float:
    """So many that those that are left are enough."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(64, 3000), nn.ReLU(), nn.Dropout(0.9), nn.Linear(3000, 10))
    return train_classifier(model, torch.optim.Adam(model.parameters(), 1e-3), seed, epochs=10)


@healthy(held_out=False)
def dropout_of_nine_tenths_beside_a_sum(seed: int) -> float:
    """What is dropped is added to what is not, so that little is lost."""
    torch.manual_seed(seed)
    model = Added()
    return train_classifier(model, torch.optim.Adam(model.parameters(), 1e-3), seed, epochs=10)


class Added(nn.Module):
    """A classifier whose block may be left out."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(64, 64), nn.Linear(64, 10)
        self.block = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.9))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        values = self.first(inputs).relu()
        output: torch.Tensor = self.last(values + self.block(values))
        return output
