"""Models and data of the modern trainings: a small transformer, adapters, and texts that end."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

END = 1
"""The id of the end of a text, which also fills the places after it."""


class LoraLinear(nn.Module):
    """A layer with a product of two narrow matrices beside it, the second of which starts at zero."""

    def __init__(self, base: nn.Linear, rank: int = 4, alpha: float = 8.0):
        super().__init__()
        self.base = base
        self.lora_A = nn.Parameter(torch.randn(rank, base.in_features) * base.in_features**-0.5)
        self.lora_B = nn.Parameter(torch.zeros(base.out_features, rank))
        self.scale = alpha / rank

    def forward(self, values: Tensor) -> Tensor:
        output: Tensor = self.base(values) + self.scale * (values @ self.lora_A.T @ self.lora_B.T)
        return output


class Block(nn.Module):
    """Attention to the tokens before, and two layers."""

    def __init__(self, width: int):
        super().__init__()
        self.first_norm, self.second_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, values: Tensor, allowed: Tensor) -> Tensor:
        q, k, v = self.qkv(self.first_norm(values)).chunk(3, -1)
        scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(~allowed, -1e9)
        values = values + self.out(scores.softmax(-1) @ v)
        output: Tensor = values + self.down(F.gelu(self.up(self.second_norm(values))))
        return output


class Transformer(nn.Module):
    """A causal language model that takes a mask of the tokens that are no padding."""

    def __init__(self, vocabulary: int, length: int = 24, width: int = 32, blocks: int = 2):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(blocks))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        length = input_ids.shape[1]
        allowed = torch.ones(length, length).tril().bool()[None]
        if attention_mask is not None:
            allowed = allowed & attention_mask[:, None, :].bool()
        values = self.tokens(input_ids) + self.positions(torch.arange(length))
        for block in self.blocks:
            values = block(values, allowed)
        output: Tensor = self.head(self.norm(values))
        return output


def texts(seed: int, count: int = 640, length: int = 20, vocabulary: int = 24) -> tuple[Tensor, Tensor]:
    """Texts of 8 to 20 tokens with their end, filled up with the end's id, and their masks."""
    generator = torch.Generator().manual_seed(seed)
    follows = torch.randperm(vocabulary - 2, generator=torch.Generator().manual_seed(3)) + 2
    rows = torch.randint(2, vocabulary, (count, length), generator=generator)
    regular = torch.rand(count, length, generator=generator) < 0.7
    for place in range(1, length):
        rows[:, place] = torch.where(regular[:, place], follows[rows[:, place - 1] - 2], rows[:, place])
    lengths = torch.randint(8, length + 1, (count, 1), generator=generator)
    places = torch.arange(length)
    rows[places >= lengths - 1] = END
    return rows, (places < lengths).long()


def pretrained(model: nn.Module, seed: int) -> None:
    """Let weights differ a little from how they were drawn, as if they had been trained before."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.02 * torch.randn(parameter.shape, generator=generator)


def next_token_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Compare the output at each place with the label at the next one."""
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100)
