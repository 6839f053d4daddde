"""Codes that say nothing, told from codes that say little at first or now and then."""

import pytest

from smdebug_default_rules.layers.collapsed_representation import measured
from tests.smdebug_default_rules.words.more_runs import coded, routed


def steps_of(run, rule="CollapsedRepresentation"):
    return [step for step, _ in run.evaluate(rule)]


@pytest.mark.parametrize(
    ("codes", "is_found"),
    [
        ({"latent": {"divergence": 0.9}, "then": {"divergence": 0.009}}, True),
        ({"latent": {"divergence": 0.9}, "then": {"divergence": 0.011}}, False),
        ({"embedding": 0.85, "then": 0.98}, True),
        ({"embedding": 0.85, "then": 0.97}, False),
        ({"embedding": 0.95, "then": 0.992}, True),
        ({"embedding": 0.95, "then": 0.989}, False),  # alike from the start
        ({"variances": 1.0, "then": 0.0024}, True),
        ({"variances": 1.0, "then": 0.0026}, False),
    ],
)
def test_a_code_collapses_if_nothing_is_left_of_it(codes, is_found):
    assert bool(steps_of(coded(12, **codes))) is is_found


def test_eight_saved_steps_that_are_fifty_apart_show_it():
    codes = {"embedding": 0.5, "then": 0.999}
    assert steps_of(coded(9, **codes)) == []
    assert steps_of(coded(10, **codes)) == [90]
    assert steps_of(coded(10, apart=7, **codes)) == []
    assert steps_of(coded(10, apart=8, **codes)) == [72]


def test_a_mixture_is_found_by_the_gradients_of_its_experts():
    assert steps_of(routed(14), "UnusedExperts") == [130]
    assert steps_of(routed(14, name="Net_blocks.{}.weight"), "UnusedExperts") == []
    assert steps_of(routed(14, then=(0, 1)), "UnusedExperts") == []


@pytest.mark.parametrize("what", ["policy", "actions"])
def test_returns_that_a_policy_makes_equal_are_no_code(what):
    errors = {"terms": [{"criterion": "mean squared error", "variances": [1.0] * 8}]}
    assert measured(errors) == {"targets": 8.0}
    assert measured({**errors, what: {"bonus": 1.0}}) == {}
