"""Routers and tables of positions from which the loss learns nothing."""

from __future__ import annotations

import pytest

from tests.smdebug_default_rules.made_steps import Steps

EXPERTS = [f"Net_moe.experts.{number}.up.weight" for number in range(4)]


class Mixed(Steps):
    """A healthy language model with experts behind a router; a test changes it."""

    def __init__(
        self,
        router: str = "Net_moe.gate.weight",
        positions: str = "Net_wpe.weight",
        model: str = "Net",
    ):
        super().__init__()
        self.router, self.positions = router, positions
        self.is_routed, self.used = True, 20
        self.without: tuple[str, ...] = ()
        self.is_first = True
        """Whether the positions come first in the model."""
        self.experts = [name.replace("Net", model, 1) for name in EXPERTS]
        self.lasting["modules"] = [
            ["Net", "Net", False],
            [self.positions.removesuffix(".weight"), "Embedding", False],
            [self.router.removesuffix(".weight"), "Linear", False],
        ]
        self.own([self.router, self.positions, *self.experts])
        self.facts["shapes"] = [[8, 20]]
        self.refresh()

    def own(self, names: list[str]) -> None:
        self.lasting["optimizers"] = [{"class": "SGD", "groups": [{"parameters": names, "others": 0}]}]

    def refresh(self) -> None:
        super().refresh()
        if not hasattr(self, "experts"):
            return
        shapes = {self.positions: (20, 8), self.router: (4, 8), **dict.fromkeys(self.experts, (16, 8))}
        if not self.is_first:
            shapes[self.positions] = shapes.pop(self.positions)
        self.kinds["parameters"] = {name: self.normal(*shape) for name, shape in shapes.items()}
        gradients = {
            f"gradient/{name}": self.normal(*shape)
            for name, shape in shapes.items()
            if self.is_routed or name != self.router
        }
        gradients[f"gradient/{self.positions}"][self.used :] = 0
        self.kinds["gradients"] = gradients
        self.kinds["updates"] = {f"update/{name}": self.normal(*shape) for name, shape in shapes.items()}
        for name in self.without:
            del self.kinds["gradients"][f"gradient/{name}"], self.kinds["updates"][f"update/{name}"]
        layer = self.router.removesuffix(".weight")
        self.kinds["outputs"] = {f"{layer}_output_0": self.normal(160, 4)}


def unchosen(*, is_routed: bool = True, used: int = 20) -> Steps:
    """Return a run whose router gets no gradient, or whose tokens have few positions or none."""
    steps = Mixed()
    steps.is_routed, steps.used = is_routed, used
    steps.without = () if used else (steps.positions,)
    steps.refresh()
    return steps.write(steps=51)


def found(steps: Mixed, count: int = 60) -> list[tuple[int, str, str]]:
    steps.refresh()
    return [
        (step, finding.tensor, finding.title)
        for step, finding in steps.write(steps=count).evaluate("UnreachedParameters")
    ]


def test_a_router_and_positions_that_learn_are_not_reported():
    assert found(Mixed()) == []


@pytest.mark.parametrize("name", ["Net_moe.gate", "Net_moe.router", "OfExperts_moe.gating"])
def test_a_router_without_a_gradient_is_reported_though_it_decays(name):
    steps = Mixed(router=f"{name}.weight", model=name.partition("_")[0])
    steps.is_routed = False
    first, *_ = found(steps)
    assert first == (50, steps.router, "The router gets no gradient")


def test_a_router_that_once_had_a_gradient_or_is_frozen_is_not_reported():
    steps = Mixed()
    steps.write()
    steps.is_routed = False
    assert found(steps) == []
    frozen = Mixed()
    frozen.is_routed = False
    frozen.own([frozen.positions, *EXPERTS])
    frozen.lasting["frozen"] = [frozen.router]
    assert found(frozen) == []


@pytest.mark.parametrize("name", ["gate_proj", "experts.0.gate", "delegate"])
def test_a_layer_that_is_no_router_of_experts_is_not_reported(name):
    steps = Mixed(router=f"Net_moe.{name}.weight")
    steps.is_routed = False
    assert found(steps) == []


def test_a_single_position_for_all_tokens_is_reported():
    steps = Mixed()
    steps.used = 1
    (step, tensor, title), *_ = found(steps)
    assert (step, tensor, title) == (50, steps.positions, "All tokens have the same position")


@pytest.mark.parametrize(("used", "name"), [(2, "Net_wpe.weight"), (1, "Net_words.weight")])
def test_two_positions_or_another_table_are_not_reported(used, name):
    steps = Mixed(positions=name)
    steps.used = used
    assert found(steps) == []


def test_rows_of_one_token_have_one_position():
    steps = Mixed()
    steps.used, steps.facts["shapes"] = 1, [[160, 1]]
    assert found(steps) == []


@pytest.mark.parametrize(
    "name", ["Net_wpe.weight", "Net_pos_embed", "Net_text.position_embeddings.weight", "Net_pos_emb"]
)
@pytest.mark.parametrize(("is_first", "step"), [(True, 1), (False, 50)])
def test_positions_that_are_never_used_are_reported(name, is_first, step):
    steps = Mixed(positions=name)
    steps.without, steps.is_first = (name,), is_first
    reported = found(steps)
    assert reported[0] == (step, name, "Positions are never used")
    assert {title for _, _, title in reported} == {"Positions are never used"}


@pytest.mark.parametrize(
    ("name", "others"),
    [("Net_words.weight", ()), ("Net_wpe.weight", EXPERTS[:1]), ("Net_composition.weight", ())],
    ids=["another table", "of a part that is not used", "a name that contains one"],
)
def test_other_weights_that_are_never_used_are_not_reported(name, others):
    steps = Mixed(positions=name)
    steps.without = (name, *others)
    assert not [title for _, _, title in found(steps) if title == "Positions are never used"]


def test_positions_that_are_used_later_or_frozen_are_not_reported():
    steps = Mixed()
    steps.write()
    steps.without = (steps.positions,)
    assert found(steps) == []
    frozen = Mixed()
    frozen.without = (frozen.positions,)
    frozen.lasting["frozen"] = [frozen.positions]
    assert found(frozen) == []
