"""Weights in 16 bits, some of whose updates are rounded away. No rule may be tuned on these."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from corpus.cases import fault, healthy
from corpus.programs.data import batches, diabetes, digit_images, sentences
from corpus.programs.modern_parts import LoraLinear, Transformer, next_token_loss, pretrained, texts


@fault(
    "lost update",
    r".*",
    visible_from=60,
    onset=0,
    source="torch.set_default_dtype(torch.bfloat16) for a model that is trained from scratch",
    held_out=True,
)
def everything_in_bfloat16_by_default(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16 if faulty else torch.float32)
    try:
        model = Transformer(40)
    finally:
        torch.set_default_dtype(before)
    optimizer = torch.optim.AdamW(model.parameters(), 2e-5 if faulty else 2e-3, weight_decay=0.1)
    for (rows,) in batches(sentences(seed), size=16, seed=seed, epochs=14):
        loss = F.cross_entropy(model(rows[:, :-1]).float().flatten(0, 1), rows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


@fault(
    "lost update",
    r".*",
    visible_from=60,
    onset=0,
    source="model.to(torch.bfloat16) fine-tuned with Nesterov's momentum",
    held_out=True,
    also=("learning rate",),
)
def images_fine_tuned_in_bfloat16_with_momentum(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = nn.Sequential(
        nn.Conv2d(1, 24, 3, padding=1), nn.GELU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(384, 10)
    )
    for kind, rate, epochs in (
        (torch.float32, 0.05, 2),
        (torch.bfloat16 if faulty else torch.float32, 1e-4, 8),
    ):
        model.to(kind)
        optimizer = torch.optim.SGD(model.parameters(), rate, momentum=0.9, nesterov=True)
        for some, expected in batches(*digit_images(), size=48, seed=seed, epochs=epochs):
            loss = F.cross_entropy(model(some.to(kind)).float(), expected)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


@fault(
    "lost update",
    r".*",
    visible_from=60,
    onset=0,
    source="a regression in bfloat16, and momentum of 0.95",
    held_out=True,
    also=("learning rate",),
)
def patients_in_bfloat16_with_strong_momentum(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    kind = torch.bfloat16 if faulty else torch.float32
    model = nn.Sequential(nn.Linear(10, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, 1)).to(
        kind
    )
    rate = 3e-5 if faulty else 3e-3
    optimizer = torch.optim.SGD(model.parameters(), rate, momentum=0.95, weight_decay=1e-4)
    for some, expected in batches(*diabetes(), size=32, seed=seed, epochs=20):
        loss = F.mse_loss(model(some.to(kind)).float(), expected)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault(
    "lost update",
    r".*",
    visible_from=60,
    onset=0,
    source="a policy in bfloat16 at a rate of 1e-6",
    held_out=True,
    also=("learning rate", "precision"),
)
def language_model_in_bfloat16_at_a_tiny_rate(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = Transformer(24)
    pretrained(model, seed)
    model = model.bfloat16() if faulty else model
    optimizer = torch.optim.AdamW(model.parameters(), 5e-6 if faulty else 1e-3, betas=(0.9, 0.95))
    for ids, mask in batches(*texts(seed), size=16, seed=seed, epochs=8):
        loss = next_token_loss(model(ids, mask).float(), ids.masked_fill(mask == 0, -100))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@healthy(held_out=True)
def adapters_in_bfloat16(seed: int) -> None:
    """A usual rate for adapters is above what bfloat16 rounds away."""
    torch.manual_seed(seed)
    model = Transformer(24)
    pretrained(model, seed)
    model.requires_grad_(False)
    for block in model.blocks:
        block.qkv, block.out = LoraLinear(block.qkv), LoraLinear(block.out)
    model.bfloat16()
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], 1e-3)
    for ids, mask in batches(*texts(seed), size=16, seed=seed, epochs=6):
        loss = next_token_loss(model(ids, mask).float(), ids.masked_fill(mask == 0, -100))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@healthy(held_out=True)
def large_table_of_rare_words_in_bfloat16(seed: int) -> None:
    """Most rows of the table are in no batch, and so do not change."""
    torch.manual_seed(seed)
    table, head = nn.Embedding(3000, 24), nn.Linear(24, 40)
    model = nn.Sequential(table, head).bfloat16()
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for (rows,) in batches(sentences(seed), size=16, seed=seed, epochs=14):
        loss = F.cross_entropy(model(rows[:, :-1]).float().flatten(0, 1), rows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@healthy(held_out=True)
def regression_in_bfloat16_that_has_come_to_its_end(seed: int) -> None:
    """Plain descent stands still when its gradients have become small."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(10, 32), nn.Tanh(), nn.Linear(32, 1)).bfloat16()
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    for some, expected in batches(*diabetes(), size=64, seed=seed, epochs=60):
        loss = F.mse_loss(model(some.bfloat16()).float(), expected)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@healthy(held_out=True)
def images_in_bfloat16_with_momentum(seed: int) -> None:
    """At a usual rate, momentum moves the weights by more than bfloat16 rounds away, until it decays."""
    torch.manual_seed(seed)
    model = nn.Sequential(
        nn.Conv2d(1, 24, 3, padding=1), nn.GELU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(384, 10)
    ).bfloat16()
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9, nesterov=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 240)
    for some, expected in batches(*digit_images(), size=48, seed=seed, epochs=8):
        loss = F.cross_entropy(model(some.bfloat16()).float(), expected)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
