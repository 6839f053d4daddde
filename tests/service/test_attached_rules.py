"""Changing which rules watch a run."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from smdebug.exceptions import (
    RulesFileError,
    RuleUnknown,
)
from smdebug.service.records import RuleConfiguration
from smdebug.service.rules_file import parse_rules
from smdebug.storage.memory import MemoryStorage
from tests.service.stocked import LOSS, OWN, RUN, VANISHING


def names_in(storage: MemoryStorage) -> list[str]:
    return [rule.name for rule in parse_rules(storage.read("rules.json"), file="rules.json")]


def test_attaching_to_a_run_without_a_file_keeps_the_stacks_rules(stock):
    stock.begin()
    written = stock.run().attach("ExplodingTensor")
    assert [rule.name for rule in written] == ["fc", "loss", "ExplodingTensor"]
    assert names_in(stock.open(RUN)) == ["fc", "loss", "ExplodingTensor"]
    assert written[:2] == (VANISHING, LOSS)


def test_attaching_keeps_the_rules_in_the_file_whatever_its_form(stock):
    stock.begin()
    sagemaker = {
        "DebugRuleConfigurations": [
            {
                "RuleConfigurationName": "vg",
                "RuleEvaluatorImage": "DEFAULT_RULE_EVALUATOR_IMAGE",
                "RuleParameters": {
                    "rule_to_invoke": "VanishingGradient",
                    "threshold": "1e-5",
                    "start-step": "5",
                    "action_json": '[{\\"name\\": \\"stoptraining\\"}]',
                },
            }
        ]
    }
    data = json.dumps(sagemaker).encode()
    stock.open(RUN).write("rules.json", data)
    (before,) = parse_rules(data, file="rules.json")
    after = stock.run().attach({"name": "mine", "rule": "AllZero", "parameters": {"threshold": 3}})
    assert after[0].id == before.id  # so the rule continues unaffected
    assert [rule.name for rule in after] == ["vg", "loss", "mine"]  # beside a default rule
    assert after[-1] == RuleConfiguration("mine", "AllZero", {"threshold": "3"})
    assert stock.run().rules() == after
    assert json.loads(stock.open(RUN).read("rules.json"))["default_rules"] is False


def test_an_attached_rule_replaces_another_of_the_same_name(stock):
    stock.begin()
    stricter = replace(VANISHING, parameters={"threshold": "1e-3"})
    written = stock.run().attach([stricter, LOSS])
    assert sorted(rule.id for rule in written) == sorted([stricter.id, LOSS.id])


def test_a_whole_file_of_rules_can_be_attached(stock):
    stock.begin()
    whole = {"version": 1, "rules": [{"name": "a", "rule": "AllZero"}, "ExplodingTensor"]}
    written = stock.run().attach(whole)
    assert [rule.name for rule in written] == ["fc", "loss", "a", "ExplodingTensor"]


def test_a_file_with_an_invalid_entry_is_not_overwritten(stock):
    stock.begin()
    broken = b'{"rules": [{"rule": "AllZero"}, {"name": "x"}]}'
    stock.open(RUN).write("rules.json", broken)
    with pytest.raises(RulesFileError, match=r"s3://my-bucket/teams/resnet/rules\.json"):
        stock.run().attach("ExplodingTensor")
    assert stock.open(RUN).read("rules.json") == broken


@pytest.mark.parametrize("nonsense", [{"rule": 5}, {"name": "a"}, [["x"]], {"rules": [{"rul": "A"}]}])
def test_invalid_rules_are_refused_before_anything_is_written(stock, nonsense):
    stock.begin()
    with pytest.raises(RulesFileError):
        stock.run().attach(nonsense)
    assert not stock.open(RUN).exists("rules.json")


def test_detaching_removes_a_rule_and_keeps_the_others(stock):
    stock.begin(wanted=(VANISHING, LOSS, OWN))
    assert stock.run().detach("loss") == (VANISHING, OWN)
    assert names_in(stock.open(RUN)) == ["fc", "mine"]
    assert stock.run().detach(["mine", "fc"]) == ()
    assert names_in(stock.open(RUN)) == []


def test_detaching_an_unknown_rule_is_refused(stock):
    stock.begin()
    with pytest.raises(RuleUnknown, match=r"Did you mean loss\?"):
        stock.run().detach(["fc", "los"])
    assert not stock.open(RUN).exists("rules.json")


def test_all_rules_of_a_run_can_be_replaced(stock):
    stock.begin()
    assert stock.run().set_rules([OWN]) == (OWN,)
    assert stock.run().rules() == (OWN,)
