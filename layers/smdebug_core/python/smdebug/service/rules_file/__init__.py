"""`rules.json`: which rules watch a run, in any of three forms.

    {"version": 1, "rules": [{"name": "fc", "rule": "VanishingGradient", "parameters": {"threshold": 1e-6}}]}
    {"DebugRuleConfigurations": [...]}    as the SageMaker SDK's Rule.sagemaker and Rule.custom write them
    {"rules_specification": [...]}        as tornasole had them

A bare list works too. The default rules judge a run beside these, unless the file has
`"default_rules": false`. The file comes from outside: everything in it is bounded and checked, and nothing
in it is executed.
"""

from smdebug.service.rules_file.entry import MAX_NAME, MAX_VALUE
from smdebug.service.rules_file.fields import (
    EVERY_STEP,
    LOGGING_LEVELS,
    MAX_OTHER_TRIALS,
    MAX_PARAMETERS,
)
from smdebug.service.rules_file.parsing import (
    MAX_BYTES,
    MAX_RULES,
    VERSION,
    RulesFile,
    in_our_form,
    parse_rules,
    read_rules,
    valid_rules,
)
from smdebug.service.rules_file.rule_actions import ACTIONS, MAX_ACTIONS

RULES_FILE = "rules.json"

__all__ = [
    "ACTIONS",
    "EVERY_STEP",
    "LOGGING_LEVELS",
    "MAX_ACTIONS",
    "MAX_BYTES",
    "MAX_NAME",
    "MAX_OTHER_TRIALS",
    "MAX_PARAMETERS",
    "MAX_RULES",
    "MAX_VALUE",
    "RULES_FILE",
    "VERSION",
    "RulesFile",
    "in_our_form",
    "parse_rules",
    "read_rules",
    "valid_rules",
]
