"""Trainings that go on from a checkpoint of which a part was not loaded."""

from __future__ import annotations

import numpy as np
import pytest

from tests.smdebug_default_rules.made_runs import PARAMETERS
from tests.smdebug_default_rules.made_steps import Steps

ANEW = "The optimizer begins anew after a resume"
SCHEDULE = "The schedule begins again after a resume"


def write(run: Steps, share: float, loss: float, name: str = "Net", weight: str = "weight") -> None:
    """Write a step whose weights lie that share of the way from the first ones to others."""
    first, others = (np.random.default_rng(seed).normal(0, 0.1, (16, 16)) for seed in (1, 2))
    for kind, prefix in (("parameters", ""), ("gradients", "gradient/"), ("updates", "update/")):
        tensors = run.kinds[kind]
        for parameter in PARAMETERS:
            array = tensors.pop(f"{prefix}{parameter}")
            if kind == "parameters" and parameter.endswith("weight"):
                array = (first + share * (others - first)).astype(np.float32)
            tensors[f"{prefix}{parameter.replace('Net', name).replace('weight', weight)}"] = array
    run.loss = loss
    run.write()


def resumed(
    *,
    updates: int | None = 0,
    rate: float = 0.1,
    rates: tuple[float, float] = (0.1, 0.1),
    begins_at: float = 1.0,
    loss: float = 0.5,
    name: str = "Net-2",
    weight: str = "weight",
    attempt: int = 0,
    number: tuple[int, int] = (0, 1),
    kind: str = "Adam",
    steps: int = 60,
) -> Steps:
    """Return a training of so many steps, and three of one that has another optimizer and goes on with it."""
    run = Steps()
    (optimizer,) = run.lasting["optimizers"]
    optimizer |= {"class": "Adam", "number": number[0], "updates_before": 0}
    for at in range(0, steps + 1, 10):
        run.rate = rates[0] + (rates[1] - rates[0]) * at / steps
        write(run, at / steps, 0.6 - 0.1 * at / steps)
        run.skip(*[0.55] * (9 if at < steps else 0))
    optimizer |= {"class": kind, "number": number[1], "updates_before": updates}
    optimizer["groups"][0]["parameters"] = [
        each.replace("Net", name).replace("weight", weight) for each in PARAMETERS
    ]
    if attempt:
        run.lasting["attempt"] = attempt
    run.rate = rate
    for _ in range(3):
        write(run, begins_at, loss, name, weight)
    return run


def found(run: Steps) -> list[tuple[int, str]]:
    return [(step, finding.title) for step, finding in run.evaluate("LearningRate")]


@pytest.mark.parametrize("updates", [0, 1])
def test_a_new_optimizer_of_loaded_weights_is_reported_from_its_first_step_on(updates):
    assert found(resumed(updates=updates)) == [(step, ANEW) for step in (61, 62, 63)]


def test_another_attempt_of_the_same_model_is_reported():
    run = resumed(name="Net", attempt=1, number=(0, 0))
    assert found(run) == [(step, ANEW) for step in (61, 62, 63)]


@pytest.mark.parametrize(
    ("updates", "first", "before", "rate", "title"),
    [
        (60, 0.1, 0.05, 0.1, SCHEDULE),
        (60, 0.1, 0.05, 0.0956, SCHEDULE),
        (60, 0.001, 0.1, 0.002, SCHEDULE),
        (0, 0.1, 0.05, 0.1, ANEW),
        (0, 0.1, 0.05, 0.05, ANEW),
    ],
    ids=["back at the first", "nearly", "warm-up", "moments, too", "moments alone"],
)
def test_a_rate_that_is_back_at_the_first_one_is_reported(updates, first, before, rate, title):
    run = resumed(updates=updates, rates=(first, before), rate=rate)
    assert found(run) == [(step, title) for step in (61, 62, 63)]


@pytest.mark.parametrize(
    "changed",
    [
        {"updates": 61},
        {"updates": None},
        {"name": "Net"},
        {"name": "Net", "weight": "weight_orig"},
        {"name": "Net", "weight": "parametrizations.weight.original"},
        {"kind": "AdamW"},
        {"begins_at": 0.0},
        {"begins_at": 0.45},
        {"loss": 2.3},
        {"loss": 0.2},
        {"rate": 0.01},
        {"rate": 0.1, "rates": (0.1, 0.004), "updates": 61},
        {"rate": 0.06, "rates": (0.1, 0.05), "updates": 61},
        {"rate": 0.1, "rates": (0.1, 0.095), "updates": 61},
        {"number": (1, 2)},
        {"number": (0, 2)},
        {"steps": 40},
    ],
    ids=str,
)
def test_what_is_another_training_or_goes_on_with_all_of_it_is_not_reported(changed):
    run = resumed(**changed)
    assert found(run) == []
