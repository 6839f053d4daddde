"""Contrastive losses that stay where guessing is, and others that only look like it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.smdebug_default_rules.made_steps import Steps

ROWS = 64
GUESSING = math.log(ROWS)


def contrastive(level=0.985, *, terms=2, classes=ROWS, seen=ROWS, falls_to=None, steps=200):
    """A loss that falls a little in the first steps, and evenly but hardly after them."""
    run = Steps()
    term = {"criterion": "cross entropy", "rows": ROWS, "classes": classes, "classes_seen": seen}
    run.facts["loss"] = {"factor": 1 / terms, "broadcast": None, "terms": [term] * terms}
    course = np.r_[np.linspace(1, level, 20), np.linspace(level, falls_to or level - 0.001, steps - 20)]
    for loss in GUESSING * course:
        run.losses(float(loss))
    return run


def found(run):
    return [at for _, at in run.evaluate("StuckLoss")]


@pytest.mark.parametrize("terms", [1, 2])
def test_a_loss_that_has_ended_near_guessing_is_reported_although_it_fell_evenly(terms):
    first = found(contrastive(terms=terms))[0]
    assert "guessing among 64 classes gives 4.159" in first.message
    assert first.why[0] == "Each of 64 rows is to be told from the 63 others of its batch"
    assert first.advice[0].startswith("Divide the similarities by a temperature of about 0.07")


@pytest.mark.parametrize(
    "change",
    [
        {"falls_to": 0.96},  # slowly, but it learns
        {"level": 0.9},
        {"seen": ROWS - 1},  # rows that share a label
        {"classes": ROWS + 1},  # a classifier with as many rows as it has classes, but for one
        {"terms": 3},
        {"steps": 140},
    ],
)
def test_what_learns_or_is_no_contrastive_loss_is_left_alone(change):
    assert found(contrastive(**change)) == []
