"""Heads behind adapters: new and frozen by mistake, trained before and frozen on purpose, or trained now."""

from __future__ import annotations

import numpy as np
import pytest

from smdebug_default_rules.weights import new_heads
from tests.smdebug_default_rules.weights.test_adapters import Adapted

SHAPE = (4, 24)
BOUND = SHAPE[1] ** -0.5


def evenly(random):
    return random.uniform(-BOUND, BOUND, SHAPE)


def normally(random, spread=0.02, shape=SHAPE):
    values = random.normal(0, 1, shape)
    return spread * (values - values.mean()) / values.std()


class Headed(Adapted):
    """A fine-tuning of adapters with a head behind them; a test changes it."""

    def __init__(self, weight=evenly, bias=0.0, frozen=True, name="Net_head", base=None, first=False):
        self.base, self.is_first = base, first
        self.drawn = {f"{name}.weight": weight(np.random.default_rng(3))}
        if bias is not None:
            self.drawn[f"{name}.bias"] = np.broadcast_to(bias, SHAPE[:1])
        super().__init__()
        if frozen:
            self.lasting["frozen"] += list(self.drawn)
        else:
            self.lasting["optimizers"][0]["groups"][0]["parameters"] += list(self.drawn)
        self.lasting["modules"].append([name.removeprefix("Net_"), "Linear", False])
        self.refresh()

    def give_all_to_the_optimizer(self):
        """As `AdamW(model.parameters())` does, frozen ones among them."""
        self.lasting["optimizers"][0]["groups"][0]["parameters"] += [
            name for name in self.kinds["parameters"] if name in self.lasting["frozen"]
        ]
        return self

    def refresh(self):
        super().refresh()
        parameters = self.kinds["parameters"]
        for name in parameters:
            if self.base is not None and "base" in name:
                parameters[name][:] = self.base(np.random.default_rng(4), parameters[name].shape)
        drawn = {name: np.array(values, np.float32) for name, values in self.drawn.items()}
        self.kinds["parameters"] = {**drawn, **parameters} if self.is_first else {**parameters, **drawn}


def run(steps=10, apart=50, **changes):
    made = Headed(**changes).write(steps=steps - 1)
    made.step = apart
    return made.write()


def found(made):
    return [(step, at.since) for step, at in made.evaluate("Adapters") if at.title == new_heads.TITLE]


@pytest.mark.parametrize(("steps", "apart", "count"), [(10, 50, 1), (9, 50, 0), (10, 49, 0)])
def test_a_head_that_is_frozen_as_it_was_drawn_is_found_after_a_while(steps, apart, count):
    assert len(found(run(steps, apart))) == count


@pytest.mark.parametrize(
    "changes",
    [
        {"bias": np.linspace(-BOUND, BOUND, SHAPE[0])},
        {"weight": normally},
        {"weight": lambda random: normally(random, shape=(42, 24)), "bias": None},
        {"bias": None},
        {"first": True},  # large tensors are measured after small ones
    ],
)
def test_heads_are_drawn_in_several_ways(changes):
    assert found(run(**changes)) == [(50, 0)]


def test_an_optimizer_may_have_the_frozen_parameters_too():
    made = Headed().give_all_to_the_optimizer().write(steps=9)
    made.step = 50
    assert found(made.write()) == [(50, 0)]


def test_it_says_what_to_name():
    (_, finding), *_ = [at for at in run().evaluate("Adapters") if at[1].title == new_heads.TITLE]
    assert (finding.cause, finding.tensor) == ("adapter", "Net_head.weight")
    assert "modules_to_save" in finding.advice[0]
    assert finding.why[1] == "2 of the 2 other frozen weights look trained"


@pytest.mark.parametrize(
    "changes",
    [
        {"frozen": False},
        {"bias": 0.01, "weight": normally},  # which was learnt
        {"weight": lambda random: 1.5 * evenly(random)},
        {"weight": lambda random: normally(random, 0.03)},
        {"weight": normally, "bias": None},  # so few values may have this spread by chance
        {"weight": lambda random: normally(random, 0.022, (42, 24)), "bias": None},
        {"weight": lambda random: normally(random) + 0.01},
        {"name": "Net_random_head"},
        {"base": lambda random, shape: random.uniform(-(shape[1] ** -0.5), shape[1] ** -0.5, shape)},
    ],
)
def test_heads_that_learn_or_were_trained_or_are_as_the_rest_are_not_found(changes):
    assert found(run(**changes)) == []
