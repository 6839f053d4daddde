"""Slips that end without an error, each beside what looks like it and is meant."""

from __future__ import annotations

import numpy as np
import pytest

from tests.smdebug_default_rules.made_runs import MODULES, PARAMETERS, TERM
from tests.smdebug_default_rules.made_steps import Steps

REGRESSION = {
    "criterion": "mean squared error",
    "of_a_layer": True,
    "rows": 32,
    "target_rows": 32,
    "columns": 1,
    "means": [0.0],
    "variances": [1.0],
    "lowest": -2.5,
    "highest": 2.4,
}


def maximised(factor=-1.0, value=-2.3, optimizers=1, **term):
    """A step whose loss is its criterion times a factor."""
    steps = Steps()
    steps.lasting["optimizers"] *= optimizers
    steps.facts["loss"].update(factor=factor, value=value, terms=[{**TERM, **term}])
    return steps.write()


@pytest.mark.parametrize(
    ("steps", "found"),
    [
        (maximised(), True),
        (maximised(criterion="mean squared error"), True),
        (maximised(factor=0.25, value=0.6), False),
        (maximised(optimizers=2), False),  # of a generator, that is how it is meant
        (maximised(criterion="cosine similarity"), False),
    ],
)
def test_an_error_is_not_maximised(steps, found):
    assert [finding.value for _, finding in steps.evaluate("LossInput")] == ["maximised"] * found


def ending(kind="ReLU", after=0.0, others=0, **term):
    """A step of a regression by a model that ends with that layer, and perhaps with a sum after it."""
    steps = Steps()
    steps.lasting["optimizers"][0]["groups"][0]["others"] = others
    steps.lasting["modules"] = [*MODULES, ["5", kind, False]]
    given = np.abs(steps.normal(32, 1)) % 1
    steps.kinds["outputs"].update({"5_output_0": given, "Net_output_0": given + np.float32(after)})
    steps.facts["loss"]["terms"] = [{**REGRESSION, **term}]
    return steps.write()


@pytest.mark.parametrize(
    ("steps", "found"),
    [
        (ending(), True),
        (ending("Sigmoid", means=[5.5], lowest=1.0, highest=10.0), True),
        (ending("Tanh", means=[-4.0], lowest=-9.0, highest=0.5), True),
        (ending("Linear"), False),
        (ending("Tanh"), False),  # standardised targets are mostly within reach
        (ending(after=-1.0), False),  # what comes after the layer may reach them
        (ending(others=8), False),  # an encoder, whose decoder was not called before
        (ending(means=[2.0], lowest=0.0, highest=9.0), False),
        (ending("Sigmoid", means=[0.5], variances=[0.08], lowest=0.0, highest=1.0), False),
        (ending(means=[0.05], variances=[0.01], lowest=-0.08), False),  # zeros with a little noise
        (ending(of_a_layer=False), False),
        (ending(criterion="cross entropy"), False),
        (ending(target_rows=4), False),
    ],
)
def test_targets_lie_within_reach_of_the_last_layer(steps, found):
    values = [finding.value for _, finding in steps.evaluate("LossInput")]
    assert values == ["targets out of reach"] * found


def passes(count, factor, reset=False, steps=3, wanted=None):
    """Steps of so many backward passes whose losses are multiplied by a factor."""
    made = Steps()
    if wanted:
        made.facts["loss"]["accumulates"] = {"name": "accum_steps", "number": wanted}
    made.facts["backward_passes"] = count
    made.facts["loss"]["factor"] = factor
    if reset:
        made.facts["reset_between_passes"] = True
    return made.write(steps=steps)


@pytest.mark.parametrize(
    ("steps", "title"),
    [
        (passes(8, 1 / 64), "Accumulated losses are divided twice"),
        (passes(4, 1 / 4, reset=True), "Gradients are reset while they accumulate"),
        (passes(4, 1 / 4), None),
        (passes(4, 1 / 5), None),
        (passes(2, 1 / 4), None),  # half of a squared error, over two passes
        (passes(2, 1.0, reset=True), None),  # sharpness-aware minimisation
        (passes(8, 1 / 64, steps=1), None),
        (passes(1, 1 / 8, wanted=8), "The loss is divided, but nothing accumulates"),
        (passes(4, 1 / 8, wanted=8), "Fewer losses accumulate than they are divided by"),
        (passes(8, 1 / 8, wanted=8), None),
        (passes(16, 1 / 8, wanted=8), None),  # two losses of each batch
        (passes(1, 1 / 8), None),  # a loss may be divided by 8 for another reason
        (passes(1, 1 / 8, steps=1, wanted=8), None),
    ],
)
def test_losses_that_accumulate_are_divided_once_and_kept(steps, title):
    titles = {finding.title for _, finding in steps.evaluate("AccumulationScale")}
    assert titles == ({title} if title else set())


def test_the_last_losses_of_an_epoch_may_be_fewer():
    """A saved step may be the last of an epoch again and again, and the first ones are not."""
    made = Steps()
    made.facts["loss"] |= {"factor": 1 / 8, "accumulates": {"name": "accum_steps", "number": 8}}
    for count in (8, 2, 2, 2):
        made.facts["backward_passes"] = count
        made.write()
    assert not list(made.evaluate("AccumulationScale"))


def half(size=1e-6, zeros=0.3, autocast="float16", factor=1.0, scale=None, steps=4):
    """Steps in float16 whose gradients have this size, and are zero to this share."""
    made = Steps()
    made.facts["loss"]["factor"] = factor
    made.facts["autocast"] = autocast
    if scale is not None:
        made.facts["loss_scale"] = scale
    for _ in range(steps):
        for gradient in made.kinds["gradients"].values():
            gradient[:] = size
            gradient.reshape(-1)[: int(zeros * gradient.size)] = 0
        made.write()
    return made


@pytest.mark.parametrize(
    ("steps", "found"),
    [
        (half(), True),
        (half(size=1e-4), False),
        (half(zeros=0.0), False),
        (half(autocast="bfloat16"), False),
        (half(factor=1024.0), False),  # scaled by hand
        (half(scale=65536.0), False),
        (half(steps=2), False),
    ],
)
def test_gradients_in_half_precision_are_scaled(steps, found):
    titles = {finding.title for _, finding in steps.evaluate("LossScale")}
    assert titles == ({"Gradients underflow in float16"} if found else set())


def ordered(largest=(0, 0, 0, 1, 1, 2), seen=1, changes=0.0, **term):
    """A step for each of these classes, with rows that are sorted by class."""
    steps = Steps()
    for known in largest:
        facts = {"of_a_layer": True, "classes_seen": seen, "changes": changes, "largest_class": known}
        steps.facts["loss"]["terms"] = [{**TERM, **facts, **term}]
        steps.write()
    return steps


@pytest.mark.parametrize(
    ("steps", "found"),
    [
        (ordered(), True),
        (ordered(seen=2, changes=1 / 31), True),  # one class ends, and the next one begins
        (ordered(seen=2, changes=0.5), False),
        (ordered((0, 0, 0, 0, 0, 0)), False),
        (ordered((0, 0, 1, 1, 2)), False),
        (ordered(classes=2), False),
        (ordered(targets=320), False),  # of pixels or tokens
        (ordered(of_a_layer=False), False),
    ],
)
def test_batches_mix_the_classes(steps, found):
    titles = {finding.title for _, finding in steps.evaluate("LabelBalance")}
    assert titles == ({"Each batch has a class of its own"} if found else set())


def test_a_batch_that_mixed_classes_clears_the_order_of_later_ones():
    steps = ordered((3,), seen=10, changes=0.9)
    steps.seen += ordered().seen
    assert steps.evaluate("LabelBalance") == []


def zeros(*losses, criterion="Kullback-Leibler divergence", optimizer="SGD", **term):
    """A training whose losses are these, from the first step on."""
    steps = Steps()
    steps.lasting["optimizers"] = [{"class": optimizer, "groups": []}] * 2
    steps.facts["loss"]["terms"] = [{**REGRESSION, "criterion": criterion, **term}]
    for loss in losses:
        steps.loss = loss
        steps.write()
    return steps


@pytest.mark.parametrize(
    ("steps", "found"),
    [
        (zeros(*[1e-9] * 24), True),
        (zeros(*[0.0] * 24, criterion="mean squared error"), True),
        (zeros(*[0.4] * 7, *[0.0] * 20), True),  # the end of the teacher's training
        (zeros(*[0.4] * 12, *[0.0] * 20), False),
        (zeros(*[1e-9] * 12), False),
        (zeros(*[1e-3] * 24), False),
        (zeros(*[1e-12] * 24, criterion="mean squared error", variances=[1e-4]), False),  # tiny targets
        (zeros(*[0.0] * 24, criterion="mean squared error", variances=[0.0]), False),
        (zeros(*[0.0] * 24, criterion="cross entropy"), False),
        (zeros(*[1e-9] * 24, optimizer="LBFGS"), False),
    ],
)
def test_a_loss_that_was_zero_from_the_first_step_compares_a_model_with_itself(steps, found):
    titles = {finding.title for _, finding in steps.evaluate("StuckLoss")}
    assert titles == ({"The loss is zero from the first step"} if found else set())


def headed(count=60, trained_at=None, results=2, inner=False):
    """A training of a model with a second head, layer 5, of which no loss is computed."""
    steps = Steps()
    steps.lasting["modules"] = [*MODULES, ["5", "Linear", False]]
    names = [*PARAMETERS, "Net_5.weight"]
    steps.lasting["optimizers"][0]["groups"][0]["parameters"] = names
    for at in range(count):
        head = steps.normal(32, 3)
        steps.kinds["parameters"]["Net_5.weight"] = steps.normal(3, 16)
        if at == trained_at:
            steps.kinds["gradients"]["gradient/Net_5.weight"] = steps.normal(3, 16)
        steps.kinds["outputs"]["5_output_0"] = head
        if results > 1:
            steps.kinds["outputs"]["Net_output_1"] = np.tanh(head) if inner else head
        steps.write()
    return steps


@pytest.mark.parametrize(
    ("steps", "found"),
    [
        (headed(), True),
        (headed(count=45), False),  # it may have its turn later
        (headed(trained_at=7), False),
        (headed(results=1), False),
        (headed(inner=True), False),  # such as a pooler, which another head would use
    ],
)
def test_each_result_of_a_model_has_a_loss(steps, found):
    titles = {finding.title for _, finding in steps.evaluate("UnreachedParameters")}
    assert titles == ({"An output of the model has no loss"} if found else set())


def teacher(gradients):
    """A step of an optimizer while a model with dropout is in evaluation mode."""
    steps = Steps()
    steps.lasting["modules"] = [*MODULES, ["5", "Dropout", True]]
    steps.facts.update(training=False, gradients=gradients)
    return steps.write()


def test_a_teacher_in_evaluation_mode_is_not_the_model_that_the_optimizer_trains():
    assert teacher(gradients=False).evaluate("ModuleModes") == []
    assert len(teacher(gradients=True).evaluate("ModuleModes")) == 1
