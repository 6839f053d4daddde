"""Adapters below a head, which is new or was trained before. Rules may be tuned on these."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from corpus.cases import fault, healthy, layer
from corpus.programs.data import batches, digits
from corpus.programs.modern_parts import LoraLinear, Transformer, next_token_loss, pretrained, texts


class Classifier(nn.Module):
    """A body with adapters and the head of a task."""

    def __init__(self, classes: int = 10, width: int = 64, bias: bool = True):
        super().__init__()
        self.body = nn.ModuleList([nn.Linear(64, width), nn.Linear(width, width)])
        self.norm, self.classifier = nn.LayerNorm(width), nn.Linear(width, classes, bias=bias)

    def forward(self, inputs: Tensor) -> Tensor:
        for part in self.body:
            inputs = F.gelu(part(inputs))
        output: Tensor = self.classifier(self.norm(inputs))
        return output


def learn(model: nn.Module, seed: int, labels: Tensor, epochs: int = 5, rate: float = 2e-3) -> None:
    """Train what is not frozen."""
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], rate)
    for some, expected in batches(digits()[0], labels, size=48, seed=seed, epochs=epochs):
        loss = F.cross_entropy(model(some), expected)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def loaded(seed: int) -> Classifier:
    """A classifier that was trained elsewhere."""
    model = Classifier()
    pretrained(model, seed)
    return model


def trained(seed: int, bias: bool = True) -> Classifier:
    """A classifier that is trained first, in the same script."""
    model = Classifier(bias=bias)
    learn(model, seed, digits()[1], epochs=2)
    return model


def with_adapters(model: Classifier) -> Classifier:
    """Freeze the model, and put adapters beside its layers."""
    model.requires_grad_(False)
    model.body = nn.ModuleList([LoraLinear(part) for part in model.body])
    return model


@fault(
    "adapter",
    layer("classifier"),
    visible_from=60,
    onset=0,
    source="modules_to_save forgotten",
    held_out=False,
)
def new_head_left_out_of_the_trained_modules(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = loaded(seed)
    model.classifier = nn.Linear(64, 2)
    model = with_adapters(model)
    if not faulty:
        model.classifier.requires_grad_(True)
    learn(model, seed, digits()[1] % 2)


@fault(
    "adapter",
    layer("score"),
    visible_from=60,
    onset=0,
    source="a score without a bias, frozen",
    held_out=False,
)
def new_score_of_a_language_model_is_frozen(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    body = Transformer(400)
    pretrained(body, seed)
    body.requires_grad_(False)
    for block in body.blocks:
        block.qkv, block.out = LoraLinear(block.qkv), LoraLinear(block.out)
    score = nn.Linear(400, 3, bias=False)
    nn.init.normal_(score.weight, std=0.02)
    score.requires_grad_(not faulty)
    model = Scored(body, score)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], 2e-3)
    for ids, _ in batches(*texts(seed), size=32, seed=seed, epochs=5):
        loss = F.cross_entropy(model(ids), ids[:, :3].sum(1) % 3)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class Scored(nn.Module):
    """A language model whose logits of the last token are scored."""

    def __init__(self, body: nn.Module, score: nn.Linear):
        super().__init__()
        self.body, self.score = body, score

    def forward(self, ids: Tensor) -> Tensor:
        output: Tensor = self.score(self.body(ids)[:, -1])
        return output


@healthy(held_out=False)
def adapters_below_a_head_that_was_trained(seed: int) -> None:
    """The head is kept on purpose: only what comes before it is fitted to other data."""
    torch.manual_seed(seed)
    learn(with_adapters(trained(seed)), seed, 9 - digits()[1])


@healthy(held_out=False)
def adapters_in_a_model_that_is_random_throughout(seed: int) -> None:
    """A tiny model for a test of a script: nothing of it was trained, and nothing but adapters is."""
    torch.manual_seed(seed)
    model = Transformer(24)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            nn.init.normal_(parameter, std=0.02)
    model.requires_grad_(False)
    for block in model.blocks:
        block.up, block.down = LoraLinear(block.up), LoraLinear(block.down)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], 5e-3)
    for ids, mask in batches(*texts(seed), size=32, seed=seed, epochs=5):
        loss = next_token_loss(model(ids, mask), ids.masked_fill(mask == 0, -100))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault(
    "adapter",
    layer("classifier"),
    visible_from=60,
    onset=0,
    source="optimizer of all parameters, of which those of the new head are frozen",
    held_out=False,
)
def new_head_that_an_optimizer_has_in_vain(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = trained(seed)
    model.classifier = nn.Linear(64, 2)
    nn.init.normal_(model.classifier.weight, std=0.02)
    nn.init.zeros_(model.classifier.bias)
    model = with_adapters(model)
    model.classifier.requires_grad_(not faulty)
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
    for some, expected in batches(digits()[0], digits()[1] % 2, size=48, seed=seed, epochs=5):
        loss = F.cross_entropy(model(some), expected)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
