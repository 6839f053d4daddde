from __future__ import annotations

import numpy as np
import pytest

from smdebug.exceptions import SMDebugValueError
from smdebug.mode_keys import ModeKeys
from smdebug_rules.weights.unchanged_tensor import UnchangedTensor
from tests.rules.made_runs import MadeRun, made_run
from tests.smdebug_rules.support import findings_by_step, fires_at, found_data_at

TRAIN, EVAL = ModeKeys.TRAIN, ModeKeys.EVAL


@pytest.fixture
def foo_and_boo():
    """foo_* equal at steps 0, 1 and 2, other tensors at 3 and 4, boo_* at 5 only."""
    foo = {f"foo_{n}": np.full((3, 3), n + 1.0) for n in range(3)}
    boo = {f"boo_{n}": np.full((3, 3), n + 1.0) for n in range(3)}
    rest = {step: {f"other_{step}": [1.0]} for step in (3, 4)}
    return made_run({0: foo, 1: foo, 2: foo, **rest, 5: boo}).trial()


def test_it_fires_once_a_tensor_has_stayed_the_same_over_the_last_steps(foo_and_boo):
    found = findings_by_step(UnchangedTensor(foo_and_boo, tensor_regex=".*", num_steps=3))
    assert list(found) == [2]
    assert [finding.tensor for finding in found[2]] == ["foo_0", "foo_1", "foo_2"]
    assert str(found[2][0]) == "foo_0: unchanged at steps 0, 1, 2"


def test_earlier_steps_count_although_the_rule_was_not_invoked_at_them(foo_and_boo):
    assert fires_at(UnchangedTensor(foo_and_boo, tensor_regex=".*"), start_step=2) == [2]


def test_the_steps_need_not_be_consecutive():
    run = made_run({0: {"w": [1.0]}, 7: {"x": [0.0]}, 30: {"w": [1.0]}, 31: {"w": [2.0]}})
    assert fires_at(UnchangedTensor(run.trial(), tensor_regex="^w$", num_steps="2")) == [30]


def test_all_of_the_steps_have_to_be_the_same():
    run = made_run({n: {"w": [value]} for n, value in enumerate([1.0, 2.0, 2.0, 2.0, 1.0, 2.0])})
    trial = run.trial()
    assert fires_at(UnchangedTensor(trial, tensor_regex="w", num_steps=3)) == [3]
    assert fires_at(UnchangedTensor(trial, tensor_regex="w", num_steps=2)) == [2, 3]


def test_tolerances_are_numpys():
    run = made_run({0: {"w": [1.0, 0.0]}, 1: {"w": [1.001, 1e-9]}}).trial()
    assert fires_at(UnchangedTensor(run, tensor_regex="w", num_steps=2)) == []
    assert fires_at(UnchangedTensor(run, tensor_regex="w", num_steps=2, rtol="0.01")) == [1]
    assert fires_at(UnchangedTensor(run, tensor_regex="w", num_steps=2, rtol=0, atol="0.01")) == [1]


def test_nan_is_a_change_unless_asked_otherwise():
    run = made_run({key: {"w": [np.nan]} for key in range(2)}).trial()
    assert fires_at(UnchangedTensor(run, tensor_regex="w", num_steps=2)) == []
    assert fires_at(UnchangedTensor(run, tensor_regex="w", num_steps=2, equal_nan="True")) == [1]


def test_another_shape_is_a_change():
    run = made_run({0: {"w": np.ones((1, 4))}, 1: {"w": np.ones((4, 1))}, 2: {"w": np.ones(4)}})
    assert fires_at(UnchangedTensor(run.trial(), tensor_regex="w", num_steps=2)) == []


def test_text_can_stay_the_same():
    run = made_run({0: {"t": np.array(["a"])}, 1: {"t": np.array(["a"])}, 2: {"t": np.array(["b"])}})
    assert fires_at(UnchangedTensor(run.trial(), tensor_regex="t", num_steps=2)) == [1]


def test_reductions_cannot_prove_that_nothing_has_changed():
    run = made_run({key: {"smdebug/reductions/mean/w": [1.0]} for key in range(3)})
    rule = UnchangedTensor(run.trial(), tensor_regex="w")
    assert fires_at(rule) == []
    assert found_data_at(rule, 2) is False


def test_every_worker_is_compared_with_itself():
    run = MadeRun(workers=2)
    for step in range(2):
        run.save(step, {"w": [float(step)]}, rank=0).save(step, {"w": [5.0]}, rank=1)
    (finding,) = findings_by_step(UnchangedTensor(run.end().trial(), tensor_regex="w", num_steps=2))[1]
    assert finding.worker == "worker_1"


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"tensor_regex": "w", "num_steps": 1},
        {"tensor_regex": "w", "num_steps": "2.5"},
        {"tensor_regex": "w", "rtol": -1},
        {"tensor_regex": "w", "equal_nan": "perhaps"},
    ],
)
def test_invalid_parameters_are_refused(parameters, foo_and_boo):
    with pytest.raises(SMDebugValueError):
        UnchangedTensor(foo_and_boo, **parameters)


def test_validation_is_not_counted_for_what_is_trained():
    run = MadeRun()
    weights = [
        (TRAIN, 0.0),
        (EVAL, 0.0),
        (EVAL, 0.0),
        (EVAL, 0.0),
        (TRAIN, 1.0),
        (TRAIN, 1.0),
        (EVAL, 1.0),
    ]
    for step, (mode, value) in enumerate([*weights, (TRAIN, 1.0)]):
        run.save(step, {"w": [value]}, mode=mode)
    trial = run.end().trial()
    assert fires_at(UnchangedTensor(trial, tensor_regex="w")) == [7]
    rule = UnchangedTensor(trial, tensor_regex="w")
    assert found_data_at(rule, 3) is False
    assert rule.skipped == {"w": "it does not change in mode EVAL"}


def test_what_is_saved_in_validation_alone_is_compared_there():
    run = MadeRun()
    for step in range(3):
        run.save(step, {"score": [1.0]}, mode=EVAL)
    assert fires_at(UnchangedTensor(run.end().trial(), tensor_regex="score")) == [2]
