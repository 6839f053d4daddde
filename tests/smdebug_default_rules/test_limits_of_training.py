"""The limits of rules that follow parameters and losses: a run at each, and one beyond it.

It is long because each limit of each rule has its case in a table.
"""

from __future__ import annotations

import numpy as np
import pytest

from smdebug import modes
from tests.smdebug_default_rules.made_runs import MODULES, PARAMETERS, TERM
from tests.smdebug_default_rules.made_steps import Steps

WEIGHTS = tuple(name for name in PARAMETERS if name.endswith("weight"))
BIASES = tuple(name for name in PARAMETERS if name.endswith("bias"))


def fires(steps, rule):
    return sorted({step for step, _ in steps.evaluate(rule)})


def found(steps, rule):
    return [(step, finding.tensor) for step, finding in steps.evaluate(rule)]


def with_losses(losses, *, terms=(TERM,), factor=1.0, optimizers=1, modules=MODULES):
    steps = Steps()
    steps.facts["loss"] = {"factor": factor, "terms": list(terms)}
    steps.lasting["optimizers"] *= optimizers
    steps.lasting["modules"] = modules
    for loss in losses:
        steps.loss = loss
        steps.write()
    return steps


def noisy(level, count=151, noise=0.01, seed=0):
    return level + np.random.default_rng(seed).normal(0, noise, count)


OF_TWO = {**TERM, "classes": 2}
WEIGHTED = {**TERM, "weighted": True}
MSE = {**TERM, "criterion": "mse", "classes": 0}
SIGMOIDS = [*MODULES[:2], ["1", "Sigmoid", False], *MODULES[3:]]
LAST_SIGMOID = [*MODULES[:5], ["4", "Sigmoid", False]]


@pytest.mark.parametrize(
    ("steps", "fired"),
    [
        (lambda: with_losses(noisy(2.3)), [149, 150]),
        (lambda: with_losses(noisy(2.3, 149)), []),
        (lambda: with_losses(noisy(2.18)), []),  # below 0.95 of ln(10)
        (lambda: with_losses(noisy(2.2)), [149, 150]),
        (lambda: with_losses(np.linspace(2.5, 2.3, 151)), []),  # it falls
        (lambda: with_losses([*noisy(2.5, 40), *noisy(2.44, 111)]), []),  # it has fallen by 2 %
        (lambda: with_losses(noisy(2.3), terms=[]), []),
        (lambda: with_losses(noisy(2.3), terms=[TERM, TERM]), []),
        (lambda: with_losses(noisy(2.3), optimizers=2), []),
        (lambda: with_losses(noisy(2.3), optimizers=0), []),
        (lambda: with_losses(noisy(23.0, noise=0.1), factor=10.0), [149, 150]),
        (lambda: with_losses(noisy(2.3), factor=-10.0), []),
        (lambda: with_losses(noisy(2.3), factor=None), [149, 150]),
        (lambda: with_losses(noisy(2.31) - 0.00008 * np.arange(151)), []),  # at 4 standard errors
        (lambda: with_losses(noisy(0.693, 301, 0.003), terms=[OF_TWO]), [299, 300]),
        (lambda: with_losses(noisy(0.693, 299, 0.003), terms=[OF_TWO]), []),
        (lambda: with_losses(noisy(2.3), modules=SIGMOIDS), []),
        (lambda: with_losses(noisy(2.3, 301), modules=SIGMOIDS), [299, 300]),
        (lambda: with_losses(noisy(2.3), modules=LAST_SIGMOID), [149, 150]),
        (lambda: with_losses(noisy(2.3), terms=[{**TERM, "rows": 6}]), []),  # of 1,000 rows
        (lambda: with_losses(noisy(2.3, 168), terms=[{**TERM, "rows": 6}]), [166, 167]),
        (lambda: with_losses(noisy(2.3), terms=[{**TERM, "rows": None}]), [149, 150]),
        (lambda: with_losses(noisy(1.0, noise=0.001), terms=[MSE]), [149, 150]),
        (lambda: with_losses(noisy(1.0, noise=0.3), terms=[MSE]), []),  # nobody knows
        (
            lambda: with_losses(noisy(1.0, noise=0.12, seed=2), terms=[MSE]),
            [],
        ),  # nor here: the first 20 vary by 3 %
        (lambda: with_losses(noisy(2.22), terms=[WEIGHTED]), []),  # labels or weights may do that
        (lambda: with_losses(noisy(2.295), terms=[WEIGHTED]), [149, 150]),
        (lambda: with_losses([*noisy(1.0, 50, 0.001), *noisy(0.97, 101, 0.001)], terms=[MSE]), []),
        (lambda: with_losses([*noisy(1.0, 50, 0.001), *noisy(1.03, 101, 0.001)], terms=[MSE]), []),
        (lambda: with_losses([*noisy(2.3, 40), *noisy(1.0, 60), *noisy(2.3, 149)]), []),
        (lambda: with_losses([*noisy(2.3, 40), *noisy(1.0, 60), *noisy(2.3, 152)]), [249, 250, 251]),
        (lambda: with_losses([*noisy(2.3, 100), *[np.nan] * 50, *noisy(2.3, 51)]), [199, 200]),
    ],
)
def test_a_loss_is_stuck_if_enough_of_it_stays_where_it_began(steps, fired):
    assert fires(steps(), "StuckLoss") == fired


def test_a_loss_that_rose_again_is_stuck_since_then():
    steps = with_losses([*noisy(2.3, 40), *noisy(1.0, 60), *noisy(2.3, 160)])
    ((_, first), *_) = steps.evaluate("StuckLoss")
    assert first.since == 100
    assert first.message.endswith("and it had fallen to 0.9965 before step 100")


def test_a_loss_that_rose_in_a_block_that_is_still_open_is_stuck_since_its_begin():
    steps = Steps()
    steps.skip(*[2.3] * 40, *[1.0] * (33 * 256 - 40), *[2.3] * 199)
    ((_, finding),) = steps.write().evaluate("StuckLoss")
    assert finding.since == 33 * 256


def test_a_loss_over_one_class_is_compared_with_its_start():
    ((_, finding),) = with_losses([2.3] * 150, terms=[{**TERM, "classes": 1}]).evaluate("StuckLoss")
    assert finding.threshold == 2.3
    assert finding.message.endswith("and was 2.3 at the start: it has not changed")


def test_a_long_run_is_kept_in_few_blocks_and_stuck_since_its_begin():
    steps = with_losses([2.3] * 3)
    steps.skip(*noisy(2.3, 1500))
    ((step, finding),) = steps.write().evaluate("StuckLoss")
    assert (step, finding.since) == (1503, 0)
    slow = with_losses([])
    slow.skip(*(2.3 - 0.00003 * np.arange(1500) + np.random.default_rng(0).normal(0, 0.01, 1500)))
    assert fires(slow.write(), "StuckLoss") == []


def validated(training, validation, each=5):
    steps = Steps()
    for level, value in zip(training, validation, strict=True):
        for _ in range(each):
            steps.loss = level
            steps.write()
        steps.loss = value
        steps.write(modes.EVAL)
    steps.loss = training[-1]
    steps.write()
    return steps


FALLING = [2.0, 1.0, 0.5, 0.4, 0.3, 0.2]


@pytest.mark.parametrize(
    ("steps", "causes"),
    [
        (lambda: validated(FALLING, [1.9, 1.2, 1.0, 1.2, 1.3, 1.4]), {"overfitting"}),
        (lambda: validated(FALLING, [1.9, 1.2, 1.0, 1.14, 1.3, 1.4]), set()),  # one of three is near
        (lambda: validated(FALLING, [1.9, 1.2, 1.0, 1.151, 1.3, 1.4]), {"overfitting"}),
        (lambda: validated(FALLING[:5], [1.9, 1.2, 1.0, 1.2, 1.3]), set()),  # two are no trend
        (lambda: validated(FALLING, [1.9, 1.2, 1.0, 1.2, 0.99, 1.4]), set()),
        (lambda: validated([2.0, 1.0, 0.5, 0.5, 0.5, 0.5], [1.9, 1.2, 1.0, 1.2, 1.3, 1.4]), set()),
        (lambda: validated([2.0, 1.0, 0.5, 0.5, 0.5, 0.49], [1.9, 1.2, 1.0, 1.2, 1.3, 1.4]), {"overfitting"}),
        (lambda: validated([2.0, 1.9, 1.88, 1.86, 1.85, 1.76], [1.9, 1.2, 1.0, 1.2, 1.3, 2.4]), set()),
        (
            lambda: validated([2.0, 1.9, 1.88, 1.86, 1.85, 1.75], [1.9, 1.2, 1.0, 1.2, 1.3, 2.4]),
            {"overfitting"},
        ),
        (lambda: validated([2.0, 1.2, 1.1, 1.08, 1.07, 1.06], [1.9, 1.2, 1.0, 1.2, 1.3, 1.37]), set()),
        (
            lambda: validated([2.0, 1.2, 1.1, 1.08, 1.07, 1.06], [1.9, 1.2, 1.0, 1.2, 1.3, 1.38]),
            {"overfitting"},
        ),
        (lambda: validated(FALLING, [2.0, 2.3, 2.4, 2.5, 2.6, 2.7]), {"memorising"}),
        (lambda: validated(FALLING, [1.91, 2.3, 2.4, 2.5, 2.6, 2.7]), {"memorising"}),
        (lambda: validated(FALLING, [1.89, 2.3, 2.4, 2.5, 2.6, 2.7]), {"overfitting"}),
        (lambda: validated(FALLING, [2.0, 1.0, 0.02, 0.06, 0.07, 0.26]), set()),  # at its floor
        (lambda: validated(FALLING, [2.0, 1.0, 0.02, 0.09, 0.1, 0.27]), {"overfitting"}),
        (lambda: validated(FALLING, [1.9, 1.2, 1.0, np.nan, 1.2, 1.3]), set()),
    ],
)
def test_validation_gets_worse_while_training_gets_better(steps, causes):
    assert {finding.cause for _, finding in steps().evaluate("Generalisation")} == causes


def test_three_validations_are_too_few_and_none_is_another_reason():
    few = validated(FALLING[:3], [1.9, 1.2, 1.0]).evaluations("Generalisation")
    assert few[-1][2] == "there are fewer than 4 validations so far"
    assert few[0][2] == "no validation loss was saved"
    enough = validated(FALLING[:4], [1.9, 1.2, 1.0, 0.9]).evaluations("Generalisation")
    assert enough[-1][2] is None


def test_validations_of_several_steps_are_one_and_belong_to_their_first():
    steps = Steps()
    for level, value in zip(FALLING, [1.9, 1.2, 1.0, 1.2, 1.3, 1.4], strict=True):
        steps.skip(*[level] * 5)
        steps.skip(value - 0.3, value, value + 0.3, mode=modes.EVAL)
        steps.write()
    ((_, finding), *_) = steps.evaluate("Generalisation")
    assert finding.since == 3 * 9 + 5
    assert finding.value == pytest.approx(1.4)


def test_a_model_memorises_since_the_first_step_that_was_seen():
    first = validated(FALLING, [2.0, 2.3, 2.4, 2.5, 2.6, 2.7])
    first.seen = first.seen[1:]
    assert {finding.since for _, finding in first.evaluate("Generalisation")} == {1}


def parameters(count=3, at=0, rate=0.1, facts=(), **changes):
    """A run in which these change from one step on."""
    steps = Steps()
    steps.rate = rate
    steps.facts |= dict(facts)
    for step in range(count):
        if step >= at:
            for change in changes.values():
                change(steps)
        steps.write()
    return steps


def still(*names):
    def change(steps):
        for name in names:
            steps.kinds["updates"][f"update/{name}"][:] = 0

    return change


def without_gradient(*names):
    def change(steps):
        for name in names:
            steps.kinds["gradients"][f"gradient/{name}"][:] = 0
            steps.kinds["updates"][f"update/{name}"][:] = 0

    return change


def gone(*names):
    def change(steps):
        for name in names:
            del steps.kinds["gradients"][f"gradient/{name}"]
            steps.kinds["updates"][f"update/{name}"][:] = 0

    return change


def lasting(**facts):
    return lambda steps: steps.lasting.update(facts)


def owned(*names, others=0):
    groups = [{"parameters": list(names), "others": others}]
    return lasting(optimizers=[{"class": "SGD", "groups": groups}])


def gradient(name, scale):
    def change(steps):
        steps.kinds["gradients"][f"gradient/{name}"] *= np.float32(scale)

    return change


def weights(name, value):
    return lambda steps: steps.kinds["parameters"][name].fill(value)


LOST = "Net_2.weight"


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        (lambda: parameters(a=still(LOST)), [(0, LOST), (1, LOST), (2, LOST)]),
        (lambda: parameters(a=still(LOST), b=lasting(frozen=[LOST])), []),
        (lambda: parameters(a=still(LOST), b=owned(*(set(PARAMETERS) - {LOST}))), []),
        (lambda: parameters(a=still(LOST), rate=0.0), []),
        (lambda: parameters(a=still(LOST), facts={"optimizer_steps": False}), []),
        (lambda: parameters(a=without_gradient(LOST)), []),  # it may be unused
        (lambda: parameters(a=still(LOST), b=gradient(LOST, 1e-4)), []),  # rounded away
        (lambda: parameters(a=still(LOST), b=gradient(LOST, 1e-2)), [(at, LOST) for at in range(3)]),
        (lambda: parameters(6, at=5, a=gone(LOST)), [(5, LOST)]),
        (lambda: parameters(1, a=still(LOST), b=gradient(LOST, 1e-4), c=weights(LOST, 0.0)), [(0, LOST)]),
        (lambda: parameters(1, a=still(LOST), b=gradient(LOST, 1e-4), c=weights(LOST, 1.0)), []),
        (lambda: parameters(6, at=5, a=without_gradient(LOST)), []),  # it is all zero, and still there
        (lambda: parameters(5, at=4, a=gone(LOST)), []),  # it was not regular yet
        (lambda: parameters(8, at=5, a=gone(LOST)), [(5, LOST), (6, LOST), (7, LOST)]),
        (lambda: parameters(6, at=5, a=gone(LOST), b=lasting(frozen=[LOST])), []),
        (lambda: parameters(6, at=5, a=gone(*PARAMETERS)), []),  # no step of this model
        (lambda: parameters(2, a=owned("other.weight")), [(0, PARAMETERS[0]), (1, PARAMETERS[0])]),
        (lambda: parameters(2, a=lasting(optimizers=[])), []),
        (lambda: parameters(5, a=still(*PARAMETERS)), [(at, PARAMETERS[0]) for at in (2, 3, 4)]),
        (lambda: parameters(5, a=still(*PARAMETERS), rate=None), []),
        (lambda: parameters(5, a=still(*PARAMETERS), rate=0.0), []),
        (lambda: parameters(5, a=still(*PARAMETERS), facts={"updates_are_sampled": True}), "not all still"),
        (lambda: parameters(5, a=gone(*PARAMETERS)), [(at, PARAMETERS[0]) for at in (2, 3, 4)]),
        (lambda: parameters(5, a=gone(*PARAMETERS), facts={"backward_passes": 0}), []),
    ],
)
def test_updates_are_lost_if_one_was_expected(steps, expected):
    steps = steps()
    if expected == "not all still":
        messages = [finding.message for _, finding in steps.evaluate("LostUpdates")]
        assert not any("No step" in message for message in messages)
        return
    assert found(steps, "LostUpdates") == expected


def test_a_layer_that_is_no_longer_used_loses_no_updates():
    def unused(steps):
        for name in ("2_output_0", "3_output_0"):
            del steps.kinds["outputs"][name]

    assert found(parameters(6, at=5, a=gone(LOST), b=unused), "LostUpdates") == []


def test_an_update_is_lost_since_its_first_step_until_it_comes_again():
    steps = parameters(6)
    for is_still in (True, True, False, True):
        if is_still:
            still(LOST)(steps)
        steps.write()
    assert [(at, finding.since) for at, finding in steps.evaluate("LostUpdates")] == [(6, 6), (7, 6), (9, 9)]


BLOCKS = [["Net", "Net", False], *([f"block_{at}", "Linear", False] for at in range(4))]


def differences(lost, count=4):
    steps = Steps()
    steps.lasting["modules"] = BLOCKS
    steps.facts["updates_are_differences"] = True
    names = [f"Net_block_{at}.weight" for at in range(count)]
    steps.lasting["optimizers"] = [{"class": "SGD", "groups": [{"parameters": names}]}]
    for _ in range(2):
        steps.kinds["parameters"] = {name: steps.normal(8, 8) for name in names}
        steps.kinds["gradients"] = {f"gradient/{name}": steps.normal(8, 8) for name in names}
        steps.kinds["updates"] = {f"update/{name}": steps.normal(8, 8) for name in names}
        for at in lost:
            steps.kinds["updates"][f"update/{names[at]}"][:] = 0
        steps.write()
    return sorted({int(finding.tensor[10]) for _, finding in steps.evaluate("LostUpdates")})


@pytest.mark.parametrize(("lost", "expected"), [([1], [1]), ([0], []), ([3], []), ([1, 2], []), ([0, 1], [])])
def test_what_is_frozen_is_unknown_where_updates_are_differences(lost, expected):
    """A layer between two that move is meant to move; half of a model, or its ends, may be frozen."""
    assert differences(lost) == expected


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        (lambda: parameters(a=without_gradient("Net_0.weight")), ["Net_0.weight"]),
        (lambda: parameters(1, a=without_gradient("Net_0.weight")), []),
        (
            lambda: parameters(a=without_gradient("Net_0.weight", "Net_2.weight")),
            ["Net_0.weight", "Net_2.weight"],
        ),
        (lambda: parameters(a=without_gradient("Net_2.weight")), []),  # something before it learns
        (lambda: parameters(at=1, a=without_gradient("Net_0.weight")), []),  # it had one
        (lambda: parameters(a=without_gradient(*PARAMETERS)), []),
        (lambda: parameters(a=without_gradient("Net_0.weight"), b=lasting(frozen=["Net_0.weight"])), []),
        (lambda: parameters(a=without_gradient("Net_0.weight"), facts={"optimizer_steps": False}), []),
        (lambda: parameters(a=owned(*PARAMETERS[:4])), ["Net_4.weight"]),
        (lambda: parameters(a=owned(*PARAMETERS[:2])), []),  # most of it: a part is trained on purpose
        (lambda: parameters(a=owned(*PARAMETERS[:4]), b=lasting(frozen=["Net_4.weight"])), []),
        (lambda: parameters(a=owned(*PARAMETERS[:4]), b=without_gradient("Net_4.weight")), []),
    ],
)
def test_parameters_are_not_reached_if_later_ones_learn(steps, expected):
    places = [name for _, name in found(steps(), "UnreachedParameters")]
    assert list(dict.fromkeys(places)) == expected


NORMALISED = [*MODULES[:2], ["1", "BatchNorm1d", True], *MODULES[3:]]


@pytest.mark.parametrize(
    ("frozen", "modules", "fired"),
    [
        (WEIGHTS, [*MODULES[:1], ["0", "LayerNorm", False], *MODULES[2:]], True),
        (WEIGHTS[:2], [*MODULES[:1], ["0", "LayerNorm", False], *MODULES[2:]], False),
        (WEIGHTS, MODULES, False),  # the biases of a trained model
        (PARAMETERS, MODULES, False),
    ],
)
def test_nothing_but_scales_is_trained(frozen, modules, fired):
    steps = parameters(1, a=lasting(frozen=list(frozen), modules=modules))
    messages = [finding.message for _, finding in steps.evaluate("UnreachedParameters")]
    assert bool(messages) is fired
    assert all("3 weights are frozen" in message for message in messages)


@pytest.mark.parametrize(
    ("learnt", "before", "fired"),
    [(10, WEIGHTS, False), (9, WEIGHTS, True), (10, WEIGHTS[1:], True)],
    ids=["trained", "hardly trained", "the first was never trained"],
)
def test_scales_that_are_tuned_after_the_training_are_left_alone(learnt, before, fired):
    steps = Steps()
    steps.lasting["modules"] = [*MODULES[:1], ["0", "LayerNorm", False], *MODULES[2:]]
    for step in range(learnt + 2):
        steps.lasting["frozen"] = list(WEIGHTS if step >= learnt else set(WEIGHTS) - set(before))
        for name in steps.lasting["frozen"]:
            del steps.kinds["gradients"][f"gradient/{name}"]
            del steps.kinds["updates"][f"update/{name}"]
        steps.write()
    assert [step for step, _ in steps.evaluate("UnreachedParameters")] == (
        [learnt, learnt + 1] if fired else []
    )


@pytest.mark.parametrize(("terms", "fired"), [([], False), ([TERM], True), (None, True)])
def test_normalisations_are_tuned_without_labels(terms, fired):
    steps = Steps()
    steps.lasting["modules"] = [*MODULES[:1], ["0", "LayerNorm", False], *MODULES[2:]]
    steps.lasting["frozen"] = list(WEIGHTS)
    steps.facts["loss"] = None if terms is None else {"factor": -1.0, "broadcast": None, "terms": terms}
    assert bool(steps.write().evaluate("UnreachedParameters")) is fired


def test_drawn_weights_that_are_frozen_are_no_trained_model():
    def drawn(steps):
        for name in WEIGHTS:
            steps.kinds["parameters"][name] = steps.random.uniform(-0.25, 0.25, (16, 16)).astype(np.float32)

    steps = parameters(1, a=drawn, b=lasting(frozen=list(WEIGHTS)))
    assert len(steps.evaluate("UnreachedParameters")) == 1


@pytest.mark.parametrize(
    ("large", "small", "is_drawn"),
    [(0.85, 0.1, True), (0.75, 0.35, False), (0.99, 0.3, False), (0.95, 0.01, False)],
)
def test_weights_are_drawn_evenly_up_to_their_bound(large, small, is_drawn):
    values = np.array([large, -large, small, -small] * 64, np.float32).reshape(16, 16) / 4

    def drawn(steps):
        for name in WEIGHTS:
            steps.kinds["parameters"][name] = values

    steps = parameters(1, a=drawn, b=lasting(frozen=list(WEIGHTS)))
    assert bool(steps.evaluate("UnreachedParameters")) is is_drawn


def flow(*scales, count=4, kind="Linear", first=0.5, last=0.5):
    """Gradients that are these shares of the weights; the first two have one size, and the last another."""
    steps = Steps()
    steps.lasting["modules"] = [[name, kind if of == "Linear" else of, on] for name, of, on in MODULES]
    for step in range(count):
        for name, scale, size in zip(WEIGHTS, scales, (first, first, last), strict=True):
            value = scale[step] if isinstance(scale, list) else scale
            size = size[step] if isinstance(size, list) else size
            steps.kinds["parameters"][name][:] = size
            steps.kinds["gradients"][f"gradient/{name}"][:] = size * value
        steps.write()
    return steps


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        (lambda: flow(0.9e-5, 0.1, 1.0), [(2, "Net_0.weight"), (3, "Net_0.weight")]),
        (lambda: flow(1.1e-5, 0.1, 1.0), []),
        (lambda: flow(0.9e-5, 0.1, 1.0, count=2), []),
        (lambda: flow([1e-6, 1e-6, 0.1, 1e-6], 0.1, 1.0), []),
        (lambda: flow(1e-7, 1e-6, 1.0, count=3), [(2, "Net_0.weight"), (2, "Net_2.weight")]),
        (lambda: flow(1e-6, 1e-7, 1.0, count=3), [(2, "Net_0.weight"), (2, "Net_2.weight")]),
        (lambda: flow(0.0, 0.1, 1.0), []),  # another rule's
        (lambda: flow(1.0, 1.0, 1e-7), []),
        (lambda: flow(1e-6, 0.1, 1.0, kind="EmbeddingBag"), []),
        (lambda: flow(1e-6, 0.1, 1.0, last=0.0026), [(2, "Net_0.weight"), (3, "Net_0.weight")]),
        (lambda: flow(1e-6, 0.1, 1.0, first=0.0026), [(2, "Net_0.weight"), (3, "Net_0.weight")]),
    ],
)
def test_the_gradient_vanishes_towards_the_first_layers(steps, expected):
    assert found(steps(), "GradientFlow") == expected


@pytest.mark.parametrize(
    ("share", "is_tied", "is_found"),
    [(1.1e-5, False, False), (0.9e-5, False, True), (1.1e-5, True, True)],
)
def test_a_gradient_that_reaches_the_embeddings_has_not_vanished(share, is_tied, is_found):
    """The queries and keys of a young transformer get little, as all scores are nearly equal."""
    steps = Steps()
    head = [["5", "Linear", False]] * is_tied  # without weights: they are those of the embedding
    steps.lasting["modules"] = [*MODULES[:1], ["e", "Embedding", False], *MODULES[1:], *head]
    for _ in range(4):
        weights = {"Net_e.weight": np.full((9, 4), 0.5, np.float32), **steps.kinds["parameters"]}
        steps.kinds["parameters"] = weights
        for name, scale in zip(("Net_e.weight", *WEIGHTS), (share, 1e-6, 0.1, 1.0), strict=True):
            weights[name][:] = 0.5
            steps.kinds["gradients"][f"gradient/{name}"] = weights[name] * np.float32(scale)
        steps.write()
    assert bool(steps.evaluate("GradientFlow")) is is_found


@pytest.mark.parametrize(("name", "is_found"), [("q_proj", False), ("value", True)])
def test_queries_and_keys_say_nothing_of_the_flow(name, is_found):
    steps = Steps()
    attention = f"Net_{name}.lora_A.weight"
    steps.lasting["modules"] = [*MODULES[:1], [f"{name}.lora_A", "Linear", False], *MODULES[1:]]
    for _ in range(4):
        weights = {attention: np.zeros((9, 4), np.float32), **steps.kinds["parameters"]}
        steps.kinds["parameters"] = weights
        for each, scale in zip((attention, *WEIGHTS), (1e-6, 0.1, 0.1, 1.0), strict=True):
            weights[each][:] = 0.5
            steps.kinds["gradients"][f"gradient/{each}"] = weights[each] * np.float32(scale)
        steps.write()
    assert bool(steps.evaluate("GradientFlow")) is is_found


@pytest.mark.parametrize("young", ["first", "last"])
def test_weights_that_began_at_zero_say_nothing_of_the_flow(young):
    """Their gradient is large beside them, and those behind them get little until they have grown."""
    outcomes = flow(1e-6, 0.1, 1.0, **{young: 0.0024}).evaluations("GradientFlow")
    assert {(len(findings), why) for _, findings, why in outcomes} == {
        (0, "fewer than 3 layers have weights that are trained, and did not begin at zero")
    }


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([0.0, 0.0026, 0.1, 0.24], []),
        ([0.0, 0.26, 0.26, 0.26], [(3, "Net_0.weight")]),
        ([0.0026, 0.0026, 0.1, 0.24], [(2, "Net_0.weight"), (3, "Net_0.weight")]),
    ],
)
def test_weights_that_were_zero_are_judged_once_they_are_as_large_as_others_begin(sizes, expected):
    assert found(flow(1e-6, 0.1, 1.0, last=sizes), "GradientFlow") == expected


def test_weights_that_are_not_finite_are_not_said_to_begin_at_zero():
    outcomes = flow(1e-6, 0.1, 1.0, last=np.nan).evaluations("GradientFlow")
    assert [(findings, why) for _, findings, why in outcomes] == [([], None)] * 4


def shrunk(share, losses, names=WEIGHTS[:2], first=0.5):
    steps = Steps()
    for at, loss in enumerate(losses):
        for name in WEIGHTS:
            steps.kinds["parameters"][name][:] = first * (share if at and name in names else 1)
        steps.loss = loss
        steps.write()
    return steps


@pytest.mark.parametrize(
    ("steps", "fired"),
    [
        (lambda: shrunk(0.049, [2.3] * 5), [3, 4]),
        (lambda: shrunk(0.051, [2.3] * 5), []),
        (lambda: shrunk(0.05, [2.3] * 5, first=0.625), []),
        (lambda: shrunk(0.049, [2.3] * 5, WEIGHTS[:1]), []),
        (lambda: shrunk(0.049, [2.3] * 20 + [1.0] * 10), [*range(3, 24)]),
        (lambda: shrunk(0.049, [2.3] * 5, first=0.02), []),
    ],
)
def test_weights_are_shrunk_if_most_are_and_the_loss_is_no_better(steps, fired):
    assert fires(steps(), "ShrunkWeights") == fired


def test_weights_have_shrunk_since_the_first_saved_step():
    steps = Steps()
    steps.skip(*[2.3] * 7)
    for share in (1.0, 0.03, 0.03, 0.03):
        for name in WEIGHTS:
            steps.kinds["parameters"][name][:] = 0.5 * share
        steps.write()
    assert {finding.since for _, finding in steps.evaluate("ShrunkWeights")} == {7}


def corrupted(value, at=9, count=11, size=(16, 16), kind="gradients", others=1.0):
    steps = Steps()
    for step in range(count):
        for name in steps.kinds[kind]:
            steps.kinds[kind][name] = np.linspace(-1, 1, int(np.prod(size))).reshape(size).astype(np.float32)
        if step == at:
            first, *rest = steps.kinds[kind]
            for name in rest:
                steps.kinds[kind][name] *= others
            steps.kinds[kind][first].reshape(-1)[3] = value
        steps.write()
    return fires(steps, "ElementCorruption")


@pytest.mark.parametrize(
    ("fired", "expected"),
    [
        (lambda: corrupted(1e6), [9]),
        (lambda: corrupted(-1e6), [9]),
        (lambda: corrupted(1e6, kind="updates"), [9]),
        (lambda: corrupted(1e6, kind="parameters"), [9]),
        (lambda: corrupted(1e6, kind="outputs"), []),
        (lambda: corrupted(1e6, at=8), [8]),
        (lambda: corrupted(1e6, at=7), []),  # too few to compare with
        (lambda: corrupted(1e6, size=(8, 8)), [9]),
        (lambda: corrupted(1e6, size=(7, 9)), []),
        (lambda: corrupted(12.0), []),  # it does not dominate the others
        (lambda: corrupted(25.0), [9]),
        (lambda: corrupted(1e3, others=1e3), []),  # a large step of all
        (lambda: corrupted(np.inf), []),
    ],
)
def test_a_single_value_is_corrupt_beyond_anything_before(fired, expected):
    assert fired() == expected


def test_a_parameter_is_found_corrupt_once_for_its_gradient_and_itself():
    steps = Steps()
    for step in range(11):
        values = np.linspace(-1, 1, 256).reshape(16, 16).astype(np.float32)
        steps.kinds = {
            "parameters": {"a/kernel": values.copy(), "b/kernel": values.copy()},
            "gradients": {"gradient/a/kernel": values.copy(), "gradient/b/kernel": values.copy()},
        }
        if step == 9:
            steps.kinds["parameters"]["a/kernel"][0, 0] = 1e6
            steps.kinds["gradients"]["gradient/a/kernel"][0, 0] = 1e6
        steps.write()
    assert found(steps, "ElementCorruption") == [(9, "gradient/a/kernel")]


def test_parameters_may_change_their_order():
    steps = Steps()
    for step in range(6):
        gone("Net_2.bias")(steps)
        if step == 5:
            gone(LOST)(steps)
            steps.kinds["parameters"] = dict(reversed(steps.kinds["parameters"].items()))
        steps.write()
    assert (5, LOST) in found(steps, "LostUpdates")
