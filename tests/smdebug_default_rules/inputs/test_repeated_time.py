"""Times of a diffusion: always the same, or drawn anew; and inputs that are constant on purpose."""

from __future__ import annotations

import numpy as np
import pytest

from smdebug_default_rules.inputs import repeated_time
from tests.smdebug_default_rules.made_steps import Steps

NOISE = {
    "criterion": "mean squared error",
    "rows": 32,
    "target_rows": 32,
    "columns": 8,
    "means": [0.1, -0.1] * 4,
    "variances": [0.9, 1.2] * 4,
}


def denoised(
    steps=10, apart=50, time=0.3, names=("x", "t"), noise=NOISE, more=(), same=False, kind=np.float32
):
    """A run of a denoiser of two inputs, whose times a function may make of the number of the step."""
    run = Steps()
    run.lasting["input_names"] = list(names)
    run.facts["shapes"] = [[32, 8], [32], *([32] for _ in more)]
    run.facts["loss"] = {"terms": [noise]}
    first = run.kinds["inputs"]["Net_input_0"].copy()
    for step in range(steps):
        if step == steps - 1:
            run.step = apart
        now = time(step) if callable(time) else time
        run.kinds["inputs"] |= {"Net_input_0": first} if same else {}
        for number, values in enumerate((now, *more), 1):
            run.kinds["inputs"][f"Net_input_{number}"] = np.full(32, 0, kind) + np.asarray(values, kind)
        run.write()
    return run


def found(run):
    return [(step, at.since) for step, at in run.evaluate("RepeatedInput") if at.title == repeated_time.TITLE]


@pytest.mark.parametrize(("steps", "apart", "count"), [(10, 50, 1), (9, 50, 0), (10, 49, 0)])
def test_a_time_that_is_the_same_for_ten_saved_steps_over_fifty_is_found(steps, apart, count):
    assert len(found(denoised(steps, apart))) == count


def test_it_says_which_input_and_which_time():
    (_, finding), *_ = [
        at for at in denoised().evaluate("RepeatedInput") if at[1].title == repeated_time.TITLE
    ]
    assert (finding.cause, finding.tensor, finding.since) == ("repeated input", "Net_input_1", 0)
    assert finding.why == ("1 value, 0.3, in all rows of 10 saved steps",)


@pytest.mark.parametrize("name", ["step", "step_index", "diffusion_step"])
def test_the_number_of_a_step_is_a_time_and_its_length_is_not(name):
    assert found(denoised(names=("x", name), time=25, kind=np.int64))
    assert found(denoised(names=("x", name), time=0.25)) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"names": ("state", "steps"), "time": 4, "kind": np.int64},  # how many between two states
        {"names": ("x", "step"), "time": lambda step: step, "kind": np.int64},
        {"time": lambda step: step / 10},  # one for each batch
        {"time": np.arange(32) / 32},
        {"names": ("state", "dt")},
        {"names": ()},
        {"more": (1.0,), "time": lambda step: step / 10, "names": ("x", "t", "scale")},
        {"noise": {**NOISE, "variances": [0.1] * 8}},  # no noise is as small
        {"noise": {**NOISE, "criterion": "cross entropy"}},
        {"same": True},  # one batch that is fitted by heart as a check
    ],
)
def test_times_that_differ_and_constants_of_other_models_are_not_found(changes):
    assert found(denoised(**changes)) == []


def test_another_time_begins_anew():
    assert found(denoised(steps=12, time=lambda step: 0.3 if step < 4 else 0.6)) == []
