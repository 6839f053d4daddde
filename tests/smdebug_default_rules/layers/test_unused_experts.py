"""Experts that a router leaves out, told from layers that take turns."""

import numpy as np
import pytest

from smdebug_default_rules.layers.unused_experts import followed, has_router, left_out
from tests.smdebug_default_rules.made_steps import Steps
from tests.smdebug_default_rules.words.more_runs import routed


def story(*steps, apart=10):
    """Follow steps, of which each names the experts that it uses."""
    kept = None
    for number, used in enumerate(steps):
        kept = followed(kept, used, number * apart)
    return kept, (len(steps) - 1) * apart


def found(*steps, name="Net_experts.#", count=4, apart=10, routed=False, rows=None):
    kept, step = story(*steps, apart=apart)
    unused = left_out(kept, name, range(count), step, has_router=routed, rows=rows)
    return None if unused is None else (unused.numbers, unused.since, unused.steps)


ALL, ONE = [0, 1, 2, 3], [2]


def test_experts_without_a_gradient_for_twelve_saved_steps_are_left_out():
    assert found(ALL, *[ONE] * 11) is None
    assert found(ALL, *[ONE] * 12) == ([0, 1, 3], 0, 12)
    assert found(ALL, ALL, *[ONE] * 13) == ([0, 1, 3], 10, 13)


def test_the_steps_have_to_be_sixty_apart():
    assert found(ALL, *[ONE] * 12, apart=4) is None
    assert found(ALL, *[ONE] * 12, apart=5) == ([0, 1, 3], 0, 12)


@pytest.mark.parametrize(
    ("count", "used", "is_found"),
    [(4, 1, True), (4, 2, False), (3, 1, True), (8, 2, True), (8, 3, False), (8, 4, False)],
)
def test_a_router_has_collapsed_if_it_uses_a_quarter_of_the_experts_or_a_single_one(count, used, is_found):
    steps = [list(range(count)), *[list(range(used))] * 12]
    assert (found(*steps, count=count) is not None) is is_found


def test_experts_that_are_never_used_are_found_by_their_name():
    assert found(*[ONE] * 13) == ([0, 1, 3], 0, 13)
    assert found(*[ONE] * 13, name="Net_heads.#") is None


def test_like_layers_are_experts_if_there_is_a_router_and_one_step_has_used_half_of_them():
    used = [0, 1], *[ONE] * 12
    assert found(*used, name="Net_blocks.#", routed=True) == ([0, 1, 3], 0, 12)
    assert found(*used, name="Net_blocks.#") is None  # layers that are trained in phases
    assert found([0], *[ONE] * 12, name="Net_blocks.#", routed=True) is None  # tasks that take turns


def touched(steps, *at):
    """The favourite alone at each step, and all experts at some."""
    return [ALL if step in at else ONE for step in range(steps)]


def test_experts_that_are_touched_now_and_then_are_left_out():
    assert found(*touched(41, 0, 8, 16, 24, 32)) == ([0, 1, 3], 0, 40)
    kept, step = story(*touched(41, 0, 8, 16, 24, 32))
    assert left_out(kept, "experts", range(4), step).touches == 4
    assert found(*touched(40, 0, 8, 16, 24, 32)) is None
    assert found(*touched(41, 0, 8, 16, 24, 30, 32)) is None


def test_a_touch_does_not_hide_for_long_that_experts_are_left_out():
    steps = touched(80, 20, 45, 70)
    kept = None
    seen = [
        left_out(kept, "experts", range(4), 10 * number) is not None
        for number, used in enumerate(steps)
        if (kept := followed(kept, used, 10 * number))
    ]
    assert seen.index(True) == 11
    assert all(seen[40:])


def test_few_tokens_for_many_experts_give_each_a_gradient_now_and_then():
    turns = [[number % 16, (number * 7) % 16] for number in range(80)]
    assert found(*turns, count=16) is None
    rare = [[0] if number % 9 else [0, number % 16] for number in range(80)]
    assert found(*rare, count=16)
    irregular = [[number % 2 * 15] if number % 9 else [number % 16] for number in range(80)]
    assert found(*irregular, count=16, rows=1) is None


@pytest.mark.parametrize(("rows", "is_found"), [(None, True), (64, True), (1, True), (0.9, False)])
def test_fewer_rows_than_three_for_each_expert_are_waited_for(rows, is_found):
    assert (found(ALL, *[ONE] * 12, rows=rows) is not None) is is_found


@pytest.mark.parametrize(
    ("idle", "why", "advice"),
    [
        ("no gradient", "A part of the loss has no gradient", "Look at the balancing loss: compute it"),
        ("weight 0", "A part of the loss has a weight of 0", "Give the balancing loss a weight above 0"),
        ("", None, ""),
    ],
)
def test_a_part_of_the_loss_that_teaches_nothing_is_named_with_the_collapse(idle, why, advice):
    run = routed(14)
    for facts in run._source._facts.values():
        facts["loss"] = {**facts["loss"], "idle": idle}
    *_, (_, finding) = run.evaluate("UnusedExperts")
    assert finding.title == "The router uses 1 of 4 experts"
    assert finding.why[1:] == ((why,) if why else ())
    assert [each.startswith(advice) for each in finding.advice] == ([True, False] if why else [])


@pytest.mark.parametrize(("name", "looks"), [("Net_blocks", False), ("Net_experts", True)])
def test_like_layers_without_a_router_are_not_checked(name, looks):
    steps = Steps()
    names = [f"{name}.{number}.weight" for number in range(4)]
    for kind, prefix in (("parameters", ""), ("gradients", "gradient/"), ("updates", "update/")):
        steps.kinds[kind] = {f"{prefix}{each}": np.full((4, 4), 0.1, np.float32) for each in names}
    steps.lasting["optimizers"][0]["groups"][0]["parameters"] = names
    steps.write()
    assert [why is None for *_, why in steps.evaluations("UnusedExperts")] == [looks]


def test_a_router_is_known_by_its_name():
    assert has_router(["Net", "Net_router"])
    assert has_router(["blocks.0.gate"])
    assert has_router(["moe.Gating"])
    assert not has_router(["Net_delegates", "Net_gated", "aggregate", "investigate.0"])


def test_experts_that_take_turns_are_healthy():
    assert found(*[[number % 4] for number in range(40)]) is None
    assert found(*[[number // 8 % 4] for number in range(80)]) is None


def test_nothing_is_found_where_no_expert_is_used():
    assert found(ALL, *[[]] * 20) is None


def unnamed(units=4, inputs=8, given="Net_other_output_0", place="Net_choice", gradient=0.1, scalar=False):
    """Four like layers beside another one, of which each step trains one and that other."""
    steps = Steps()
    names = [f"Net_parts.{number}.weight" for number in range(4)]
    random = np.random.default_rng(0)
    weights = {each: random.normal(size=(8, 8)).astype(np.float32) for each in names}
    chooser = {f"{place}.weight": random.normal(size=(units, inputs)).astype(np.float32)}
    steps.lasting["optimizers"][0]["groups"][0]["parameters"] += [*names, *chooser]
    rows = random.normal(size=(32, units)).astype(np.float32)
    for _ in range(14):
        last = steps.kinds["parameters"].pop("Net_4.weight")
        steps.kinds["parameters"] |= {**weights, **chooser, "Net_4.weight": last}
        for name, values in {**weights, **chooser}.items():
            share = gradient if name in chooser else 0.1 * (name == names[2])
            steps.kinds["gradients"][f"gradient/{name}"] = values * np.float32(share)
        steps.kinds["outputs"][f"{place}_output_0"] = rows
        steps.kinds["outputs"][given] = rows
        if scalar:
            steps.kinds["outputs"]["Net_output_0"] = np.ones(1, np.float32)
        steps.write()
        steps.skip(*[2.3] * 9)
    return bool(steps.evaluate("UnusedExperts"))


def test_a_router_is_known_by_its_shape():
    assert unnamed()


@pytest.mark.parametrize(
    "change",
    [
        {"units": 5},
        {"inputs": 9},
        {"gradient": 0.0},
        {"given": "Net_output_1"},  # classes of another task
        {"scalar": True},  # the model returns its loss
        {"place": "Other_choice"},
    ],
)
def test_another_layer_beside_like_ones_is_no_router(change):
    assert not unnamed(**change)
