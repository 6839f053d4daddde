"""Folds and stages: a loss that begins anew is not compared with the one of the training before."""

import pytest

from tests.smdebug_default_rules.made_steps import Steps

OF_LOSSES = ("LossSpike", "NonFiniteValues", "StuckLoss", "LearningRate", "ShrunkWeights")
FALLING = [0.9**step for step in range(60)]
CROSS_ENTROPY, SQUARED = "cross entropy", "mean squared error"


def train(steps, losses, saved_every=1):
    for number, loss in enumerate(losses, 1):
        if number % saved_every:
            steps.skip(loss)
        else:
            steps.loss = loss
            steps.write()


def found(steps):
    return {rule for rule in OF_LOSSES if steps.evaluate(rule)}


@pytest.mark.parametrize("skipped", [0, 5, 40])
@pytest.mark.parametrize("is_new", [True, False])
def test_a_loss_that_rises_is_judged_unless_the_optimizer_is_another(skipped, is_new):
    steps = Steps()
    steps.lasting["optimizers"][0]["number"] = 1
    train(steps, [0.01 + 0.1 * loss for loss in FALLING])
    steps.skip(*[0.01] * skipped)
    steps.lasting["optimizers"][0]["number"] = 2 if is_new else 1
    steps.skip(*[16.0] * skipped)
    train(steps, [16 * loss for loss in FALLING])
    assert found(steps) == (set() if is_new else {"LossSpike", "NonFiniteValues"})


def losses_of(steps, criterion, losses):
    steps.facts["loss"] = {"factor": 1.0, "terms": [{"criterion": criterion, "rows": 32}]}
    train(steps, losses)


def test_a_loss_of_another_criterion_is_another_loss():
    steps = Steps()
    losses_of(steps, CROSS_ENTROPY, [0.01 + 0.1 * loss for loss in FALLING])
    losses_of(steps, SQUARED, [16 * loss for loss in FALLING])
    assert found(steps) == set()


def test_losses_that_take_turns_are_judged_together():
    steps = Steps()
    for turn in range(12):
        losses_of(steps, (CROSS_ENTROPY, SQUARED)[turn % 2], [0.01 + 0.1 * loss for loss in FALLING[-5:]])
    losses_of(steps, CROSS_ENTROPY, [16.0] * 5)
    assert found(steps) == {"LossSpike", "NonFiniteValues"}


@pytest.mark.parametrize("steps_without", [1, 2])
def test_the_first_step_of_an_optimizer_may_be_one_of_the_model_before(steps_without):
    steps = Steps()
    steps.lasting["optimizers"][0]["number"] = 1
    steps.write(steps=3)
    known = steps.lasting["optimizers"][0]
    others = {"parameters": [], "others": 4}
    steps.lasting["optimizers"] = [{**known, "number": 2, "groups": [others]}]
    steps.write(steps=steps_without)
    steps.lasting["optimizers"] = [{**known, "number": 2}]
    steps.write(steps=3)
    titles = {finding.title for _, finding in steps.evaluate("LostUpdates")}
    assert titles == ({"The optimizer has none of the model's parameters"} if steps_without > 1 else set())
