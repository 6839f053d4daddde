"""Facts that another version, a log of another tool or a damaged file wrote: they are left out and named."""

from __future__ import annotations

import ast
import copy
import math
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import smdebug_default_rules
from smdebug.trials.observations.fact_forms import FORMS, of_their_forms
from smdebug_default_rules.catalog import CATALOG
from tests.smdebug_default_rules.made_steps import Steps

ELSEWHERE = {"layout", "parts", "rank_times", "system"}  # are read by other modules, which look at them
NUMBERS = {
    "criterion": "mse",
    "given": "",
    "rows": 32,
    "classes": 4,
    "target_rows": 32,
    "columns": 1,
    "lowest": -1.0,
    "highest": 1.0,
    "means": [0.1],
    "variances": [1.0],
    "constant": 0.9,
    "changes": 1.0,
    "ascending": 0.5,
    "repeated": 0.0,
    "reduction": "mean",
    "of_a_layer": True,
    "weights": [0.1],
    "positives": [3],
    "labels": 32,
}
CLASSES = {
    "criterion": "cross entropy",
    "given": "softmax",
    "expects": "classes",
    "rows": 32,
    "classes": 2,
    "targets": 32,
    "classes_seen": 2,
    "largest_class": 1,
    "largest_share": 0.5,
    "ignored": 0.0,
    "ignored_class": 1,
    "counts": [[0, 16], [1, 16]],
    "changes": 0.5,
    "reduction": "sum",
    "of_a_layer": True,
    "weighted": True,
    "weights": [0.5, 2.0],
    "normalised": {"axis": 0, "length": 32},
}
LOSS = {
    "accumulates": {"name": "accumulation_steps", "number": 8},
    "factor": 1.0,
    "value": 0.7,
    "broadcast": [32, 32],
    "terms": [CLASSES],
    "idle": "router",
    "revealed_by": [0, 7],
    "latent": {"active": 1, "dimensions": 8, "divergence": 0.1, "largest": 0.2},
    "embedding": {"alignment": 0.99, "columns": 8, "rows": 32},
    "actions": {"bonus": 1.0, "log_scale": -0.7, "highest": 0.5, "lowest": -0.5},
    "policy": {"bonus": 1.0, "choices": 4, "entropy": 1.2, "highest": 0.5, "lowest": -0.5},
    "soft_targets": True,
    "attention": {
        "count": 1,
        "future": 0.4,
        "lengths": [32],
        "over_queries": 1,
        "padding_alone": True,
        "rows": 32,
        "tokens": 64,
        "undivided": {
            "divided": 0.94,
            "factor": 1.0,
            "is_even": True,
            "kept": 0.2,
            "tokens": 16,
            "width": 64,
        },
    },
    "tokens": {
        "counted": 64,
        "equal": [0.1, 1.0, 0.1],
        "ends": 1,
        "ends_learned": 0,
        "padding": 0.4,
        "padding_class": 1,
    },
}
EVERY_FACT = {
    "activations": {"0": "relu"},
    "arguments": {"objective": "binary:logistic", "booster": "gbtree", "scale_pos_weight": 9.0},
    "attempt": 1,
    "autocast": "float16",
    "backward_passes": 2,
    "computed_twice": {
        "not": "the model is compiled",
        "outputs": {"equal": 8},
        "gradients": {"first": "gradient/a", "tensors": 8, "replays": 5, "as_before": 0, "results": 1},
        "stored_weights": {"equal": 8},
        "stored_gradients": {
            "first": "a",
            "tensors": 8,
            "changed": 1,
            "form": "run",
            "values": 64,
            "size": 512,
            "place": 7,
        },
        "stored_state": {
            "first": "exp_avg of a",
            "tensors": 8,
            "changed": 1,
            "form": "bit",
            "values": 1,
            "size": 512,
            "before": 0.1,
            "after": 0.4,
        },
        "update": {"equal": 16},
    },
    "data": {
        "labels": {"classes_seen": 2, "largest_class": 0, "largest_share": 0.95, "targets": 1000},
        "missing": 0.0,
        "shapes": [[1000, 8]],
        "weighted": False,
    },
    "distinct_rows": 32,
    "dropout_in_evaluation": 0.5,
    "evaluated": {"train": "training", "validation": "validation"},
    "evaluated_copy": {"evaluations": 3, "model": "Net", "of": "Net_0.weight"},
    "followed": {"model": "Net", "of": "Net_0.weight", "share": 0.01, "is_same": False},
    "frozen": ["Net_0.weight"],
    "gradient_names": {"gradient": "Net_0.weight"},
    "gradients": True,
    "gradients_were_used": True,
    "gradients_were_reset": False,
    "loss": LOSS,
    "loss_scale": 65536.0,
    "loss_should_fall": True,
    "modules": [["Net", "Net", False], ["0", "Linear", False]],
    "opponents": [[0, "Judge", "", 1.0], [1, "Judge", "Maker", 0.0]],
    "optimizer_steps": True,
    "optimizers": [
        {
            "class": "Adam",
            "number": 1,
            "updates_before": 3,
            "groups": [
                {
                    "parameters": ["Net_0.weight", "Net_0.bias"],
                    "others": 0,
                    "asked_rate": 0.1,
                    "momentum": 0.9,
                    "weight_decay": 0.5,
                }
            ],
        }
    ],
    "other_gradients": True,
    "other_mode": ["0"],
    "predicted": {"constant": True, "of": "validation", "rows": 100, "score": 0.9, "skill": 0.1},
    "own_target": {"discount": 0.9, "parameter": "Net_4.weight"},
    "passes_share_graph": True,
    "reset_between_passes": True,
    "row_digests": "",
    "sampler": {"rows": 1000, "weights": 1000, "batch": 32, "kinds": [[1.0, 900], [9.0, 100]]},
    "shapes": [[32, 8]],
    "steps_apart": 1,
    "stops_early": False,
    "copied_model": {"is_same": True, "model": "Net", "of": "Net_0.weight"},
    "strong_dropout": {"module": "1", "rate": 0.9},
    "teacher": {
        "calls": 1,
        "is_copy": True,
        "model": "Net",
        "module": "1",
        "rate": 0.5,
        "shape": [32, 8],
        "values": 256,
    },
    "top_feature": {"explained": 0.99, "name": "f1", "share": 0.99},
    "top_features": {"total_gain": [["f1", 0.9], ["f2", 0.1]]},
    "training": True,
    "idle_optimizers": [{"class": "Adam", "parameters": ["Net_2.weight"], "are_reset": True}],
    "input_names": ["x", "t"],
    "unregistered": {"count": 1, "places": ["Net.layers[0]"]},
    "update_skipped": False,
    "updates_are_differences": False,
    "updates_are_sampled": True,
}
VARIANTS = [EVERY_FACT, {**EVERY_FACT, "loss": {**LOSS, "terms": [NUMBERS]}}]
ALONE = SimpleNamespace(has_facts=True, computed_twice=lambda step: {})  # the run of one rank
GONE = object()
OTHERS = [None, "x", -1, 0, 1 << 61, math.nan, True, [], {}, [-1.5], [0], GONE]


def places(value, place=()):
    """The places of all values within one."""
    if place:
        yield place
    for name, item in value.items() if isinstance(value, dict) else enumerate(value[:2]):
        if isinstance(item, (dict, list)):
            yield from places(item, (*place, name))
        else:
            yield (*place, name)


def changed(value, place, other):
    """The value with another one at a place."""
    result = copy.copy(value)
    name, *rest = place
    if rest:
        result[name] = changed(value[name], rest, other)
    elif other is GONE:
        del result[name]
    else:
        result[name] = other
    return result


def story(facts, steps=4):
    """A few steps with these facts, and what any rule may look at beside them."""
    run = Steps()
    run.lasting = {}
    run.facts = dict(facts)
    for _ in range(steps):
        run.write()
    return run.seen


def judged(seen):
    """The findings of every rule that judges each step by itself."""
    for name, entry in CATALOG.items():
        rule = entry.load()(SimpleNamespace(observations=ALONE))
        if not hasattr(rule, "check") or ".ranks." in type(rule).__module__:
            continue
        rule._begin_evidence()
        rule.observed = lambda step: seen[step]
        with np.errstate(all="ignore"):
            for at in seen:
                rule.invoke_at_step(at.step)
        yield name, rule


def test_every_fact_that_a_rule_reads_has_a_form():
    read = set()
    for path in Path(smdebug_default_rules.__path__[0]).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Call(ast.Attribute(of, "get"), [ast.Constant(str(name)), *_]) if is_facts(of):
                    read.add(name)
                case ast.Subscript(of, ast.Constant(str(name))) if is_facts(of):
                    read.add(name)
    assert len(read) > 20
    assert read - ELSEWHERE <= set(FORMS)
    assert set(EVERY_FACT) == set(FORMS)


def is_facts(node):
    return getattr(node, "attr", getattr(node, "id", "")) == "facts"


@pytest.mark.parametrize("facts", VARIANTS)
def test_facts_that_have_their_forms_pass_unchanged(facts):
    found, wrong = of_their_forms(facts)
    assert found == facts
    assert not wrong


@cache
def different_outcomes():
    return list(each_outcome())


def each_outcome():
    """What remains of the facts of a step if one value of them is another one: each remainder once."""
    known = set()
    for facts in VARIANTS:
        for place in places(facts):
            for other in OTHERS:
                if other is GONE and isinstance(place[-1], int):
                    continue
                remains = of_their_forms(changed(facts, place, other))[0]
                if (text := repr(remains)) not in known:
                    known.add(text)
                    yield changed(facts, place, other)


@pytest.mark.parametrize("part", range(8))
def test_no_rule_fails_with_a_fact_of_another_form(part):
    outcomes = different_outcomes()
    assert len(outcomes) > 400
    for facts in outcomes[part::8]:
        assert len(dict(judged(story(facts, steps=2)))) > 30


@pytest.mark.parametrize(
    ("place", "other", "said"),
    [
        (["loss"], "0.7", "loss is not an object"),
        (["loss", "terms", 0, "criterion"], 3, "loss.terms[0].criterion is not a text"),
        (["loss", "terms", 0, "criterion"], GONE, "loss.terms[0] has no criterion"),
        (["loss", "value"], "0.7", "loss.value is not a finite number"),
        (["loss", "tokens", "equal"], [0.5], "loss.tokens.equal is not a list of 3"),
        (
            ["optimizers", 0, "groups", 0, "parameters"],
            {},
            "optimizers[0].groups[0].parameters is not a list",
        ),
        (["shapes", 0, 1], -8, "shapes[0][1] is not a count"),
        (["loss", "terms", 0, "largest_share"], GONE, "loss.terms[0] has targets without largest_share"),
    ],
)
def test_what_is_left_out_is_said(place, other, said):
    (seen,) = story(changed(EVERY_FACT, place, other), steps=1)
    assert seen.facts["training"] is True
    assert seen.damaged == {f"fact {place[0]}": f"{said}, and was left out"}


def test_a_rule_whose_fact_was_left_out_says_so_and_the_others_go_on():
    outcomes = dict(judged(story({**EVERY_FACT, "loss": "0.7"})))
    assert outcomes["LossInput"].skipped == {"fact loss": "loss is not an object, and was left out"}
    assert not outcomes["LossInput"].findings
    assert [found.tensor for found in outcomes["UnreachedParameters"].findings]


@pytest.mark.parametrize("number", ["nan", "-inf", None])
def test_a_number_that_is_not_finite_is_not_known_and_nothing_is_wrong_with_it(number):
    (seen,) = story(changed(EVERY_FACT, ["loss", "latent", "divergence"], number), steps=1)
    assert seen.facts["loss"] == {name: value for name, value in LOSS.items() if name != "latent"}
    assert not seen.damaged


def test_a_field_of_another_form_leaves_the_rest_of_its_fact():
    (seen,) = story(changed(EVERY_FACT, ["loss", "latent"], "x"), steps=1)
    assert seen.facts["loss"] == {name: value for name, value in LOSS.items() if name != "latent"}


def test_facts_of_a_layout_are_looked_at_as_well():
    run = Steps()
    run.lasting = {"modules": "Net", "frozen": ["0.weight"]}
    run.write()
    (seen,) = run.seen
    assert "modules" not in seen.facts
    assert seen.facts["frozen"] == ["0.weight"]
    assert seen.damaged == {"fact modules": "modules is not a list, and was left out"}
