"""The action that makes a training save the tensors of a finding whole."""

import pytest

from smdebug.exceptions import RuleEvaluationConditionMet, SMDebugError, SMDebugValueError
from smdebug.files.names import END_MARKER, ZOOM_KEY
from smdebug.files.zoom_request import ZoomRequest
from smdebug.rules import Finding, Rule
from smdebug.rules.action.action import parse_actions
from smdebug.service.rules_file import parse_rules
from smdebug.storage.memory import MemoryStorage
from smdebug.trials import Trial
from tests.rules.made_runs import MadeRun


class Names(Rule):
    """Reports its argument as findings at every step."""

    def __init__(self, base_trial, names, actions):
        super().__init__(base_trial, actions)
        self.names = names

    def invoke_at_step(self, step):
        self.findings = [Finding(tensor=name, message="too small") for name in self.names]
        return True


@pytest.fixture
def storage():
    storage = MemoryStorage()
    run = MadeRun(storage)
    for step in range(3):
        run.save(step, {"gradient/fc.weight": 1.0, "loss": 1.0})
    return storage


def fire(storage, names, action, steps=(0,)):
    rule = Names(Trial("run", storage), names, action)
    for step in steps:
        with pytest.raises(RuleEvaluationConditionMet):
            rule.invoke(step)
    return rule._actions.outcomes


def requested(storage):
    return ZoomRequest.parse(storage.read(ZOOM_KEY))


def test_the_parameter_of_a_finding_is_requested_with_its_gradient_and_update(storage):
    (outcome,) = fire(storage, ["gradient/fc.weight"], {"name": "ZoomIn", "steps": "5"})
    assert outcome.done
    request = requested(storage)
    assert request.tensors == (r"^(gradient/|update/)?fc\.weight$",)
    assert request.steps == 5
    assert request.reason.startswith("Names: ")


def test_the_same_tensors_are_requested_once(storage):
    outcomes = fire(storage, ["gradient/fc.weight"], {"name": "zoomin"}, steps=(0, 1, 2))
    assert [outcome.done for outcome in outcomes] == [True, False, False]
    again = fire(storage, ["gradient/fc.weight"], {"name": "zoomin"})
    assert "were requested before" in again[0].message


def test_a_pattern_names_the_tensors_instead(storage):
    (outcome,) = fire(storage, [], {"name": "zoomin", "tensor_regex": "^loss$"})
    assert outcome.done
    assert requested(storage).tensors == ("^loss$",)


def test_a_finding_without_a_tensor_says_what_to_give_the_action(storage):
    (outcome,) = fire(storage, [], {"name": "zoomin"})
    assert not outcome.done
    assert "tensor_regex" in outcome.message
    assert not storage.exists(ZOOM_KEY)


def test_a_run_that_has_ended_is_left_alone(storage):
    storage.write(END_MARKER, b"")
    (outcome,) = fire(storage, ["loss"], {"name": "zoomin"})
    assert "the run has ended" in outcome.message
    assert not storage.exists(ZOOM_KEY)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"steps": 0}, "1 to 1000"),
        ({"steps": "many"}, "whole number"),
        ({"tensor_regex": "(a+)+$"}, "a+"),
        ({"tensor_regex": 3}, "must be text"),
        ({"endpoint": "x"}, "takes no endpoint"),
    ],
)
def test_wrong_options_are_refused(options, problem):
    with pytest.raises(SMDebugValueError, match=problem.replace("+", r"\+")):
        parse_actions({"name": "zoomin", **options}, "R")


def test_rules_of_a_run_may_have_the_action():
    entry = {"rule": "AllZero", "actions": [{"name": "zoom_in", "steps": 20, "tensor_regex": "fc"}]}
    (rule,) = parse_rules({"rules": [entry]}, file="rules.json")
    assert rule.actions == ({"name": "zoomin", "steps": 20, "tensor_regex": "fc"},)
    for wrong in ({"steps": 0}, {"step": 3}):
        with pytest.raises(SMDebugError):
            parse_rules([{"rule": "AllZero", "actions": [{"name": "zoomin", **wrong}]}], file="f")
