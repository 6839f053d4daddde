"""First layers that are frozen as they were made: for long enough, and not on purpose."""

import numpy as np
import pytest

from smdebug_default_rules.weights import untrained_layers
from tests.smdebug_default_rules.made_runs import PARAMETERS
from tests.smdebug_default_rules.made_steps import Steps

FIRST = PARAMETERS[:4]


class Frozen(Steps):
    """A run whose first two layers are frozen, and as the framework makes them; a test changes it."""

    def __init__(self, frozen=FIRST, bias=None, names=str):
        self.frozen, self.bias, self.names = frozen, bias, names
        super().__init__()
        rest = [name for name in PARAMETERS if name not in frozen]
        self.lasting["frozen"] = [names(name) for name in frozen]
        self.lasting["optimizers"] = [{"class": "SGD", "groups": [{"parameters": rest, "others": 0}]}]

    def refresh(self):
        super().refresh()
        random = np.random.default_rng(1)
        parameters = self.kinds["parameters"]
        for name in self.frozen:
            values = parameters[name]
            if values.ndim > 1:
                bound = values.shape[1] ** -0.5
            values[:] = random.uniform(-bound, bound, values.shape)
            if values.ndim == 1 and self.bias is not None:
                values[:] = self.bias
            self.kinds["gradients"].pop(f"gradient/{name}", None)
            self.kinds["updates"].pop(f"update/{name}", None)
        self.kinds["parameters"] = {
            self.names(name) if name in self.frozen else name: values for name, values in parameters.items()
        }


def frozen(steps=10, apart=50, **changes):
    """A run of so many saved steps, the last so far from the first."""
    run = Frozen(**changes).write(steps=steps - 1)
    run.step = apart
    return run.write()


def found(run):
    return [step for step, at in run.evaluate("UnreachedParameters") if at.title == untrained_layers.TITLE]


@pytest.mark.parametrize(("steps", "apart", "count"), [(10, 50, 1), (9, 50, 0), (10, 49, 0)])
def test_layers_that_are_frozen_as_they_were_made_are_found(steps, apart, count):
    assert len(found(frozen(steps, apart))) == count


@pytest.mark.parametrize(("bias", "is_found"), [(0.0, True), (0.01, True), (np.linspace(-2, 2, 16), False)])
def test_biases_tell_whether_layers_were_trained(bias, is_found):
    assert bool(found(frozen(bias=bias))) == is_found


@pytest.mark.parametrize(
    "layers",
    [PARAMETERS[:2], PARAMETERS[2:], (*PARAMETERS[:2], *PARAMETERS[4:])],
    ids=["a single one", "the last ones", "around a trained one"],
)
def test_other_frozen_layers_are_left_alone(layers):
    assert found(frozen(frozen=layers)) == []


def test_layers_whose_name_says_that_they_are_random_are_left_alone():
    assert found(frozen(names=lambda name: name.replace("Net_", "Net_random_features."))) == []


def test_layers_that_are_trained_in_between_are_not_frozen():
    run = Frozen().write(steps=9)
    run.step = 40
    run.lasting["frozen"] = []
    run.write()
    run.lasting["frozen"] = list(FIRST)
    run.step = 60
    assert found(run.write()) == []
