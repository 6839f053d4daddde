"""Weights of 16 bits that keep their values because each update is rounded away, and such that move."""

import numpy as np
import pytest

from smdebug_default_rules.weights.rounded_away import TITLE
from tests.smdebug_default_rules.made_runs import PARAMETERS
from tests.smdebug_default_rules.made_steps import Steps

WEIGHTS = [name for name in PARAMETERS if name.endswith("weight")]


class Halves(Steps):
    """A run with weights of 16 bits, of which a share moves from each saved step to the next."""

    def __init__(self, moving=0.0, kind=np.float16, optimizer="AdamW", zeros=0.0, rate=2e-5, momentum=0.0):
        self.moving, self.kind, self.zeros = moving, kind, zeros
        self.kept = None
        super().__init__()
        self.rate = rate
        self.lasting["optimizers"][0]["class"] = optimizer
        if momentum:
            self.lasting["optimizers"][0]["groups"][0]["momentum"] = momentum

    def refresh(self):
        super().refresh()
        drawn = {
            name: values.astype(self.kind) if name in WEIGHTS else values
            for name, values in self.kinds["parameters"].items()
        }
        if self.kept is not None:
            for name in WEIGHTS:
                stays = self.random.random(drawn[name].shape) >= self.moving
                drawn[name] = np.where(stays, self.kept[name], drawn[name]).astype(self.kind)
        self.kept = self.kinds["parameters"] = drawn
        for name in WEIGHTS:
            gradient = self.kinds["gradients"][f"gradient/{name}"]
            gradient[self.random.random(gradient.shape) < self.zeros] = 0


def run(steps=6, apart=10, **changes):
    made = Halves(**changes)
    for _ in range(steps):
        made.write().skip(*[2.3] * (apart - 1))
    return made


def found(made):
    return [
        (step, finding.since, finding.tensor)
        for step, finding in made.evaluate("LostUpdates")
        if finding.title == TITLE
    ]


def test_weights_that_keep_their_values_for_fifty_steps_are_found():
    assert found(run(steps=5)) == []
    assert found(run()) == [(50, 0, WEIGHTS[0])]
    (_, finding), *_ = [at for at in run().evaluate("LostUpdates") if at[1].title == TITLE]
    assert finding.why[0] == "100% of the sampled values have not changed in 50 steps"
    assert "about 2e-05; at the size of" in finding.why[1]


@pytest.mark.parametrize(
    "changes",
    [
        {"moving": 0.1},  # as much as rounding at random moves from one saved step to the next
        {"kind": np.float32},
        {"optimizer": "AdamWithCopies"},  # which may have the weights in float32
        {"optimizer": "SGD"},  # whose updates are a hundredth as large, and may add up later
        {"zeros": 0.9},  # most rows of a table are in no batch
        {"rate": 1e-7},  # copies in float32 would not have shown yet
    ],
)
def test_weights_that_move_or_may_still_move_are_not_found(changes):
    assert found(run(**changes)) == []


def test_an_optimizer_of_another_package_may_keep_what_was_rounded_away():
    made = Halves()
    made.lasting["optimizers"][0]["package"] = "optimi"
    for _ in range(6):
        made.write().skip(*[2.3] * 9)
    assert found(made) == []


def test_a_warm_up_counts_as_far_as_its_rates_go():
    made = Halves(rate=1e-9)
    for _ in range(6):
        made.write().skip(*[2.3] * 9)
    assert found(made) == []
    made.rate = 1e-4
    for _ in range(3):
        made.moving = 0.6
        made.write().skip(*[2.3] * 9)
    assert found(made) == []


def test_another_optimizer_begins_anew():
    made = Halves()
    made.lasting["optimizers"][0]["number"] = 0
    for number in range(8):
        made.lasting["optimizers"][0]["number"] = number // 4
        made.write().skip(*[2.3] * 9)
    assert found(made) == []


@pytest.mark.parametrize(("momentum", "count"), [(0.0, 0), (0.1, 0), (0.95, 1), (0.999, 1), (1.0, 1)])
def test_momentum_makes_a_step_of_plain_descent_larger(momentum, count):
    assert len(found(run(optimizer="SGD", rate=2e-4, momentum=momentum))) == count


def test_momentum_of_other_optimizers_does_not():
    assert found(run(optimizer="RMSprop", rate=1e-7, momentum=0.99)) == []
