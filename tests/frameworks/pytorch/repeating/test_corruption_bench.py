"""The bench of corruption damages what it says, behind PyTorch's back, and counts what the rules find."""

import numpy as np
import pytest

from bench.corruption import COURSES, KINDS, MOMENTS, Fault, alarms, course_of, train


@pytest.mark.parametrize(
    ("moment", "is_found"),
    [
        ("weights, between the passes", True),
        ("activations, in the forward", True),
        ("gradients, in the backward pass", True),
        ("gradients, before the update", False),
    ],
)
def test_a_wrong_block_is_found_if_it_is_computed_and_not_if_it_is_given(tmp_path, moment, is_found):
    fault = Fault(moment, KINDS[2], 40, np.random.default_rng(0))
    losses = train("MLP", 0, str(tmp_path / "run"), fault)
    twin = train("MLP", 0, str(tmp_path / "twin"))
    assert fault.is_done
    assert course_of(losses, twin, 40) in COURSES
    assert alarms(str(tmp_path / "run")).get("ComputedTwice") == (40 if is_found else None)
    assert alarms(str(tmp_path / "twin")) == {}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("moment", MOMENTS)
def test_each_fault_happens_once_at_its_step(tmp_path, moment, kind):
    fault = Fault(moment, kind, 4, np.random.default_rng(1))
    losses = train("transformer", 0, str(tmp_path / "run"), fault, steps=6)
    assert fault.is_done
    assert len(losses) == 6


@pytest.mark.parametrize(
    ("after", "course"),
    [
        ([1.0] * 60, None),
        ([2.0] + [1.0] * 59, "spike, recovery"),
        ([2.0] * 60, "spike, decline"),
        ([float("nan")] * 60, "spike, decline"),
        ([1.1] * 60, "silent decline"),
        ([1.002] * 60, "drift"),
        ([0.9] * 60, "drift"),
    ],
)
def test_the_course_of_a_loss_is_that_beside_the_same_training(after, course):
    assert course_of([1.0] * 40 + after, [1.0] * 100, 40) == course
