"""Trainings that do not learn for a reason: the rate, the weight decay, or a loss that rose again."""

import numpy as np
import pytest

from smdebug import modes
from tests.smdebug_default_rules.made_runs import TERM


def test_steps_that_together_hardly_move_the_weights_are_found_as_a_rate(run):
    for step in range(160):
        for update in run.kinds["updates"].values():
            update *= 0.003
        run.losses(2.3 + 0.001 * (step % 7))
    found = run.evaluate("LearningRate")
    assert found[0][0] == 149
    assert {(finding.since, finding.cause) for _, finding in found} == {(0, "learning rate")}


def test_small_steps_of_a_model_that_has_learnt_pass(run):
    for step in range(160):
        for update in run.kinds["updates"].values():
            update *= 0.003
        run.losses(0.02 + 0.001 * (step % 7))
    assert run.evaluate("LearningRate") == []


def test_first_steps_that_throw_the_weights_away_are_found_as_a_rate(run):
    for step in range(12):
        for update in run.kinds["updates"].values():
            update *= 200.0 if step == 0 else 10.0
        run.losses(2.3)
    found = run.evaluate("LearningRate")
    assert {finding.since for _, finding in found} == {0}
    assert "lost at once" in found[0][1].message


def test_large_first_steps_after_which_the_loss_falls_pass(run):
    for step in range(30):
        for update in run.kinds["updates"].values():
            update *= 200.0 if step == 0 else 10.0
        run.losses(2.3 * 0.9**step)
    assert run.evaluate("LearningRate") == []


def test_weights_that_shrink_to_nothing_are_found(run):
    for step in range(20):
        for name, values in run.kinds["parameters"].items():
            run.kinds["parameters"][name] = values * np.float32(0.75**step)
        run.losses(2.3)
    found = run.evaluate("ShrunkWeights")
    assert {(finding.cause, finding.since) for _, finding in found} == {("weight decay", 0)}
    assert found[0][0] == 13


@pytest.mark.parametrize("reason", ["it learns", "a single layer"])
def test_weights_may_shrink_for_a_reason(run, reason):
    for step in range(20):
        for name, values in run.kinds["parameters"].items():
            if reason == "it learns" or name.startswith("Net_2"):
                run.kinds["parameters"][name] = values * np.float32(0.75**step)
        run.losses(2.3 * (0.95**step if reason == "it learns" else 1))
    assert run.evaluate("ShrunkWeights") == []


def test_a_row_a_step_needs_more_steps(run):
    run.facts["loss"]["terms"] = [{**TERM, "rows": 1}]
    run.losses(*(2.31 + run.random.normal(0, 0.03, 160)))
    assert run.evaluate("StuckLoss") == []


def test_a_loss_that_was_lower_in_between_is_stuck_since_it_rose(run):
    noise = run.random.normal(0, 0.03, 290)
    run.losses(*np.linspace(2.3, 0.5, 60), *np.full(60, 0.5), *(2.31 + noise[:160]))
    found = run.evaluate("StuckLoss")
    assert {finding.since for _, finding in found} <= set(range(118, 126))
    assert "had fallen to 0.5" in found[0][1].message


def test_a_loss_that_rose_a_short_time_ago_is_not_stuck(run):
    run.losses(*np.linspace(2.3, 0.5, 60), *np.full(60, 0.5), *np.full(100, 2.31))
    assert run.evaluate("StuckLoss") == []


def test_a_validation_that_falls_a_little_before_it_rises_is_overfitting(run):
    """The training may fall far within its first steps: what the untrained model has is compared."""
    for level, value in zip(
        [1.5, 0.5, 0.2, 0.1, 0.05, 0.03], [2.1, 2.0, 2.2, 2.4, 2.6, 2.7], strict=True
    ):
        run.losses(*([2.3] * 3 if level == 1.5 else []), *np.full(5, level))
        run.losses(value, mode=modes.EVAL)
    found = run.losses(0.02).evaluate("Generalisation")
    assert {finding.cause for _, finding in found} == {"overfitting"}
