"""Runs of cases beside those of `test_words`: what a rule says depends on what it sees around a fault.

It is long because it has a run for each text that a rule may say.
"""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np

from smdebug import modes
from smdebug_default_rules.catalog import CATALOG
from tests.smdebug_default_rules import test_guards as guards
from tests.smdebug_default_rules import test_limits as limits
from tests.smdebug_default_rules import test_limits_of_layers as layers
from tests.smdebug_default_rules import test_limits_of_training as training
from tests.smdebug_default_rules.inputs.test_dropped_conditions import conditioned
from tests.smdebug_default_rules.inputs.test_equal_views import compared
from tests.smdebug_default_rules.inputs.test_repeated_noise import denoised
from tests.smdebug_default_rules.inputs.test_repeated_time import denoised as timed
from tests.smdebug_default_rules.inputs.test_sampler_weights import drawn, sampled
from tests.smdebug_default_rules.inputs.test_shared_noise import shared
from tests.smdebug_default_rules.inputs.test_sorted_targets import ordered
from tests.smdebug_default_rules.inputs.test_time_axis import PLACES, ROWS, read
from tests.smdebug_default_rules.inputs.test_token_labels import RIGHT, TAGS, written
from tests.smdebug_default_rules.loss.test_clipped_while_scaled import clipped as clipped_while_scaled
from tests.smdebug_default_rules.loss.test_ignored_class import left_out
from tests.smdebug_default_rules.loss.test_in_batch import contrastive
from tests.smdebug_default_rules.loss.test_last_layer import dropped, rectified
from tests.smdebug_default_rules.loss.test_own_targets import moved
from tests.smdebug_default_rules.loss.test_same_loss import same as unchanging
from tests.smdebug_default_rules.loss.test_turned_weights import classes, positives
from tests.smdebug_default_rules.made_runs import MODULES, PARAMETERS, TERM
from tests.smdebug_default_rules.made_steps import Steps
from tests.smdebug_default_rules.policies.test_policy_loss import punished, unrewarded
from tests.smdebug_default_rules.ranks.test_slow_rank import run as delayed
from tests.smdebug_default_rules.slips import test_slips as slips
from tests.smdebug_default_rules.test_limits_of_trees_and_ranks import Ranks
from tests.smdebug_default_rules.test_nothing_to_learn import SKEWED, labelled
from tests.smdebug_default_rules.values import test_computed_twice as again
from tests.smdebug_default_rules.weights.test_adapters import LAYERS, NAMES, Adapted
from tests.smdebug_default_rules.weights.test_balanced_decay import held
from tests.smdebug_default_rules.weights.test_choices import unchosen
from tests.smdebug_default_rules.weights.test_exchanged_means import following
from tests.smdebug_default_rules.weights.test_idle_optimizers import idle
from tests.smdebug_default_rules.weights.test_new_heads import run as headed
from tests.smdebug_default_rules.weights.test_resumes import resumed
from tests.smdebug_default_rules.weights.test_rounded_away import run as rounded_away
from tests.smdebug_default_rules.weights.test_set_back import run as going_back
from tests.smdebug_default_rules.weights.test_still_copies import copied, evaluated
from tests.smdebug_default_rules.weights.test_untrained_layers import frozen
from tests.smdebug_default_rules.weights.test_warm_ups import warming
from tests.smdebug_default_rules.weights.test_waves import cycling
from tests.smdebug_default_rules.weights.test_zero_gradients import training as training_of_zeros
from tests.smdebug_default_rules.weights.test_zero_gradients import without_gradients

SQUARES = {"criterion": "mse", "classes": 0, "means": [5000.0], "variances": [100.0]}


def all_steps(count, *changes, loss=None, mode=modes.TRAIN):
    """A run with these changes at every step."""
    steps = Steps()
    for at in range(count):
        for change in changes:
            change(steps)
        steps.loss = steps.loss if loss is None else loss[at]
        steps.write(mode)
    return steps


def filled(kind, name, value):
    return lambda steps: steps.kinds[kind].update({name: np.asarray(value, np.float32)})


def scaled(kind, name, factor):
    def change(steps):
        steps.kinds[kind][name] *= np.float32(factor)

    return change


def inputs_around(mean, spread):
    def change(steps):
        values = steps.kinds["inputs"]["Net_input_0"]
        values[:] = (values - values.mean()) / values.std() * spread + mean

    return change


def broadcast(*shape):
    return all_steps(
        1,
        filled("outputs", "Net_output_0", np.ones(shape)),
        lambda steps: steps.facts["loss"].update(broadcast=[32, 32]),
    )


UNDIVIDED = {"factor": 1.0, "tokens": 16, "width": 64, "kept": 0.19, "divided": 0.94, "is_even": True}


def attending(facts):
    """A step of a language model of two layers, of whose attention this is known."""
    attention = {"lengths": [16], "count": 2, "rows": 32, "tokens": 16, "future": 0.0, **facts}
    tokens = {"equal": [0.0, 1.0, 0.0], "counted": 480}
    loss = {"factor": 1.0, "terms": [TERM], "value": 3.47, "tokens": tokens, "attention": attention}
    return lambda steps: steps.facts.update(loss=loss)


def routed(count, name="Net_experts.{}.weight", used=(0, 1, 2, 3), then=(2,), apart=10):
    """Four experts, of which the first steps use some, and later ones others."""
    steps = Steps()
    names = [name.format(number) for number in range(4)]
    weights = {each: np.random.default_rng(0).normal(size=(8, 8)).astype(np.float32) for each in names}
    steps.lasting["optimizers"][0]["groups"][0]["parameters"] += names
    for at in range(count):
        steps.kinds["parameters"].update(weights)
        for number, each in enumerate(names):
            has_gradient = number in (used if at < 2 else then)
            steps.kinds["gradients"][f"gradient/{each}"] = weights[each] * np.float32(0.1 * has_gradient)
            steps.kinds["updates"][f"update/{each}"] = weights[each] * np.float32(1e-3 * has_gradient)
        steps.write()
        steps.skip(*[2.3] * (apart - 1))
    return steps


def coded(count, latent=None, embedding=None, variances=None, then=None, apart=10):
    """Steps of which the first two have one kind of code, and the later ones another."""
    steps = Steps()
    for at in range(count):
        loss = {"factor": 1.0, "terms": []}
        if latent is not None:
            value = (latent if at < 2 else then)["divergence"]
            largest, active = value / 2, 3 if value > 0.1 else 0
            loss["latent"] = {"dimensions": 8, "divergence": value, "largest": largest, "active": active}
        if embedding is not None:
            value = embedding if at < 2 else then
            loss["embedding"] = {"rows": 32, "columns": 16, "alignment": value}
        if variances is not None:
            value = variances if at < 2 else then
            term = {"criterion": "mean squared error", "classes": 8, "variances": [value] * 8}
            loss["terms"] = [{**TERM, **term}]
        steps.facts["loss"] = loss
        steps.write()
        steps.skip(*[2.3] * (apart - 1))
    return steps


def unregistered(place, count):
    return lambda steps: steps.facts.update(unregistered={"places": [place], "count": count})


def given(term, loss=None):
    def change(steps):
        steps.facts["loss"] = {"factor": 1.0, "terms": [{**TERM, **term}], "value": loss}

    return change


def clipped(norms, ratio=1e-6):
    """Gradients of these norms, and updates that hardly move the weights."""
    steps = Steps()
    for norm in norms:
        size = math.sqrt(sum(array.size for array in steps.kinds["gradients"].values()))
        for name in PARAMETERS:
            steps.kinds["gradients"][f"gradient/{name}"][:] = norm / size
            steps.kinds["parameters"][name][:] = 0.5
            steps.kinds["updates"][f"update/{name}"][:] = 0.5 * ratio
        steps.write()
    return steps


def memorised(mean=0.0, spread=1.0):
    """Validation that is never better, with inputs of this mean and spread."""
    steps = Steps()
    for level, value in zip(training.FALLING, [2.0, 2.3, 2.4, 2.5, 2.6, 2.7], strict=True):
        steps.loss = level
        steps.write(steps=5)
        steps.loss = value
        inputs = steps.kinds["inputs"]["Net_input_0"]
        inputs *= np.float32(spread)
        inputs += np.float32(mean)
        steps.write(modes.EVAL)
    steps.loss = 0.2
    return steps.write()


def masked(share=0.25):
    """Attention with a mask of its tokens, and gradients that vanish."""
    steps = Steps()
    steps.lasting["modules"] = [*MODULES, ["5", "MultiheadAttention", False]]
    for _ in range(4):
        mask = np.zeros((32, 8))
        mask.reshape(-1)[: round(256 * share)] = 1
        steps.kinds["inputs"] = {"ids": np.arange(256).reshape(32, 8), "attention_mask": mask}
        for name, scale in zip(training.WEIGHTS, (1e-6, 0.1, 1.0), strict=True):
            steps.kinds["parameters"][name][:] = 0.5
            steps.kinds["gradients"][f"gradient/{name}"][:] = 0.5 * scale
        steps.write()
    return steps


def decayed(decay):
    steps = Steps()
    (optimizer,) = steps.lasting["optimizers"]
    optimizer["groups"][0]["weight_decay"] = decay
    for at in range(5):
        for name in training.WEIGHTS:
            steps.kinds["parameters"][name][:] = 0.5 * (0.03 if at else 1)
        steps.write()
    return steps


def corrupted():
    steps = Steps().write(steps=10)
    steps.kinds["gradients"]["gradient/Net_2.weight"][3, 5] = 100.0
    return steps.write()


def one_large_column():
    """A table of which one column has another unit."""
    inputs = np.tile(np.linspace(-1, 1, 32)[:, None], (1, 8)).astype(np.float32)
    inputs[:, 3] *= 5000
    return limits.inputs(inputs, outputs=limits.first_layer(2000.0))


def adapted(count=3, change=lambda steps: None):
    steps = Adapted()
    change(steps)
    steps.has_started = False
    steps.refresh()
    return steps.write(steps=count)


def logged(**series):
    """A run that logs these numbers at steps 0, 1, …"""
    steps = Steps()
    for place in range(max(map(len, series.values()))):
        for name, values in series.items():
            steps.carry(name, values[place])
        steps.write()
    return steps


def alike(attributes, names):
    """Name the same adapters in several attributes of the run."""

    def change(steps):
        for attribute in attributes:
            setattr(steps, attribute, names)

    return change


def trained_base(steps):
    steps.lasting["frozen"] = []
    steps.own([steps.name(part, layer) for layer in LAYERS for part in NAMES])


class OfRanks:
    """A run of several ranks that is evaluated as the made steps are."""

    def __init__(self, ranks, steps):
        self.ranks, self.steps = ranks, steps

    def evaluate(self, rule):
        trial = SimpleNamespace(observations=self.ranks, mode_modestep=lambda step: (modes.TRAIN, step))
        made, run, found = CATALOG[rule].load()(trial), Steps(), []
        for step in self.steps:
            run.step = step
            run.write()
            made._begin_evidence()
            made.observed = lambda _, seen=run.seen[-1]: seen
            made.invoke_at_step(step)
            found += [(step, finding) for finding in made.findings]
        return found


class Differing(Ranks):
    """Ranks of which the last differs at the second step."""

    def differing(self, step):
        return [SimpleNamespace(name="Net_0.weight", workers=("worker_2",), others=("worker_0", "worker_1"))]


BOTH, ALONE = ("xp", "xp"), ("xp", None)
TWICE = {"equal": [0.1, 0.2, 1.0], "counted": 200}

MARGIN, PREFERRED = "rewards/margins", "rewards/accuracies"

RUNS = [
    (
        "PolicyLearning",
        lambda: logged(
            reward=[0.1] * 8, **{"sampling/sampling_logp_difference/mean": [0.01] * 3 + [0.2] * 5}
        ),
    ),
    (
        "PolicyLearning",
        lambda: logged(reward=[0.1] * 8, **{"sampling/importance_sampling_ratio/mean": [0.5] * 8}),
    ),
    ("PolicyLearning", lambda: logged(reward=[0.1] * 12, entropy=[2.0] * 5 + [0.05] * 7)),
    ("PolicyLearning", lambda: logged(reward=[0.1] * 12, kl=[0.01] * 5 + [9.0] * 7)),
    *[("PolicyLearning", run) for run in (punished, unrewarded)],
    (
        "Preferences",
        lambda: logged(**{MARGIN: [-0.01 * place for place in range(14)], PREFERRED: [0.2] * 14}),
    ),
    ("Preferences", lambda: logged(**{MARGIN: [0.0] * 8, PREFERRED: [0.0] * 8})),
    ("LossInput", lambda: broadcast(32, 1)),
    ("LossInput", lambda: broadcast(32)),
    ("LossInput", lambda: all_steps(1, given({"given": "softmax"}, 1.9))),
    ("LossInput", lambda: all_steps(1, given({"given": "raw outputs"}))),
    (
        "LossInput",
        lambda: all_steps(1, given({"criterion": "binary cross entropy with logits", "given": "sigmoid"})),
    ),
    (
        "LossInput",
        lambda: all_steps(1, given({"criterion": "Kullback-Leibler divergence", "given": "softmax"})),
    ),
    ("LearningRate", lambda: clipped([1.0] * 14)),
    ("LearningRate", lambda: clipped([1.0, 1.1] * 7)),
    ("Generalisation", lambda: memorised(mean=3.0)),
    ("Generalisation", lambda: memorised(spread=0.1)),
    ("Generalisation", lambda: memorised(mean=0.3)),
    ("StuckLoss", lambda: all_steps(151, scaled("inputs", "Net_input_0", 1e-3), loss=training.noisy(2.3))),
    ("StuckLoss", lambda: all_steps(151, inputs_around(-0.42, 0.005), loss=training.noisy(2.3))),
    ("StuckLoss", lambda: all_steps(151, given(SQUARES), loss=training.noisy(2.5e7, noise=1e3))),
    (
        "StuckLoss",
        lambda: training.with_losses([*training.noisy(2.3, 40), *[1.0] * 60, *training.noisy(2.3, 260)]),
    ),
    ("GradientFlow", masked),
    ("InputScale", one_large_column),
    (
        "DeadUnits",
        lambda: all_steps(
            3, filled("outputs", "1_output_0", np.zeros((32, 16))), scaled("inputs", "Net_input_0", 1e-3)
        ),
    ),
    (
        "SaturatedUnits",
        lambda: all_steps(
            3, filled("outputs", "3_output_0", np.ones((32, 16))), scaled("inputs", "Net_input_0", 20)
        ),
    ),
    ("ConstantOutput", lambda: all_steps(3, filled("outputs", "Net_output_0", np.ones((32, 1))))),
    ("ShrunkWeights", lambda: decayed(0.5)),
    (
        "InitialWeights",
        lambda: all_steps(1, *(filled("parameters", name, np.zeros((16, 16))) for name in training.WEIGHTS)),
    ),
    ("InitialWeights", lambda: all_steps(1, filled("parameters", "Net_2.weight", np.full((16, 16), 0.1)))),
    ("InitialWeights", lambda: all_steps(1, filled("parameters", "Net_2.weight", layers.spread(6.1)))),
    (
        "InitialWeights",
        lambda: all_steps(
            1, *(filled("parameters", f"Net_{at}.weight", layers.spread(9e-4)) for at in (2, 4))
        ),
    ),
    ("NonFiniteValues", lambda: all_steps(1, guards.put("inputs", "Net_input_0", np.nan), loss=[np.nan])),
    ("NonFiniteValues", lambda: all_steps(13, loss=[1.0] * 5 + [9.0] * 7 + [np.nan])),
    ("NonFiniteValues", lambda: all_steps(1, guards.GRADIENT)),
    ("NonFiniteValues", lambda: all_steps(1, guards.scaled(101.0))),
    ("NonFiniteValues", lambda: all_steps(1, guards.sized("Net_2.weight", 0.5, 26, 1.1), given(SQUARES))),
    (
        "LossSpike",
        lambda: limits.inputs(*[np.full((32, 8), scale, np.float32) for scale in [1.0] * 5 + [51.0]]),
    ),
    ("TokenLabels", lambda: written(*[{**RIGHT, "padding": 0.5}] * 3)),
    ("TokenLabels", lambda: written(*[TAGS] * 3)),
    ("TokenLabels", lambda: written(*[{**RIGHT, "ends": 2, "ends_learned": 0}] * 4)),
    ("TokenLabels", lambda: written(None, None, None, ignored=1.0)),
    ("TokenLabels", lambda: written(*[RIGHT] * 3, ignored=1.0)),
    (
        "LabelBalance",
        lambda: all_steps(
            121, given({"classes": 2, "largest_class": 0, "largest_share": 0.99}), loss=[0.056] * 121
        ),
    ),
    ("LabelBalance", lambda: labelled(0.001, [[2, 64]])),
    ("RevealedTargets", lambda: labelled(0.01, SKEWED, count=60, revealed_by=[0, 7])),
    ("RevealedTargets", lambda: labelled(0.01, SKEWED, count=60, revealed_by=[0, "input"])),
    ("ElementCorruption", corrupted),
    ("Adapters", lambda: adapted(change=lambda steps: steps.own(["Net_q.base.weight"]))),
    (
        "Adapters",
        lambda: adapted(
            change=alike(("zeros", "still", "without_gradient"), ("Net_q.lora_A", "Net_q.lora_B"))
        ),
    ),
    ("Adapters", lambda: adapted(change=alike(("zeros", "still"), ("Net_q.lora_B", "Net_v.lora_B")))),
    ("Adapters", lambda: adapted(change=alike(("without_gradient",), ("Net_v.lora_A", "Net_v.lora_B")))),
    ("Adapters", lambda: adapted(change=trained_base)),
    ("RanksAlike", lambda: OfRanks(Ranks(2, _0=BOTH, _1=BOTH), range(2))),
    *(("ComputedTwice", lambda of=of: OfRanks(again.after_two(of), range(4))) for of in again.CHANGES),
    ("SlowRank", lambda: OfRanks(delayed(forward=0.4), range(10, 51, 10))),
    ("MissingRank", lambda: OfRanks(Ranks(2, _0=BOTH, _10=ALONE, _110=BOTH), (0, 5, 10, 110))),
    ("ReplicasDiffer", lambda: OfRanks(Differing(3, _0=("xp", "xp", "xp"), _1=("xp", "xp", "xq")), range(2))),
    ("LossInput", lambda: all_steps(1, given({"normalised": {"axis": 0, "length": 32}}, 3.1))),
    ("LossInput", lambda: all_steps(1, given({"normalised": {"axis": 2, "length": 7}}))),
    ("LostUpdates", lambda: going_back(6, apart=10)),
    ("UnreachedParameters", lambda: all_steps(2, unregistered("Net.hidden[0].weight", 4))),
    ("UnreachedParameters", lambda: all_steps(2, unregistered("Net.scale", 1))),
    ("Attention", lambda: all_steps(2, attending({"padding_alone": True, "count": 1}))),
    ("Attention", lambda: all_steps(2, attending({"lengths": [32]}))),
    ("Attention", lambda: all_steps(2, attending({"over_queries": 2}))),
    ("Attention", lambda: all_steps(2, attending({"undivided": UNDIVIDED}))),
    ("CollapsedRepresentation", lambda: coded(12, embedding=0.2, then=0.995)),
    ("CollapsedRepresentation", lambda: coded(12, variances=0.5, then=1e-6)),
    *[("LossInput", run) for run in (slips.maximised, slips.ending)],
    ("LossInput", lambda: slips.ending("Sigmoid", means=[5.5], lowest=1.0, highest=10.0)),
    ("AccumulationScale", lambda: slips.passes(8, 1 / 64)),
    ("AccumulationScale", lambda: slips.passes(4, 1 / 4, reset=True)),
    ("AccumulationScale", lambda: slips.passes(1, 1 / 8, wanted=8)),
    ("AccumulationScale", lambda: slips.passes(4, 1 / 8, wanted=8)),
    ("LossScale", slips.half),
    *[("LabelBalance", run) for run in (slips.ordered, ordered)],
    ("StuckLoss", lambda: slips.zeros(*[1e-9] * 24)),
    ("UnreachedParameters", slips.headed),
    *[("LearningRate", run) for run in (lambda: warming(1000), resumed)],
    ("UnreachedParameters", lambda: unchosen(is_routed=False)),
    *[("UnreachedParameters", lambda used=used: unchosen(used=used)) for used in (1, 0)],
    ("UnreachedParameters", lambda: training_of_zeros(51, without_gradients)),
    *[("UnreachedParameters", run) for run in (idle, copied, frozen)],
    ("RepeatedInput", shared),
    ("RepeatedInput", denoised),
    ("ShrunkWeights", held),
    *[("LearningRate", run) for run in (lambda: resumed(updates=60, rates=(0.1, 0.05)), cycling)],
    ("StuckLoss", lambda: contrastive(steps=151)),
    ("LossScale", lambda: clipped_while_scaled(*[1 / 65536] * 5)),
    ("LossInput", lambda: positives(10, weights=[10 / 190])),
    ("LossInput", lambda: classes(200, 100, 20, weights=[2.0, 1.0, 0.2])),
    ("LossInput", lambda: left_out(ignored=1)),
    ("LossInput", lambda: moved(1, 1, 1)),
    ("UnreachedParameters", lambda: following(*[0.99] * 5)),
    *[("BatchShape", run) for run in (read, lambda: read((PLACES, ROWS, 16), PLACES))],
    ("RepeatedInput", lambda: compared(8, 8, 8)),
    ("RepeatedInput", timed),
    ("LostUpdates", rounded_away),
    ("Adapters", headed),
    ("StuckLoss", lambda: unchanging(steps=62)),
    ("LossInput", dropped),
    ("LossInput", lambda: rectified(criterion="binary cross entropy with logits")),
    ("GradientsNotReset", lambda: all_steps(3, lambda steps: steps.facts.update(gradients_were_used=True))),
    ("LabelBalance", lambda: drawn(64, 16, 16, kinds=[(100, 200), (200, 200)])),
    ("RepeatedInput", lambda: sampled(10)),
    ("UnreachedParameters", conditioned),
    ("UnreachedParameters", lambda: evaluated(1, 2, 3)),
]
"""A rule and a run in which it finds something."""
