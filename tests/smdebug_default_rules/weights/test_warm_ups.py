"""Warm-ups that count epochs where they should count steps."""

from __future__ import annotations

import pytest

from tests.smdebug_default_rules.made_steps import Steps


def warming(
    epochs: float, *, held: int = 20, passes: int = 1, asked: float | None = 0.1, steps: int = 140
) -> Steps:
    """Return a run whose rate rises once in so many steps, and would rise for so many epochs."""
    run = Steps()
    group = run.lasting["optimizers"][0]["groups"][0]
    if asked is not None:
        group["asked_rate"] = asked
    run.facts["backward_passes"] = passes
    for step in range(steps):
        run.rate = min(0.1, 0.1 * (step // held + 1) / epochs)
        run.write()
    return run


def found(run: Steps) -> list[tuple[int, str]]:
    return [
        (step, finding.message)
        for step, finding in run.evaluate("LearningRate")
        if finding.title == "The warm-up does not end"
    ]


def test_a_warm_up_of_a_thousand_epochs_is_found_at_the_third_rise():
    step, message = found(warming(1000))[0]
    assert step == 60
    assert message == (
        "The learning rate of group 0 is 0.0004 after 60 steps, where 0.1 was asked for: it rises once in "
        "20 steps, and the warm-up would take 20,000"
    )


@pytest.mark.parametrize(
    "run",
    [
        lambda: warming(39),
        lambda: warming(1000, held=1),
        lambda: warming(1000, held=9),
        lambda: warming(1000, passes=7),
        lambda: warming(1000, asked=None),
    ],
    ids=["short", "per step", "often", "accumulated", "unknown"],
)
def test_other_warm_ups_are_not_reported(run):
    assert found(run()) == []


def test_a_warm_up_is_reported_until_a_quarter_of_it_is_over():
    steps = [step for step, _ in found(warming(45, held=10, steps=400))]
    assert (steps[0], steps[-1]) == (60, 112)


def test_a_rate_that_falls_begins_another_warm_up():
    run = warming(1000, steps=59)
    run.rate = 1e-5
    assert found(run.write(steps=60)) == []
