"""The two forms written for rule evaluation jobs: the SageMaker SDK's, and tornasole's before it."""

from __future__ import annotations

from typing import Any

from smdebug.service.records import RuleConfiguration
from smdebug.service.rules_file import fields
from smdebug.service.rules_file.entry import Entry
from smdebug.service.rules_file.rule_actions import actions
from smdebug.service.rules_file.wording import suggestion

# key -> why it has no effect here; "" for keys that do, or that say nothing
_NO_INSTANCES = "rules are evaluated by functions, not on instances"
_SAGEMAKER_KEYS = {
    "RuleConfigurationName": "",
    "RuleEvaluatorImage": "",  # marks a rule of SageMaker's, nothing else
    "RuleParameters": "",
    "InstanceType": _NO_INSTANCES,
    "VolumeSizeInGB": _NO_INSTANCES,
    "S3OutputPath": "a rule's results are beside the run and in its events",
    "LocalPath": "rules are evaluated by functions, which have no folder",
}
_TORNASOLE_KEYS = {
    "RuleName": "",
    "SourceS3Uri": "",
    "RuntimeConfigurations": "",
    "InstanceType": _NO_INSTANCES,
    "VolumeSizeInGB": _NO_INSTANCES,
}


def read_sagemaker_entry(entry: Entry, content: Any) -> RuleConfiguration:
    """The rule in an entry of `DebugRuleConfigurations`."""
    content = entry.object(content, "a rule configuration")
    entry.ignore_unused(content, _SAGEMAKER_KEYS)
    parameters = entry.object(content.get("RuleParameters") or {}, "RuleParameters")
    rule, source = parameters.pop("rule_to_invoke", None), parameters.pop("source_s3_uri", None)
    if rule is None:
        raise entry.error(
            "RuleParameters lacks 'rule_to_invoke': the class of the rule."
            + suggestion(list(parameters), ("rule_to_invoke",))
        )
    rule = fields.rule_class(entry, rule)
    if content.get("RuleConfigurationName") is None:
        raise entry.error("'RuleConfigurationName' is missing")
    name = fields.rule_name(entry, content["RuleConfigurationName"])
    return _with_runtime(entry, name, rule, source, parameters)


def read_tornasole_entry(entry: Entry, content: Any) -> RuleConfiguration:
    """The rule in an entry of `rules_specification`."""
    content = entry.object(content, "a rule specification")
    entry.ignore_unused(content, _TORNASOLE_KEYS)
    if content.get("RuleName") is None:
        raise entry.error("'RuleName' is missing: the class of the rule")
    rule = fields.rule_class(entry, content["RuleName"])
    runtime = content.get("RuntimeConfigurations") or {}
    parameters = entry.object(runtime, "RuntimeConfigurations")
    return _with_runtime(entry, rule, rule, content.get("SourceS3Uri"), parameters)


def _with_runtime(
    entry: Entry, name: str, rule: str, source: Any, parameters: dict[str, Any]
) -> RuleConfiguration:
    """The configuration of a rule among whose parameters are the options of its evaluation.

    Those with hyphens cannot be the rule's own parameters. `start_step` can, and remains one.
    """
    requested = parameters.pop("action_json", None)
    others = fields.take_other_trials(parameters)
    start = fields.step_number(entry, "start-step", parameters.pop("start-step", None))
    end = fields.step_number(entry, "end-step", parameters.pop("end-step", None))
    level = fields.logging_level(entry, parameters.pop("logging-level", None))
    return RuleConfiguration(
        name=name,
        rule=rule,
        parameters=fields.parameters(entry, parameters),
        source=fields.source(entry, source),
        other_trials=fields.other_trials(entry, others),
        start_step=start or 0,
        end_step=end,
        actions=actions(entry, requested),
        logging_level=level,
    )
