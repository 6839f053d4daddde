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
    assert "destroy the initial weights" in found[0][1].message


def test_large_first_steps_after_which_the_loss_falls_pass(run):
    for step in range(30):
        for update in run.kinds["updates"].values():
            update *= 200.0 if step == 0 else 10.0
        run.losses(2.3 * 0.9**step)
    assert run.evaluate("LearningRate") == []


def test_large_first_steps_are_not_to_blame_for_a_loss_that_fell_and_rose_later(run):
    for step in range(60):
        for update in run.kinds["updates"].values():
            update *= 200.0 if step == 0 else 10.0
        run.losses(2.3 * 0.9**step if step < 40 else 1e4)
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


@pytest.mark.parametrize("exploded", [1e-1, 1e2, 1e6])
def test_a_loss_that_fell_and_exploded_had_learnt_before(run, exploded):
    """Its losses vary by far more than they did while it was low, which says nothing about that time."""
    rising = 2.4 + np.abs(run.random.normal(0, exploded, 170)) * np.linspace(0.1, 2, 170)
    run.losses(*np.linspace(2.3, 0.5, 60), *np.full(60, 0.5), *rising)
    found = run.evaluate("StuckLoss")
    assert found, "there are enough losses since it rose"
    assert all(115 <= finding.since <= 125 for _, finding in found)
    assert "had fallen to 0.5" in found[0][1].message


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
    for level, value in zip([1.5, 0.5, 0.2, 0.1, 0.05, 0.03], [2.1, 2.0, 2.2, 2.4, 2.6, 2.7], strict=True):
        run.losses(*([2.3] * 3 if level == 1.5 else []), *np.full(5, level))
        run.losses(value, mode=modes.EVAL)
    found = run.losses(0.02).evaluate("Generalisation")
    assert {finding.cause for _, finding in found} == {"overfitting"}


def test_a_loss_that_diverges_after_it_was_learnt_was_not_stuck(run):
    """The values after it are so large that they must not pass for noise before it."""
    run.losses(*np.linspace(2.3, 0.2, 150), *np.geomspace(2.3, 1e8, 10), *np.full(30, 2.4))
    assert run.evaluate("StuckLoss") == []


def test_hidden_sigmoids_may_begin_with_a_plateau(run):
    run.lasting["modules"] = [
        [name, "Sigmoid" if kind == "ReLU" else kind, depends]
        for name, kind, depends in run.lasting["modules"]
    ]
    run.losses(*(2.31 + run.random.normal(0, 0.03, 200)))
    assert run.evaluate("StuckLoss") == []


def next_training(run):
    number = run.lasting["optimizers"][0].get("number", 0)
    run.lasting["optimizers"] = [{**run.lasting["optimizers"][0], "number": number + 1}]


def test_another_optimizer_may_have_a_rate_of_its_own(run):
    next_training(run)
    run.write(steps=30)
    next_training(run)
    run.rate = 1.0
    assert run.write(steps=30).evaluate("LearningRate") == []


def test_another_fold_is_not_compared_with_the_one_before(run):
    for best in (0.02, 0.1):
        next_training(run)
        for epoch in range(6):
            run.losses(*np.linspace(2.3, 0.5, 5) / (1 + 10 * epoch))
            run.losses(best * (1 + 3 * 0.3**epoch), mode=modes.EVAL)
    assert run.losses(0.001).evaluate("Generalisation") == []


def test_weights_may_grow_while_the_loss_falls(run):
    for step in range(40):
        for name, values in run.kinds["parameters"].items():
            run.kinds["parameters"][name] = values * np.float32(1 + 4 * step)
        run.losses(2e5 * 0.97**step)
    assert run.evaluate("NonFiniteValues") == []


def test_weights_that_grow_without_end_are_found(run):
    for step in range(40):
        for name, values in run.kinds["parameters"].items():
            run.kinds["parameters"][name] = values * np.float32(1 + 4 * step)
        run.losses(2.3 + 0.1 * step)
    assert {finding.cause for _, finding in run.evaluate("NonFiniteValues")} == {"exploding"}


def test_a_layer_in_the_place_of_one_that_the_optimizer_still_owns_is_found(run):
    owned = ["Net_2.weight", "Net_2.bias"]
    run.lasting["frozen"] = ["Net_4.weight", "Net_4.bias"]
    run.lasting["optimizers"] = [{"class": "SGD", "groups": [{"parameters": owned, "others": 2}]}]
    found = run.write(steps=3).evaluate("UnreachedParameters")
    assert {finding.tensor for _, finding in found} == {"Net_0.weight"}
