"""A language of sixty words that count upwards, and models of some thousand parameters that learn it."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    LlamaForSequenceClassification,
    PreTrainedTokenizerFast,
)

WORDS = [f"w{number}" for number in range(60)]
SPECIAL = ["<pad>", "<eos>", "<unk>", "<bos>", ":"]
SIZES = {
    "vocab_size": len(SPECIAL) + len(WORDS),
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "eos_token_id": 1,
    "bos_token_id": 3,
}


def tokenizer() -> Any:
    vocabulary = {word: number for number, word in enumerate([*SPECIAL, *WORDS])}
    made = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    named = {"pad_token": "<pad>", "eos_token": "<eos>", "unk_token": "<unk>", "bos_token": "<bos>"}
    return PreTrainedTokenizerFast(tokenizer_object=made, **named)


def language_model() -> Any:
    torch.manual_seed(0)
    return LlamaForCausalLM(LlamaConfig(**SIZES))


def judge() -> Any:
    """A model that gives a text one number."""
    torch.manual_seed(0)
    return LlamaForSequenceClassification(LlamaConfig(**SIZES, num_labels=1))


def saved_model(folder: Path) -> str:
    """Save a language model; some trainers load it twice."""
    language_model().save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return str(folder)


def texts(count: int) -> Any:
    """Prompts with what follows (`completion`, `chosen`), and with random words (`rejected`)."""
    source = random.Random(0)
    rows = []
    for _ in range(count):
        first, given, following = source.randrange(50), source.randrange(3, 9), source.randrange(3, 7)
        words = [WORDS[(first + place) % 60] for place in range(given + following)]
        rows.append(
            {
                "prompt": " ".join(words[:given]) + " :",
                "completion": " " + " ".join(words[given:]),
                "chosen": " " + " ".join(words[given:]),
                "rejected": " " + " ".join(source.choice(WORDS) for _ in range(following)),
            }
        )
    return Dataset.from_list(rows)
