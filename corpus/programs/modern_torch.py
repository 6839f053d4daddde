"""Adapters and language models as they are fine-tuned today. Rules may be tuned on these."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from corpus.cases import fault, healthy
from corpus.programs.data import batches
from corpus.programs.modern_parts import (
    END,
    LoraLinear,
    Transformer,
    next_token_loss,
    pretrained,
    texts,
)
from corpus.programs.targets_torch import Recurrent, letters


def adapted(seed: int) -> Transformer:
    """A frozen transformer with adapters at two layers of each block."""
    model = Transformer(24)
    pretrained(model, seed)
    model.requires_grad_(False)
    for block in model.blocks:
        block.qkv, block.out = LoraLinear(block.qkv), LoraLinear(block.out)
    return model


def tune(model: nn.Module, optimizer: torch.optim.Optimizer, seed: int) -> None:
    """Fine-tune for 80 steps."""
    for ids, mask in batches(*texts(seed), size=32, seed=seed, epochs=4):
        loss = next_token_loss(model(ids, mask), ids.masked_fill(mask == 0, -100))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault("adapter", r"lora_B", visible_from=3, source="ai-toolkit 1054", held_out=False)
def second_matrices_of_adapters_stay_zero(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = adapted(seed)
    trained = [p for name, p in model.named_parameters() if p.requires_grad]
    if faulty:
        trained = [p for name, p in model.named_parameters() if "lora_A" in name]
    tune(model, torch.optim.AdamW(trained, 2e-3), seed)


@fault("adapter", r"lora|base", visible_from=3, source="the base is not frozen", held_out=False)
def layers_below_adapters_are_trained(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = adapted(seed)
    if faulty:
        model.requires_grad_(True)
    tune(model, torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], 1e-3), seed)


@fault("adapter", r"lora|out", visible_from=3, source="unsloth-zoo 606", held_out=False)
def half_of_the_adapters_are_not_in_the_forward(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = adapted(seed)
    if faulty:
        for block in model.blocks:
            block.out.forward = block.out.base.forward
    tune(model, torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], 2e-3), seed)


@fault("token labels", r".*", visible_from=3, source="shifted twice", held_out=False)
def targets_are_two_tokens_ahead(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = Recurrent(12)
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    for (some,) in batches(letters(seed), size=32, seed=seed, epochs=5):
        inputs, targets = some[:, :-1], some[:, 1:]
        output = model(inputs)
        if faulty:
            output, targets = output[:, :-1], targets[:, 1:]
        optimizer.zero_grad()
        F.cross_entropy(output.flatten(0, 1), targets.flatten()).backward()
        optimizer.step()


@fault("token labels", r".*", visible_from=3, source="nanochat 582", held_out=False)
def ends_fill_the_labels_that_count(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = Transformer(24)
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
    for ids, mask in batches(*texts(seed), size=32, seed=seed, epochs=4):
        inputs, targets = ids[:, :-1], ids[:, 1:]
        if not faulty:
            targets = torch.where(mask[:, 1:] == 1, targets, torch.tensor(-100))
        logits = model(inputs, mask[:, :-1])
        optimizer.zero_grad()
        F.cross_entropy(logits.flatten(0, 1), targets.flatten()).backward()
        optimizer.step()


@fault("token labels", r".*", visible_from=3, source="trl 3091", held_out=False)
def criterion_ignores_the_end_of_text(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = Transformer(24)
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
    criterion = nn.CrossEntropyLoss(ignore_index=END if faulty else -100)
    for ids, mask in batches(*texts(seed), size=32, seed=seed, epochs=4):
        labels = ids if faulty else ids.masked_fill(mask == 0, -100)
        logits = model(ids, attention_mask=mask)
        optimizer.zero_grad()
        criterion(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten()).backward()
        optimizer.step()


@healthy(held_out=False)
def prompts_are_ignored_and_answers_learned(seed: int) -> None:
    torch.manual_seed(seed)
    model = Transformer(24)
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
    for ids, mask in batches(*texts(seed), size=32, seed=seed, epochs=4):
        labels = ids.masked_fill(mask == 0, -100)
        labels[:, :6] = -100
        loss = next_token_loss(model(ids, mask), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@healthy(held_out=False)
def recurrent_model_that_copies_an_earlier_token(seed: int) -> None:
    torch.manual_seed(seed)
    model = Recurrent(12)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for (some,) in batches(letters(seed), size=32, seed=seed, epochs=10):
        targets = some.roll(2, 1)
        targets[:, :2] = -100
        optimizer.zero_grad()
        F.cross_entropy(model(some).flatten(0, 1), targets.flatten()).backward()
        optimizer.step()
