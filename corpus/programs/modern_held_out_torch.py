"""Adapters and language models as they are fine-tuned today. No rule may be tuned on these."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from corpus.cases import fault, healthy
from corpus.programs.data import batches, digits
from corpus.programs.modern_parts import (
    END,
    LoraLinear,
    Transformer,
    next_token_loss,
    pretrained,
    texts,
)


@fault("adapter", r"lora", visible_from=3, source="optimizer made before the adapters", held_out=True)
def adapters_attached_after_the_optimizer(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = Transformer(24)
    pretrained(model, seed)
    for name, parameter in model.named_parameters():
        parameter.requires_grad = name.startswith("norm")
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
    for block in model.blocks:
        block.qkv, block.out = LoraLinear(block.qkv), LoraLinear(block.out)
    if not faulty:
        optimizer = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), 2e-3)
    for ids, mask in batches(*texts(seed), size=32, seed=seed, epochs=4):
        loss = next_token_loss(model(ids, mask), ids.masked_fill(mask == 0, -100))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault("adapter", r"lora|down|up", visible_from=3, source="both matrices start at zero", held_out=True)
def adapters_of_which_both_matrices_are_zero(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)

    class Adapted(nn.Module):
        def __init__(self, base: nn.Linear):
            super().__init__()
            self.base = base.requires_grad_(False)
            self.lora_down = nn.Linear(base.in_features, 4, bias=False)
            self.lora_up = nn.Linear(4, base.out_features, bias=False)
            nn.init.zeros_(self.lora_up.weight)
            if faulty:
                nn.init.zeros_(self.lora_down.weight)

        def forward(self, values: Tensor) -> Tensor:
            output: Tensor = self.base(values) + self.lora_up(self.lora_down(values))
            return output

    body = [nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU()]
    model = nn.Sequential(
        Adapted(body[0]),
        body[1],
        Adapted(body[2]),
        body[3],
        nn.Linear(48, 10),  # type: ignore[arg-type]
    )
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], 3e-3)
    for some, expected in batches(*digits(), size=64, seed=seed, epochs=4):
        optimizer.zero_grad()
        F.cross_entropy(model(some), expected).backward()
        optimizer.step()


@fault("token labels", r".*", visible_from=3, source="the collator and the model shift", held_out=True)
def labels_shifted_by_collator_and_loss(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = Transformer(24)
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
    for ids, mask in batches(*texts(seed), size=32, seed=seed, epochs=4):
        labels = ids.masked_fill(mask == 0, -100)
        if faulty:
            labels = F.pad(labels[:, 1:], (0, 1), value=-100)
        loss = next_token_loss(model(ids, mask), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault("token labels", r".*", visible_from=3, source="labels are a copy of the ids", held_out=True)
def padding_is_learned(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = Transformer(24)
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
    for ids, mask in batches(*texts(seed), size=32, seed=seed, epochs=4):
        labels = ids.clone()
        if not faulty:
            labels[mask == 0] = -100
        loss = next_token_loss(model(input_ids=ids, attention_mask=mask), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@fault("token labels", r".*", visible_from=3, source="trl 1623: padding has the id of the end", held_out=True)
def end_of_text_is_ignored_with_the_padding(seed: int, faulty: bool) -> None:
    torch.manual_seed(seed)
    model = Transformer(24)
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
    for ids, mask in batches(*texts(seed), size=32, seed=seed, epochs=4):
        labels = ids.masked_fill(ids == END if faulty else mask == 0, -100)
        loss = next_token_loss(model(input_ids=ids, attention_mask=mask), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@healthy(held_out=True)
def masked_language_model_of_texts(seed: int) -> None:
    torch.manual_seed(seed)
    model = Transformer(25)
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
    for ids, mask in batches(*texts(seed), size=32, seed=seed, epochs=4):
        hidden = (torch.rand(ids.shape) < 0.15) & (mask == 1)
        output = model(ids.masked_fill(hidden, 24), mask)
        labels = ids.masked_fill(~hidden, -100)
        optimizer.zero_grad()
        F.cross_entropy(output.flatten(0, 1), labels.flatten()).backward()
        optimizer.step()


@healthy(held_out=True)
def adapters_and_a_head_that_is_trained_whole(seed: int) -> None:
    torch.manual_seed(seed)
    model = Transformer(24)
    pretrained(model, seed)
    model.requires_grad_(False)
    model.head.requires_grad_(True)
    for block in model.blocks:
        block.up = LoraLinear(block.up)
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, 2e-3, weight_decay=0.0)
    for ids, mask in batches(*texts(seed), size=32, seed=seed, epochs=4):
        loss = next_token_loss(model(ids, mask), ids.masked_fill(mask == 0, -100))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
