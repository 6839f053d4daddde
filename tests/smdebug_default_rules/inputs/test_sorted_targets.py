"""Rows that are sorted by targets that are numbers."""

from __future__ import annotations

import pytest

from tests.smdebug_default_rules.made_steps import Steps

SQUARED = {"criterion": "mean squared error", "rows": 32, "target_rows": 32, "columns": 1}


def ordered(
    *,
    ascending: float = 1.0,
    apart: float = 1.0,
    changes: float = 1.0,
    epoch: int = 4,
    rows: int = 32,
    steps: int = 10,
    other_at: int | None = None,
    other: float = 0.5,
) -> Steps:
    """Return a run of batches with a spread of 0.5, whose means lie so far from each other."""
    run = Steps()
    for step in range(steps):
        rising = other if step == other_at else ascending
        mean = step % epoch * apart * (1 if ascending == 1 else -1)
        term = {"means": [mean], "variances": [0.25], "ascending": rising, "changes": changes}
        run.facts["loss"] = {"factor": 1.0, "terms": [SQUARED | {"target_rows": rows} | term]}
        run.write()
    return run


def found(run: Steps) -> list[tuple[int, str]]:
    return [(step, finding.title) for step, finding in run.evaluate("LabelBalance")]


TITLE = "Each batch has a range of targets of its own"


@pytest.mark.parametrize(("ascending", "changes"), [(1.0, 1.0), (0.0, 1.0), (1.0, 0.2), (0.130435, 0.869565)])
def test_batches_of_sorted_targets_with_ranges_of_their_own_are_reported(ascending, changes):
    assert found(ordered(ascending=ascending, changes=changes)) == [(step, TITLE) for step in range(5, 10)]


def test_a_file_too_long_for_a_second_epoch_is_reported_after_24_saved_steps():
    assert found(ordered(epoch=100, steps=25)) == [(23, TITLE), (24, TITLE)]


def test_the_range_has_to_begin_again():
    assert found(ordered(epoch=8)) == [(8, TITLE), (9, TITLE)]


def test_a_batch_of_five_values_is_enough():
    assert found(ordered(changes=4 / 7, rows=8))
    assert not found(ordered(changes=3 / 7, rows=8))


@pytest.mark.parametrize(
    "run",
    [
        lambda: ordered(ascending=0.97),
        lambda: ordered(epoch=1),
        lambda: ordered(apart=0.66),
        lambda: ordered(changes=0.1),
        lambda: ordered(other_at=0),
        lambda: ordered(other_at=4),
        lambda: ordered(other_at=4, other=0.0),
    ],
    ids=[
        "nearly",
        "one batch",
        "close",
        "few values",
        "first mixed",
        "later mixed",
        "once the other way round",
    ],
)
def test_other_batches_are_not_reported(run):
    assert found(run()) == []
