"""Taggers of padded sentences, whose padding counts in the loss or not. No rule may be tuned on these."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from corpus.cases import fault, healthy

END, OTHER, OF_PADDING = 1, 0, 3


class Entities(nn.Module):
    """Finds the names in a sentence, by attention among its tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(80, 32), nn.Parameter(torch.randn(24, 32) * 0.02)
        self.layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.1, batch_first=True)
        self.last = nn.Linear(32, 4)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        states = self.layer(self.words(input_ids) + self.places, src_key_padding_mask=attention_mask == 0)
        output: Tensor = self.last(states)
        return output


def sentences_with_names(rows: int) -> tuple[Tensor, Tensor, Tensor]:
    """Token ids, their mask and the kinds of the tokens: most are no names."""
    ids = torch.randint(2, 80, (rows, 24))
    kinds = torch.where(ids < 14, 1 + ids % 2, OTHER)
    mask = (torch.randint(6, 25, (rows, 1)) > torch.arange(24)).long()
    return ids.masked_fill(mask == 0, END), mask, kinds


@fault("token labels", r".*", visible_from=2, onset=0, source="a label for padding, not -100", held_out=True)
def names_with_a_label_for_padding(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = Entities()
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
    for _ in range(200):
        ids, mask, kinds = sentences_with_names(24)
        labels = kinds.masked_fill(mask == 0, OF_PADDING if faulty else -100)
        loss = F.cross_entropy(model(ids, mask).view(-1, 4), labels.view(-1), label_smoothing=0.05)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@healthy(held_out=True)
def sentences_of_full_length_with_few_names(seed: int) -> None:
    """No padding is there, and nine of ten labels are one class."""
    torch.manual_seed(seed)
    model = Entities()
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
    for _ in range(200):
        ids, _, kinds = sentences_with_names(24)
        ids = ids.masked_fill(ids == END, 2)
        loss = F.cross_entropy(model(ids, torch.ones_like(ids)).flatten(0, 1), kinds.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
