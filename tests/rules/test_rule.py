from __future__ import annotations

import pickle
from typing import ClassVar

import numpy as np
import pytest

from smdebug.exceptions import (
    NoMoreData,
    RuleEvaluationConditionMet,
    SMDebugTypeError,
    SMDebugValueError,
    StepUnavailable,
)
from smdebug.rules import Finding, Rule
from tests.rules.made_runs import made_run


@pytest.fixture
def trial():
    steps = (0, 10, 20)
    return made_run({n: {"loss": [float(n)], "gradient/w": [n, n]} for n in steps}).trial()


@pytest.fixture
def other():
    return made_run({0: {"loss": [5.0]}}).trial("other")


class Above(Rule):
    """Fires at steps from 10 on."""

    def invoke_at_step(self, step):
        return self.base_trial.tensor("loss").value(step)[0] >= 10


def calls(trial, other):
    return {
        "(base_trial)": ((trial,), {}),
        "(base_trial, action_str)": ((trial, ""), {}),
        "(base_trial, other_trials=None)": ((trial,), {"other_trials": None}),
        "(base_trial, action_str='')": ((trial,), {"action_str": ""}),
        "(base_trial, action_str, other_trials=None)": ((trial, ""), {"other_trials": None}),
        "(base_trial, None)": ((trial, None), {}),
    }


def calls_with_another(trial, other):
    return {
        "(base_trial, other_trials=[…])": ((trial,), {"other_trials": [other]}),
        "(base_trial, [other])": ((trial, [other]), {}),
        "(base_trial, other)": ((trial, other), {}),
        "(base_trial, action_str, [other])": ((trial, "", [other]), {}),
        "(base_trial, action_str, other_trials=(…))": ((trial, ""), {"other_trials": (other,)}),
        "(base_trial, other_trials=other)": ((trial,), {"other_trials": other}),
    }


@pytest.mark.parametrize("call", calls(None, None))
def test_every_way_in_which_rules_were_made_still_works(trial, other, call):
    args, kwargs = calls(trial, other)[call]
    rule = Above(*args, **kwargs)
    assert rule.other_trials is None
    assert rule.trials == [trial]


@pytest.mark.parametrize("call", calls_with_another(None, None))
def test_other_trials_may_come_in_either_place(trial, other, call):
    args, kwargs = calls_with_another(trial, other)[call]
    rule = Above(*args, **kwargs)
    assert rule.other_trials == [other]
    assert rule.trials == [trial, other]


def test_other_trials_given_twice_are_refused(trial, other):
    with pytest.raises(SMDebugTypeError, match="action_str is a list of trials"):
        Above(trial, [other], [other])


def test_a_rule_has_the_attributes_that_rules_rely_on(trial):
    rule = Above(trial)
    assert rule.base_trial is trial
    assert rule.rule_name == "Above"
    assert rule.findings == []
    assert rule.report == {
        "RuleTriggered": 0,
        "Violations": 0,
        "Details": {},
        "Datapoints": 0,
        "RuleParameters": "",
    }
    assert rule.logger.name == "smdebug"
    assert rule.req_tensors.get() == []


def test_a_rule_without_a_condition_cannot_be_made(trial):
    with pytest.raises(TypeError, match="invoke_at_step"):
        Rule(trial)


def test_a_bad_action_is_refused_when_the_rule_is_made(trial):
    with pytest.raises(SMDebugValueError, match="not valid JSON"):
        Above(trial, "stop it")


def test_a_condition_that_is_met_is_raised_and_otherwise_nothing_is(trial):
    rule = Above(trial)
    assert rule.invoke(0) is None
    with pytest.raises(RuleEvaluationConditionMet) as met:
        rule.invoke(10)
    assert (met.value.rule_name, met.value.step) == ("Above", 10)
    assert str(met.value) == ("Evaluation of the rule Above at step 10 resulted in the condition being met")


def test_a_truthy_answer_counts_as_true(trial):
    class Numpy(Rule):
        def invoke_at_step(self, step):
            return np.float32(step) > 5

    assert Numpy(trial).invoke(0) is None
    with pytest.raises(RuleEvaluationConditionMet):
        Numpy(trial).invoke(10)


def test_an_unsaved_step_and_the_end_are_distinguished(trial):
    with pytest.raises(StepUnavailable):
        Above(trial).invoke(5)
    with pytest.raises(NoMoreData):
        Above(trial).invoke(21)


class WithEvidence(Rule):
    def invoke_at_step(self, step):
        self.findings += ["loss", "too much", {"tensor": "loss", "value": step}, Finding("loss")]
        return step > 0


def test_findings_are_the_evidence_on_the_exception_and_on_the_rule(trial):
    rule = WithEvidence(trial)
    rule.invoke(0)
    with pytest.raises(RuleEvaluationConditionMet) as met:
        rule.invoke(10)
    assert met.value.findings == (
        Finding(tensor="loss"),
        Finding(message="too much"),
        Finding(tensor="loss", value=10),
        Finding("loss"),
    )
    assert tuple(rule.findings) == met.value.findings


def test_findings_begin_empty_at_every_step(trial):
    rule = WithEvidence(trial)
    for step in (10, 20):
        with pytest.raises(RuleEvaluationConditionMet):
            rule.invoke(step)
        assert len(rule.findings) == 4


def test_invalid_evidence_does_not_hide_the_findings(trial):
    class Odd(Rule):
        def invoke_at_step(self, step):
            self.findings = 7
            return True

    with pytest.raises(RuleEvaluationConditionMet) as met:
        Odd(trial).invoke(0)
    assert met.value.findings == (Finding(message="7"),)


def test_the_exception_can_be_pickled_with_its_findings(trial):
    with pytest.raises(RuleEvaluationConditionMet) as met:
        WithEvidence(trial).invoke(10)
    copy = pickle.loads(pickle.dumps(met.value))
    assert copy.findings == met.value.findings
    assert str(copy) == str(met.value)


def test_a_trial_is_not_refreshed_during_evaluation_but_after_an_error(trial, other):
    class Broken(Rule):
        def invoke_at_step(self, step):
            assert [item.dynamic_refresh for item in self.trials] == [False, False]
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Broken(trial, other_trials=[other]).invoke(0)
    assert trial.dynamic_refresh
    assert other.dynamic_refresh


@pytest.mark.parametrize("name", ["set_required_tensors", "required_tensors"])
def test_required_tensors_may_be_declared_under_both_documented_names(trial, name):
    def declare(self, step):
        self.req_tensors.add("gradient/w", steps=[step])

    def invoke_at_step(self, step):
        return [tensor.name for tensor in self.req_tensors.get()] == ["gradient/w"]

    rule = type("Declaring", (Rule,), {name: declare, "invoke_at_step": invoke_at_step})(trial)
    for step in (0, 10):  # each step begins anew
        with pytest.raises(RuleEvaluationConditionMet):
            rule.invoke(step)
        assert rule.req_tensors.get_tensor_steps("gradient/w") == [step]


class NeedsALearningRate(Rule):
    advice: ClassVar = {"": ("Save a learning rate.",)}

    def invoke_at_step(self, step):
        if step == 0:
            self.not_checked = "no learning rate was saved"
        return False


def test_a_rule_that_lacks_what_it_needs_has_not_passed(trial):
    rule = NeedsALearningRate(trial)
    rule.invoke(0)
    assert (rule.looked, rule.not_checked) == (False, "no learning rate was saved")
    rule.invoke(10)
    assert (rule.looked, rule.not_checked) == (None, None)
    assert Above.advice == {}
