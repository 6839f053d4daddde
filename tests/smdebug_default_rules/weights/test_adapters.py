"""Low-rank adapters: without an optimizer, at zero, unused, and beside a base that is trained, too."""

from __future__ import annotations

import numpy as np
import pytest

from tests.smdebug_default_rules.made_steps import Steps

LAYERS = ("q", "v")
NAMES = {
    "base": "Net_{}.base.weight",
    "first": "Net_{}.lora_A",
    "second": "Net_{}.lora_B",
}
SHAPES = {"base": (24, 16), "first": (4, 16), "second": (24, 4)}


class Adapted(Steps):
    """A healthy fine-tuning of two adapters, whose second matrices start at zero; a test changes it."""

    def __init__(self) -> None:
        super().__init__()
        self.parts = NAMES
        self.has_started = False
        self.still: tuple[str, ...] = ()
        self.without_gradient: tuple[str, ...] = ()
        self.zeros: tuple[str, ...] = ()
        self.own([self.name(part, layer) for layer in LAYERS for part in ("first", "second")])
        self.lasting["frozen"] = [self.name("base", layer) for layer in LAYERS]
        self.lasting["modules"] = [["Net", "Net", False], *([layer, "LoraLinear", False] for layer in LAYERS)]
        self.refresh()

    def name(self, part: str, layer: str) -> str:
        return self.parts[part].format(layer)

    def own(self, names: list[str]) -> None:
        self.lasting["optimizers"] = [{"class": "SGD", "groups": [{"parameters": names, "others": 0}]}]

    def refresh(self) -> None:
        before = self.kinds.get("parameters", {})
        super().refresh()
        if not hasattr(self, "zeros"):
            return
        names = {self.name(part, layer): SHAPES[part] for layer in LAYERS for part in SHAPES}
        owned = self.lasting["optimizers"][0]["groups"][0]["parameters"]
        parameters = {name: self.normal(*shape) for name, shape in names.items()}
        parameters |= {name: before[name] for name in self.lasting["frozen"] if name in before}
        for name in parameters:
            if name in self.zeros or (not self.has_started and name.endswith(self.parts["second"][-6:])):
                parameters[name][:] = 0
        self.has_started = True
        trained = [name for name in names if name not in self.lasting["frozen"]]
        self.kinds["parameters"] = parameters
        self.kinds["gradients"] = {
            f"gradient/{name}": self.normal(*names[name])
            for name in trained
            if name not in self.without_gradient
        }
        self.kinds["updates"] = {
            f"update/{name}": self.normal(*names[name]) * (name not in self.still)
            for name in trained
            if name in owned
        }
        self.kinds["outputs"] = {f"{layer}_output_0": self.normal(32, 24) for layer in LAYERS}


@pytest.fixture
def steps() -> Adapted:
    return Adapted()


def found(steps: Adapted, count: int = 4) -> list[tuple[int, str, str]]:
    steps.has_started = False
    steps.refresh()
    steps.write(steps=count)
    return [
        (step, finding.tensor, finding.message.partition(": ")[0])
        for step, finding in steps.evaluate("Adapters")
    ]


def test_adapters_that_learn_are_not_reported(steps):
    assert found(steps, 6) == []


def test_adapters_that_no_optimizer_owns_are_reported_at_the_third_step(steps):
    steps.own(["Net_q.base.weight"])
    assert found(steps) == [
        (step, "Net_q.lora_A", "2 of 2 adapters belong to no optimizer") for step in (2, 3)
    ]


def test_the_reason_names_the_step_since_when_all_of_them_are_so(steps):
    steps.write(steps=4)
    steps.own(["Net_q.base.weight"])
    steps.write(steps=6)
    reasons = {finding.why for _, finding in steps.evaluate("Adapters")}
    assert reasons == {("2 of 2 adapters, at every saved step from step 4 on",)}


def test_one_adapter_without_an_optimizer_is_counted_alone(steps):
    steps.own(["Net_q.lora_A", "Net_q.lora_B"])
    assert found(steps, 3) == [(2, "Net_v.lora_A", "1 of 2 adapters belong to no optimizer")]


def test_adapters_of_which_both_matrices_are_zero_are_reported(steps):
    both = ("Net_q.lora_A", "Net_q.lora_B")
    steps.zeros = steps.still = steps.without_gradient = both
    assert found(steps, 3) == [(2, "Net_q.lora_A", "1 of 2 adapters cannot learn")]


@pytest.mark.parametrize("is_owned", [True, False])
def test_a_second_matrix_that_stays_zero_is_reported(steps, is_owned):
    steps.zeros = steps.still = ("Net_q.lora_B", "Net_v.lora_B")
    if not is_owned:
        steps.own(["Net_q.lora_A", "Net_v.lora_A"])
    assert found(steps, 3) == [(2, "Net_q.lora_B", "2 of 2 adapters stay zero")]


def test_a_matrix_whose_optimizer_did_not_step_may_stay_zero(steps):
    steps.zeros = ("Net_q.lora_B",)
    steps.has_started = False
    for _ in range(4):
        steps.refresh()
        del steps.kinds["updates"]["update/Net_q.lora_B"]
        steps.write()
    assert steps.evaluate("Adapters") == []


@pytest.mark.parametrize("why", ["rate", "skipped"])
def test_steps_that_change_nothing_are_not_judged(steps, why):
    steps.zeros = steps.still = ("Net_q.lora_B", "Net_v.lora_B")
    if why == "rate":
        steps.rate = 0.0
    else:
        steps.facts["update_skipped"] = True
    assert found(steps) == []


def test_an_adapter_that_the_forward_does_not_use_is_reported(steps):
    steps.without_gradient = ("Net_v.lora_A", "Net_v.lora_B")
    assert found(steps, 3) == [(2, "Net_v.lora_B", "1 of 2 adapters get no gradient")]


def test_an_adapter_of_a_layer_that_is_not_called_may_wait(steps):
    steps.without_gradient = ("Net_v.lora_A", "Net_v.lora_B")
    steps.has_started = False
    for _ in range(4):
        steps.refresh()
        del steps.kinds["outputs"]["v_output_0"]
        steps.write()
    assert steps.evaluate("Adapters") == []


def test_weights_that_are_trained_below_their_adapters_are_reported(steps):
    steps.lasting["frozen"] = []
    steps.own([steps.name(part, layer) for layer in LAYERS for part in NAMES])
    assert found(steps, 3) == [
        (2, "Net_q.base.weight", "2 of 2 adapters lie beside weights that are trained, too")
    ]


def test_a_base_that_is_not_frozen_but_not_owned_stays_as_it_is(steps):
    steps.lasting["frozen"] = []
    assert found(steps) == []


def test_names_of_peft_and_of_down_and_up_are_adapters(steps):
    for first, second in (("lora_A.default.weight", "lora_B.default.weight"), ("lora_down.w", "lora_up.w")):
        steps = Adapted()
        steps.parts = {**NAMES, "first": f"Net_{{}}.{first}", "second": f"Net_{{}}.{second}"}
        steps.own(["Net_q.base.weight"])
        assert [(step, tensor) for step, tensor, _ in found(steps, 3)] == [(2, f"Net_q.{first}")]


def test_a_model_without_adapters_is_not_checked():
    steps = Steps().write(steps=4)
    assert steps.evaluate("Adapters") == []


def test_a_name_that_only_ends_in_lora_is_no_adapter(steps):
    steps.parts = {**NAMES, "first": "Net_{}.flora_a.weight", "second": "Net_{}.flora_b.weight"}
    steps.own(["Net_q.base.weight"])
    assert found(steps) == []


@pytest.fixture
def merging(steps):
    """Ten steps of a fine-tuning; at the sixth, a frozen weight changes, and the test changes its adapter."""

    def written(factor=1.0, *, change=0.1):
        steps.write(steps=5)
        base, second = (steps.name(part, "v") for part in ("base", "second"))
        steps.kinds["parameters"][base] = steps.kinds["parameters"][base] + np.float32(change)
        steps.kinds["parameters"][second] *= np.float32(factor)
        return steps.write(steps=5)

    return written


def test_an_adapter_that_is_merged_and_still_added_is_found_at_that_step(merging):
    found = merging().evaluate("Adapters")
    assert [(step, finding.since, finding.title) for step, finding in found] == [
        (step, 5, "Adapters are merged and still added") for step in range(5, 10)
    ]
    assert found[0][1].tensor == "Net_v"
    assert found[0][1].advice[0].startswith("Merge adapters once")


@pytest.mark.parametrize(
    "changes",
    [
        {"factor": 0.0},  # merged on purpose, and begun anew
        {"change": 1e-4},  # what merging and taking out again leaves
        {"change": 0.0},
    ],
)
def test_an_adapter_may_be_merged_and_begin_anew(merging, changes):
    assert merging(**changes).evaluate("Adapters") == []


def test_a_frozen_second_matrix_stays_zero(steps):
    seconds = [steps.name("second", layer) for layer in LAYERS]
    steps.lasting["frozen"] = [*steps.lasting["frozen"], *seconds]
    steps.zeros = tuple(seconds)
    steps.own([steps.name("first", layer) for layer in LAYERS])
    steps.without_gradient = tuple(steps.name("first", layer) for layer in LAYERS)
    titles = {finding.title for _, finding in steps.write(steps=4).evaluate("Adapters")}
    assert titles == {"Adapters stay zero"}
