"""The bench of corruption damages what it says, behind PyTorch's back, and counts what the rules find."""

import numpy as np
import pytest

from bench.corruption import COURSES, KINDS, MOMENTS, Fault, alarms, course_of, train


@pytest.mark.parametrize(
    ("moment", "step", "is_found"),
    [
        ("weights, between steps", 40, True),
        ("activations, in the forward", 40, True),
        ("gradients, in the backward pass", 40, True),
        ("gradients, before the update", 40, True),
        ("optimizer state, before the update", 40, True),
        ("gradients, before the update", 41, False),
    ],
)
def test_a_wrong_block_is_found_at_a_step_that_is_computed_twice(tmp_path, moment, step, is_found):
    fault = Fault(moment, KINDS[2], step, np.random.default_rng(0))
    losses = train("MLP", 0, str(tmp_path / "run"), fault)
    twin = train("MLP", 0, str(tmp_path / "twin"))
    assert fault.is_done
    assert course_of(losses, twin, step) in COURSES
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
