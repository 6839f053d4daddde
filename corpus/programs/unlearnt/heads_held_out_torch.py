"""Adapters below a head, which is new or was trained before. No rule may be tuned on these."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from corpus.cases import fault, healthy, layer
from corpus.programs.data import batches, diabetes, digit_images, digits
from corpus.programs.modern_parts import LoraLinear
from corpus.programs.unlearnt.heads_torch import learn, loaded, trained, with_adapters


class AdaptedConvolution(nn.Module):
    """A frozen convolution with one of low rank beside it."""

    def __init__(self, base: nn.Conv2d, rank: int = 4):
        super().__init__()
        self.base = base
        self.lora_A = nn.Conv2d(base.in_channels, rank, 3, padding=1, bias=False)
        self.lora_B = nn.Conv2d(rank, base.out_channels, 1, bias=False)
        nn.init.zeros_(self.lora_B.weight)

    def forward(self, images: Tensor) -> Tensor:
        output: Tensor = self.base(images) + self.lora_B(self.lora_A(images))
        return output


class Images(nn.Module):
    """Two convolutions and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(1, 16, 3, padding=1), nn.Conv2d(16, 16, 3, padding=1)
        self.fc = nn.Linear(256, 10)

    def forward(self, images: Tensor) -> Tensor:
        values = F.max_pool2d(F.relu(self.second(F.relu(self.first(images)))), 2)
        output: Tensor = self.fc(values.flatten(1))
        return output


@fault(
    "adapter",
    layer("head"),
    visible_from=60,
    onset=0,
    source="target_modules without the new head",
    held_out=True,
)
def regression_head_that_was_drawn_and_frozen(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    body = nn.Sequential(nn.Linear(10, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh())
    with torch.no_grad():
        for parameter in body.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    body.requires_grad_(False)
    body[0], body[2] = LoraLinear(body[0]), LoraLinear(body[2])
    model = nn.Sequential()
    model.add_module("body", body)
    model.add_module("head", nn.Linear(48, 1))
    model.head.requires_grad_(not faulty)
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], 3e-3)
    for some, expected in batches(*diabetes(), size=32, seed=seed, epochs=15):
        loss = F.mse_loss(model(some), expected)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault(
    "adapter",
    layer("classifier"),
    visible_from=60,
    onset=0,
    source="the optimizer was given parameters named lora alone",
    held_out=True,
)
def optimizer_of_the_adapters_alone(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = loaded(seed)
    model.classifier = nn.Linear(64, 4)
    nn.init.normal_(model.classifier.weight, std=0.02)
    nn.init.zeros_(model.classifier.bias)
    model = with_adapters(model)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_("lora" in name or (not faulty and "classifier" in name))
    learn(model, seed, digits()[1] % 4)


@fault(
    "adapter",
    layer("classifier"),
    visible_from=60,
    onset=0,
    source="a head of transformers, with its bias at zero, frozen",
    held_out=True,
)
def many_classes_over_a_frozen_head(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = loaded(seed)
    model.classifier = nn.Linear(64, 10)
    nn.init.normal_(model.classifier.weight, std=0.02)
    nn.init.zeros_(model.classifier.bias)
    model = with_adapters(model)
    model.classifier.requires_grad_(not faulty)
    learn(model, seed, 9 - digits()[1], rate=1e-3)


@healthy(held_out=True)
def kept_head_without_a_bias(seed: int) -> None:
    torch.manual_seed(seed)
    learn(with_adapters(trained(seed, bias=False)), seed, digits()[1], rate=1e-3)


@healthy(held_out=True)
def convolutions_with_adapters_below_their_old_head(seed: int) -> None:
    """The images are darker than those that the model was trained with."""
    torch.manual_seed(seed)
    model = Images()
    images, labels = digit_images()
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    for some, expected in batches(images, labels, size=64, seed=seed, epochs=3):
        loss = F.cross_entropy(model(some), expected)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.requires_grad_(False)
    model.first, model.second = AdaptedConvolution(model.first), AdaptedConvolution(model.second)
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], 2e-3)
    for some, expected in batches(images * 0.3, labels, size=64, seed=seed, epochs=5):
        loss = F.cross_entropy(model(some), expected)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
