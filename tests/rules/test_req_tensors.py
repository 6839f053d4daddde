from __future__ import annotations

import pytest

from smdebug.exceptions import (
    NoMoreData,
    SMDebugValueError,
    TensorUnavailable,
    TensorUnavailableForStep,
)
from smdebug.rules import RequiredTensors
from tests.rules.made_runs import made_run


@pytest.fixture
def run():
    return made_run(
        {
            0: {"relu_0": [1.0], "relu_1": [2.0], "w": [3.0]},
            1: {"relu_0": [1.0], "smdebug/reductions/mean/w": [4.0]},
            2: {"relu_0": [5.0], "w": [6.0]},
        }
    )


@pytest.fixture
def trial(run):
    return run.trial()


def test_required_tensors_are_reported_by_name_and_step(trial):
    required = RequiredTensors(trial)
    required.add("w", steps=[2])
    required.add(name="relu_0", steps=[0, 1], trial=None, should_match_regex=False)
    required.add("w", [0, 2])
    assert required.get_names() == ["w", "relu_0"]
    assert [tensor.name for tensor in required.get()] == ["w", "relu_0"]
    assert required.get_tensor_steps("w") == [2, 0]
    assert required.get_tensor_steps(trial=None) == [0, 1, 2]


def test_a_pattern_requires_every_tensor_it_matches_and_may_match_none(trial):
    required = RequiredTensors(trial)
    required.add("relu_.*", [0], should_match_regex=True)
    required.add("tanh_.*", [0], should_match_regex=True)
    assert required.get_names() == ["relu_0", "relu_1"]


def test_the_callers_list_of_steps_stays_the_callers(trial):
    required = RequiredTensors(trial)
    steps = [0]
    required.add("w", steps)
    required.add("relu_0", steps)
    required.add("w", [2])
    steps.append(1)
    assert required.get_tensor_steps("relu_0") == [0]
    assert steps == [0, 1]


def test_a_tensor_that_was_never_saved_is_refused(trial):
    with pytest.raises(TensorUnavailable, match="nope"):
        RequiredTensors(trial).add("nope", [0])


def test_a_tensor_that_is_not_required_has_no_steps(trial):
    required = RequiredTensors(trial)
    required.add("w", [0])
    with pytest.raises(SMDebugValueError, match=r"relu_0 is not required\. Required: w"):
        required.get_tensor_steps("relu_0")


def test_each_trial_has_requirements_of_its_own(trial):
    other = made_run({0: {"theirs": [1.0]}}).trial("other")
    required = RequiredTensors(trial, [other])
    required.add("theirs", [0], trial=other)
    assert required.get_names() == []
    assert required.get_names(trial=other) == ["theirs"]
    required.clear()
    assert required.get_names(trial=other) == []


def test_a_trial_that_the_rule_does_not_have_is_refused(trial):
    stranger = made_run({0: {"w": [1.0]}}).trial("stranger")
    with pytest.raises(SMDebugValueError, match="neither the base trial"):
        RequiredTensors(trial).get(trial=stranger)


def test_fetching_finds_out_what_will_never_come(trial):
    required = RequiredTensors(trial)
    required.add("relu_1", [0, 2])
    with pytest.raises(TensorUnavailableForStep, match="relu_1"):
        required.fetch()
    required.clear()
    required.add("w", [0, 100])
    with pytest.raises(NoMoreData):
        required.fetch()
    required.clear()
    required.fetch()


def test_a_tensor_of_which_only_reductions_were_saved_is_there(trial):
    required = RequiredTensors(trial)
    required.add("w", [0, 1])
    required.fetch()
