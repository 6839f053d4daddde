"""A small network of word vectors that learns to tell what sentences are about, padded much or little."""

from __future__ import annotations

import numpy as np

from smdebug.mode_keys import ModeKeys
from tests.rules.made_runs import MadeRun
from tests.trainings.nets import Array, cross_entropy

WORDS, SUBJECTS, WIDTH = 300, 3, 16
SHORTEST, LONGEST = 9, 18
BATCH, RATE = 32, 2.0
PADDING = 0
COLLECTIONS = {"losses": ["^loss$"], "input_sequence": ["embedding0_input_0"]}


def sentences(random: np.random.Generator, count: int) -> tuple[list[Array], Array]:
    """Each is about one subject, which has words of its own that come more often."""
    about = random.integers(0, SUBJECTS, count)
    own = np.array_split(np.arange(1, WORDS), SUBJECTS)
    texts = []
    for subject in about:
        length = random.integers(SHORTEST, LONGEST + 1)
        common, special = random.integers(1, WORDS, length), random.choice(own[subject], length)
        texts.append(np.where(random.random(length) < 0.5, special, common))
    return texts, about


def padded(batch: list[Array], length: int) -> Array:
    """The sentences as rows of one length."""
    tokens = np.full((len(batch), length), PADDING)
    for row, sentence in zip(tokens, batch, strict=True):
        row[: len(sentence)] = sentence
    return tokens


def trained(seed: int, *, padded_to: int | None, steps: int = 60) -> MadeRun:
    """The run of a training on such sentences; without `padded_to`, up to the longest of a batch."""
    random = np.random.default_rng(seed)
    texts, about = sentences(random, 300)
    vectors = random.normal(0, 0.5, (WORDS, WIDTH))
    weight = random.normal(0, 0.1, (WIDTH, SUBJECTS))
    run = MadeRun(collections=COLLECTIONS)
    for step in range(steps):
        chosen = random.choice(len(texts), BATCH, replace=False)
        batch = [texts[at] for at in chosen]
        tokens = padded(batch, padded_to or max(map(len, batch)))
        pooled = vectors[tokens].mean(axis=1)  # which padding waters down
        loss, delta = cross_entropy(pooled @ weight, about[chosen])
        by_word = (delta @ weight.T / tokens.shape[1])[:, None, :]
        weight = weight - RATE * pooled.T @ delta
        np.subtract.at(vectors, tokens, RATE * by_word)
        run.save(step, {"loss": loss, "embedding0_input_0": tokens}, mode=ModeKeys.TRAIN)
    return run.end()
