"""A dropout or a ReLU between the last layer and the loss, and those that stand where they should."""

from __future__ import annotations

import pytest

from tests.smdebug_default_rules.made_runs import MODULES, TERM
from tests.smdebug_default_rules.made_steps import Steps

ROWS, CLASSES = 32, 10


def dropped(kind="Dropout", share=0.5, *, last=True, classes=CLASSES, **term):
    """A step of a classifier whose last module is of that kind, and is called last or not."""
    steps = Steps()
    steps.lasting["modules"] = [*MODULES, ["5", kind, True]]
    scores = steps.normal(ROWS, classes)
    scores.reshape(-1)[: round(share * scores.size)] = 0
    steps.kinds["outputs"]["Net_output_0"] = scores
    steps.kinds["outputs"]["5_output_0"] = scores if last else scores[::2]
    steps.facts["loss"]["terms"] = [{**TERM, "rows": ROWS, "classes": classes, **term}]
    return steps.write()


def found(steps):
    return [finding.title for _, finding in steps.evaluate("LossInput")]


@pytest.mark.parametrize(
    "steps",
    [
        dropped(),
        dropped("AlphaDropout", 0.1),
        dropped(criterion="binary cross entropy with logits"),
    ],
)
def test_a_dropout_after_the_last_layer_is_found(steps):
    assert found(steps) == ["Dropout after the last layer"]


@pytest.mark.parametrize(
    "steps",
    [
        dropped("Linear"),
        dropped(last=False),  # it is written last, and called before
        dropped(share=0.0),  # p=0
        dropped(criterion="mean squared error"),
        dropped(rows=ROWS * 4),  # the loss is of something that was computed from the output
        dropped(classes=ROWS, classes_seen=ROWS),  # of two views of each row, made by dropout
    ],
    ids=["none", "before", "p=0", "values", "other rows", "contrastive"],
)
def test_dropouts_elsewhere_pass(steps):
    assert found(steps) == []


def rectified(**term):
    """A step of a classifier whose scores below zero were set to zero."""
    steps = Steps()
    steps.kinds["outputs"]["Net_output_0"] = steps.normal(ROWS, CLASSES).clip(0)
    steps.facts["loss"]["terms"] = [{**TERM, "rows": ROWS, "classes": CLASSES, "given": "relu", **term}]
    return steps.write()


@pytest.mark.parametrize("steps", [rectified(), rectified(criterion="binary cross entropy with logits")])
def test_a_relu_before_the_loss_is_found(steps):
    assert found(steps) == ["ReLU before the loss"]


@pytest.mark.parametrize(
    "steps",
    [
        rectified(given=""),
        rectified(criterion="mean squared error"),  # targets may be positive
        rectified(classes=ROWS, classes_seen=ROWS),  # similarities of the rows of a batch
    ],
    ids=["none", "values", "contrastive"],
)
def test_rectified_values_elsewhere_pass(steps):
    assert found(steps) == []
