from __future__ import annotations

import numpy as np
import pytest

from smdebug.exceptions import SMDebugValueError
from smdebug_rules.gradients.vanishing_gradient import VanishingGradient, bound_on_abs_mean
from tests.rules.made_runs import MadeRun, made_run
from tests.smdebug_rules.support import findings_by_step, fires_at, found_data_at


def test_it_fires_on_any_gradient_and_names_it_with_its_mean():
    run = made_run(
        {
            0: {"gradient/a": [1.0, -1.0], "gradient/b": [1.0, 1.0]},
            1: {"gradient/a": [1.0, -1.0], "gradient/b": [1e-9, -3e-9], "gradient/c": [0.0]},
        }
    )
    found = findings_by_step(VanishingGradient(run.trial()))
    assert list(found) == [1]
    assert [(finding.tensor, finding.value, finding.threshold) for finding in found[1]] == [
        ("gradient/c", 0.0, 1e-7),
        ("gradient/b", 2e-9, 1e-7),
    ]
    assert str(found[1][1]) == "gradient/b: the mean of |gradient| is 2e-09, below 1e-07"


def test_values_that_cancel_out_have_not_vanished():
    assert fires_at(VanishingGradient(made_run({0: {"gradient/a": [5.0, -5.0]}}).trial())) == []


def test_the_threshold_arrives_as_text():
    trial = made_run({0: {"gradient/a": [0.4]}}).trial()
    assert fires_at(VanishingGradient(trial, threshold="0.5")) == [0]
    assert fires_at(VanishingGradient(trial, 0.3)) == []
    with pytest.raises(SMDebugValueError, match="threshold must be a number, not 'small'"):
        VanishingGradient(trial, threshold="small")


REDUCTIONS = {
    "abs_mean": (1e-9, True),
    "abs_max": (1e-9, True),
    "l1": (1e-9, True),
    "l2": (1e-9, True),
    "mean": (1e-9, False),  # may have cancelled out
    "min": (0.0, False),
}


@pytest.mark.parametrize("saved", REDUCTIONS)
def test_saved_reductions_are_enough_where_they_prove_it(saved):
    value, fires = REDUCTIONS[saved]
    run = made_run({0: {f"smdebug/reductions/{saved}/gradient/a": [value]}})
    rule = VanishingGradient(run.trial())
    assert fires_at(rule) == ([0] if fires else [])
    assert found_data_at(rule, 0) is fires


def test_a_bound_is_reported_as_one_and_proves_nothing_where_it_is_not_below_the_threshold():
    run = made_run({n: {"smdebug/reductions/l2/gradient/a": [10.0**-n]} for n in (6, 8)})
    rule = VanishingGradient(run.trial())
    (found,) = findings_by_step(rule)[8]
    assert str(found) == "gradient/a: the mean of |gradient| is at most 1e-08, below 1e-07"
    assert "last_good_step" not in found.details
    assert found_data_at(VanishingGradient(run.trial()), 6) is False


def test_minimum_and_maximum_together_bound_the_mean():
    assert bound_on_abs_mean({("min", False): -2.0, ("max", False): 1.0}) == 2.0
    assert bound_on_abs_mean({("mean", False): 0.0}) is None


def test_every_worker_is_checked():
    run = MadeRun(workers=2)
    run.save(0, {"gradient/a": [1.0]}, rank=0).save(0, {"gradient/a": [0.0]}, rank=1).end()
    (finding,) = findings_by_step(VanishingGradient(run.trial()))[0]
    assert finding.worker == "worker_1"
    assert str(finding).startswith("gradient/a of worker_1: ")


def test_a_step_without_gradients_was_not_checked():
    run = made_run({0: {"loss": [0.0]}, 1: {"gradient/a": np.zeros((0,))}})
    rule = VanishingGradient(run.trial())
    assert fires_at(rule) == []
    assert found_data_at(rule, 0) is False


def test_a_run_without_the_collection_has_no_gradients():
    run = made_run({0: {"gradient/a": [0.0]}}, collections={})
    assert fires_at(VanishingGradient(run.trial())) == []


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "complex64"])
def test_it_is_right_on_every_type(dtype):
    zeros, ones = np.zeros(4, dtype), np.ones(4, dtype)
    run = made_run({0: {"gradient/a": ones}, 1: {"gradient/a": zeros}})
    assert fires_at(VanishingGradient(run.trial())) == [1]
