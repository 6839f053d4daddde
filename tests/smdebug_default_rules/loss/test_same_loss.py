"""A loss that is the same number at every step, and others that have a reason to be."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.smdebug_default_rules.made_steps import Steps

LEAST, EVEN = 60, math.log(2)
TITLE = "The loss is the same at every step"


def same(value=EVEN, *, steps=LEAST + 1, at=None, keep=(), dtype=None):
    """A loss of no known criterion; `at` is where it has another value, and `keep` kinds stay as they are."""
    run = Steps()
    run.facts["loss"] = {"factor": 1.0, "broadcast": None, "terms": []}
    first = {kind: {name: each.copy() for name, each in run.kinds[kind].items()} for kind in keep}
    for step in range(steps):
        for kind, tensors in first.items():
            run.kinds[kind] = {name: each.copy() for name, each in tensors.items()}
        if dtype is not None:
            run.kinds["parameters"] = {
                name: each.astype(dtype) for name, each in run.kinds["parameters"].items()
            }
        run.losses(value * 1.01 if step == at else value)
    return run


def found(run):
    return [
        finding
        for _, finding in run.evaluate("StuckLoss")
        if finding.title == "The loss is the same at every step"
    ]


def test_a_loss_that_nothing_changes_is_found_after_sixty_steps():
    assert found(same(steps=LEAST - 1)) == []
    first = found(same())[0]
    assert first.since == 0
    assert first.why[-1].startswith("0.69315 is ln 2")


def test_it_counts_from_the_step_at_which_it_was_another_last():
    (first, *_) = found(same(steps=LEAST + 7, at=5))
    assert first.since == 6
    assert found(same(steps=LEAST + 5, at=5)) == []


def test_a_margin_that_holds_it_is_no_logarithm_of_two():
    assert len(found(same(1.0))[0].why) == 1


@pytest.mark.parametrize(
    "how",
    [
        {"value": 0.0},
        {"value": 1e-7},
        {"keep": ("inputs",)},  # the whole data at each step, and nothing left to learn
        {"dtype": np.float16},  # whose losses have three digits
    ],
    ids=["zero", "nearly zero", "one batch", "half precision"],
)
def test_a_loss_that_may_seem_to_stand_still_passes(how):
    assert found(same(steps=LEAST + 20, **how)) == []


def test_weights_that_nothing_moves_are_another_matter():
    run = Steps()
    run.facts["loss"] = {"factor": 1.0, "broadcast": None, "terms": []}
    for _ in range(LEAST + 20):
        for name in run.kinds["updates"]:
            run.kinds["updates"][name] *= 0
        run.losses(0.7)
    assert found(run) == []
