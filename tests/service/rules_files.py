"""rules.json in its three forms."""

import json

import pytest

from smdebug.exceptions import RulesFileError
from smdebug.service.rules_file import (
    parse_rules,
)

FILE = "s3://bucket/run/rules.json"


def parse(content):
    return parse_rules(json.dumps(content).encode(), file=FILE)


def only(content):
    (rule,) = parse(content)
    return rule


def problem_of(content):
    with pytest.raises(RulesFileError) as caught:
        parse(content)
    return str(caught.value)


def ours(**entry):
    return {"version": 1, "rules": [{"name": "mine", "rule": "VanishingGradient", **entry}]}


def sagemaker(**parameters):
    return {
        "DebugRuleConfigurations": [
            {
                "RuleConfigurationName": "mine",
                "RuleEvaluatorImage": "DEFAULT_RULE_EVALUATOR_IMAGE",
                "RuleParameters": {"rule_to_invoke": "VanishingGradient", **parameters},
            }
        ]
    }


def tornasole(**runtime):
    return {
        "rules_specification": [
            {"RuleName": "VanishingGradient", "RuntimeConfigurations": runtime},
        ]
    }
