"""A weight decay that is so large that it holds the loss where it is."""

import pytest

from smdebug_default_rules.weights.balanced_decay import TITLE
from tests.smdebug_default_rules.made_runs import PARAMETERS
from tests.smdebug_default_rules.made_steps import Steps


def held(decay=0.5, steps=51, kind="SGD", ratio=1.0, loss=1.5, **group):
    """A run whose gradients are that many times what the decay adds to them."""
    made = Steps()
    group = {"parameters": list(PARAMETERS), "others": 0, "weight_decay": decay, **group}
    made.lasting["optimizers"] = [{"class": kind, "groups": [group]}]
    for at in range(steps):
        for name in PARAMETERS:
            made.kinds["gradients"][f"gradient/{name}"] = -ratio * decay * made.kinds["parameters"][name]
        made.loss = loss if at >= 20 else 1.5
        made.write()
    return made


def found(run):
    return [step for step, finding in run.evaluate("ShrunkWeights") if finding.title == TITLE]


@pytest.mark.parametrize(("steps", "at"), [(50, []), (51, [50])])
def test_a_decay_that_cancels_the_gradients_is_found(steps, at):
    assert found(held(steps=steps)) == at


def test_the_finding_names_the_decay():
    ((_, finding),) = held().evaluate("ShrunkWeights")
    assert finding.message.startswith("The weight decay of 0.5 cancels the gradients of all 3 weights")
    assert finding.advice[0].startswith("Lower the weight decay of 0.5")


@pytest.mark.parametrize(
    "changed",
    [
        {"decay": 0.09},
        {"kind": "AdamW"},
        {"kind": "Adam", "decoupled": True},
        {"ratio": 2.0},
        {"ratio": 0.5},
        {"loss": 0.001},
        {"parameters": list(PARAMETERS[:4])},
    ],
    ids=str,
)
def test_what_is_healthy(changed):
    """A usual decay, one that is not added, gradients that are larger, and a loss that has fallen."""
    assert found(held(**changed)) == []
