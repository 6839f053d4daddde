"""Rows of the validation that are rows of the training."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from smdebug import modes
from smdebug.numbers.batches import row_digests
from smdebug.rules import Finding
from tests.smdebug_default_rules.made_runs import Run

TRAINED = np.random.default_rng(1).normal(size=960)
"""A number for each row of the training."""
OTHERS = np.random.default_rng(2).normal(size=960)


def validated_on(
    run: Run, *batches: np.ndarray, features: Sequence[int] = (8,), epochs: int = 6
) -> list[Finding]:
    """Train for these epochs, validate on these batches after each, and return what is found."""
    for epoch in range(epochs):
        for some in np.random.default_rng(epoch).permutation(TRAINED).reshape(30, 32)[::2]:
            shape = [[len(some), *features]]
            run.facts.update(row_digests=row_digests(some), shapes=shape)
            run.losses(1.0 / (1 + epoch))
        for some in batches:
            run.facts.update(row_digests=row_digests(some), shapes=[[len(some), *features]])
            run.losses(1.0 / (1 + epoch), mode=modes.EVAL)
    return [finding for _, finding in run.evaluate("Generalisation")]


def titles(findings: list[Finding]) -> list[str]:
    return sorted({finding.title for finding in findings})


@pytest.fixture
def run(tmp_path) -> Run:
    return Run(tmp_path / "run")


FOUND = ["The model is validated on rows that it learns from"]


@pytest.mark.parametrize(
    ("batches", "found"),
    [
        ([TRAINED[:64], TRAINED[64:128]], FOUND),
        ([np.r_[TRAINED[:32], OTHERS[:32]]], FOUND),
        ([OTHERS[:64]], []),
        ([np.r_[TRAINED[:2], OTHERS[:62]]], []),  # a few that are equal by chance
        ([TRAINED[:64], OTHERS[:64]], []),  # the loss of rows of the training, and then of others
        ([*TRAINED.reshape(15, 64)], []),  # all that there is
        ([np.r_[TRAINED, OTHERS[:240]]], []),
    ],
)
def test_a_validation_on_a_part_of_the_training_is_reported(run, batches, found):
    assert titles(validated_on(run, *batches)) == found


def test_rows_of_few_features_may_be_equal(run):
    assert validated_on(run, TRAINED[:64], features=(3,)) == []


def test_two_validations_are_too_few(run):
    assert validated_on(run, TRAINED[:64], TRAINED[64:128], epochs=2) == []


def test_the_finding_says_how_many_rows_are_shared(run):
    finding = validated_on(run, np.r_[TRAINED[:32], OTHERS[:32]])[-1]
    assert 0.4 < finding.value < 0.7
    assert finding.cause == "shared rows"
    assert "bit-equal to rows of saved training steps" in finding.why[0]
