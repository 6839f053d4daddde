"""Objects of SageMaker's SDK, read off their calls into the form of a training job's description.

The form is what `create_training_job` takes, so that `smdebug import-sagemaker` and this convert alike.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping, Sequence
from typing import Any

from smdebug.config.keys import CollectionKeys
from smdebug.exceptions import SMDebugValueError
from smdebug.migrating.names import Names
from smdebug.migrating.values import Unknown, Values

HOOK, RULES = "DebugHookConfig", "DebugRuleConfigurations"
TENSORBOARD, PROFILER = "TensorBoardOutputConfig", "ProfilerConfig"
_COLLECTIONS = "CollectionConfigurations"
_PROFILER_RULE = "ProfilerRule"
_KEYWORDS = {
    "debugger_hook_config": HOOK,
    "rules": RULES,
    "rules_specification": RULES,
    "tensorboard_output_config": TENSORBOARD,
    "profiler_config": PROFILER,
}
_JOB_KEYS = (HOOK, RULES, TENSORBOARD, PROFILER, "ProfilerRuleConfigurations")
_RULE_PARAMETERS = {
    "sagemaker": (
        "base_config",
        "name",
        "container_local_output_path",
        "s3_output_path",
        "other_trials_s3_input_paths",
        "rule_parameters",
        "collections_to_save",
        "actions",
    ),
    "custom": (
        "name",
        "image_uri",
        "instance_type",
        "volume_size_in_gb",
        "source",
        "rule_to_invoke",
        "container_local_output_path",
        "s3_output_path",
        "other_trials_s3_input_paths",
        "rule_parameters",
        "collections_to_save",
        "actions",
    ),
}
_HOOK_PARAMETERS = (
    "s3_output_path",
    "container_local_output_path",
    "hook_parameters",
    "collection_configs",
)
# Other collections need a regex of their own.
_EVERY_HOOK_HAS = {value for key, value in vars(CollectionKeys).items() if key.isupper()}
# Capitals that the names of SageMaker's rules keep.
_WORDS = {"nlp": "NLP", "relu": "ReLU", "xgboost": "XGBoost", "xgb": "XGBoost"}


class Sdk:
    """Reads the calls of one file that construct SageMaker's debugger objects."""

    def __init__(self, names: Names):
        self._names = names
        self._values = Values(names, self._build)
        self.read_calls: set[int] = set()

    def job(self, call: ast.Call) -> dict[str, Any] | None:
        """Return the debugger's part of the job that this call describes, or None if it has none.

        The call is an estimator's, or boto3's `create_training_job`. Unknown parts are `Unknown`.
        """
        given: dict[str, Any] = {}
        for keyword in call.keywords:
            value = keyword.value
            if keyword.arg is None:
                content = self._values.read(value)
                if isinstance(content, dict):
                    given.update(content)
            elif keyword.arg in _KEYWORDS or keyword.arg in _JOB_KEYS:
                given[keyword.arg] = self._values.read(value)
        job: dict[str, Any] = {}
        for key, content in given.items():
            if key in _KEYWORDS:
                job[_KEYWORDS[key]] = content
            elif key in _JOB_KEYS:
                job[key] = content
        return self.completed(job) if job else None

    @staticmethod
    def completed(job: dict[str, Any]) -> dict[str, Any]:
        """Return the job as SageMaker would get it: the hook saves what the rules read."""
        return _with_collections(job)

    def has_dynamic_arguments(self, call: ast.Call) -> bool:
        """Return whether the call takes `**arguments` that cannot be read."""
        starred = [keyword.value for keyword in call.keywords if keyword.arg is None]
        return any(isinstance(self._values.read(value), Unknown) for value in starred)

    def is_estimator(self, call: ast.Call) -> bool:
        """Return whether an imported class of SageMaker's estimators is called."""
        address = self._names.address(call.func) or ""
        name = address.rpartition(".")[2]
        in_sdk = address.startswith("sagemaker.") and not address.startswith("sagemaker.debugger")
        return in_sdk and name[:1].isupper()

    def part(self, call: ast.Call) -> tuple[str, Any] | None:
        """Return the key in a job and the content of what this call constructs, or None."""
        address = self._names.address(call.func) or ""
        if not address.startswith(("sagemaker.debugger.", "smdebug_rulesconfig.")):
            return None
        name = address.partition(".debugger.")[2]
        if name == "DebuggerHookConfig":
            return HOOK, self._hook(call)
        if name == "TensorBoardOutputConfig":
            given = self._arguments_of(call, ("s3_output_path", "container_local_output_path"))
            return TENSORBOARD, _output(given)
        if name.startswith(("ProfilerConfig", "FrameworkProfile", "ProfilerRule.")):
            return PROFILER, {}
        if name in ("Rule.sagemaker", "Rule.custom", "Rules.sagemaker", "Rules.custom"):
            return RULES, self._rule(call, name.partition(".")[2])
        return None

    def _build(self, call: ast.Call) -> Any:
        """Return what a call of the SDK constructs, in the form of the job; None for other calls."""
        found = self.part(call)
        if found is not None:
            self.read_calls.add(id(call))
            return {_PROFILER_RULE: True} if found[0] == PROFILER else found[1]
        address = self._names.address(call.func) or ""
        owner, _, name = address.rpartition(".")
        if name == "CollectionConfig":
            given = self._arguments_of(call, ("name", "parameters"))
            return _without_none(
                {
                    "CollectionName": given.get("name"),
                    "CollectionParameters": given.get("parameters"),
                }
            )
        if owner.endswith(("rule_configs", "smdebug_rulesconfig")):
            return self._rule_config(call, name)
        return None

    def _rule_config(self, call: ast.Call, name: str) -> Any:
        """Return the name of a built-in rule, or an action."""
        arguments = [self._values.read(argument) for argument in call.args]
        if name == "ActionList":
            return arguments[0] if len(arguments) == 1 and isinstance(arguments[0], list) else arguments
        if name in ("StopTraining", "Email", "SMS"):
            keyword = "training_job_prefix" if name == "StopTraining" else "endpoint"
            given = self._arguments_of(call, (keyword,))
            return {"name": name.lower(), **_without_none(given)}
        return {"rule_to_invoke": built_in_rule(name)}

    def _hook(self, call: ast.Call) -> dict[str, Any]:
        given = self._arguments_of(call, _HOOK_PARAMETERS)
        return _without_none(
            {
                **_output(given),
                "HookParameters": given.get("hook_parameters"),
                _COLLECTIONS: given.get("collection_configs"),
            }
        )

    def _rule(self, call: ast.Call, kind: str) -> Any:
        """Return the entry of `DebugRuleConfigurations`, and the collections that the rule wants."""
        given = self._arguments_of(call, _RULE_PARAMETERS[kind])
        parameters = given.get("rule_parameters") or {}
        if not isinstance(parameters, Mapping):
            return parameters
        base = given.get("base_config") or {}
        if isinstance(base, Unknown):
            return base
        rule = given.get("rule_to_invoke") or base.get("rule_to_invoke")
        actions = given.get("actions")
        other = given.get("other_trials_s3_input_paths")
        content = {
            "rule_to_invoke": rule,
            "source_s3_uri": _uploaded(given.get("source"), call.lineno),
            **parameters,
            "other_trials": json.dumps(other) if isinstance(other, list) and _is_known(other) else None,
            "action_json": json.dumps([actions] if isinstance(actions, dict) else actions)
            if actions and _is_known(actions)
            else actions,
        }
        return _without_none(
            {
                "RuleConfigurationName": given.get("name") or rule,
                "RuleParameters": _without_none(content),
                "InstanceType": given.get("instance_type"),
                "VolumeSizeInGB": given.get("volume_size_in_gb"),
                _COLLECTIONS: given.get("collections_to_save") or _collections_of(rule),
            }
        )

    def _arguments_of(self, call: ast.Call, parameters: Sequence[str]) -> dict[str, Any]:
        """Return the arguments of a call by name."""
        given = {
            name: self._values.read(argument) for name, argument in zip(parameters, call.args, strict=False)
        }
        for keyword in call.keywords:
            value = self._values.read(keyword.value)
            if keyword.arg is not None:
                given[keyword.arg] = value
            elif isinstance(value, Mapping):
                given.update(value)
        return given


def _uploaded(source: Any, line: int) -> Any:
    """Return the address of a rule's file; the SDK uploads a local file when the estimator is fitted."""
    if isinstance(source, str) and "://" not in source:
        return Unknown(source, line, "is a local file that has to be uploaded")
    return source


def built_in_rule(function: str) -> str:
    """Return the class that `rule_configs.<function>()` names: `vanishing_gradient`, VanishingGradient."""
    spelled = "".join(_WORDS.get(word, word.capitalize()) for word in function.split("_"))
    entry = _catalog_entry(spelled)
    return entry.name if entry is not None else spelled


def _catalog_entry(rule: Any) -> Any:
    from smdebug.rules.generic import find_rule

    try:
        return find_rule(rule) if isinstance(rule, str) else None
    except SMDebugValueError:
        return None


def _collections_of(rule: Any) -> list[dict[str, Any]]:
    """Return the collections that a built-in rule reads, as the SDK adds them to the hook's."""
    entry = _catalog_entry(rule)
    names = entry.collections if entry is not None else ()
    return [{"CollectionName": name} for name in names if name in _EVERY_HOOK_HAS]


def _output(given: Mapping[str, Any]) -> dict[str, Any]:
    return _without_none(
        {
            "S3OutputPath": given.get("s3_output_path"),
            "LocalPath": given.get("container_local_output_path"),
        }
    )


def _with_collections(job: dict[str, Any]) -> dict[str, Any]:
    """Move what rules want saved to the hook, and the profiler's rules out of the debugger's."""
    rules = job.get(RULES)
    if not isinstance(rules, list):
        return job
    if any(isinstance(rule, Mapping) and _PROFILER_RULE in rule for rule in rules):
        job[PROFILER] = {"rules": True}
        rules = [r for r in rules if not (isinstance(r, Mapping) and _PROFILER_RULE in r)]
    rules = [_from_tornasole(rule) for rule in rules]
    wanted: list[Any] = []
    for rule in rules:
        if isinstance(rule, dict):
            collections = rule.pop(_COLLECTIONS, [])
            wanted += collections if isinstance(collections, list) else [collections]
    job[RULES] = rules
    hook = job.get(HOOK)
    if hook is False or isinstance(hook, Unknown):
        return job
    hook = dict(hook) if isinstance(hook, Mapping) else {}
    present = hook.get(_COLLECTIONS) or []
    if isinstance(present, list):
        named = {_name(c) for c in present}
        extra = {_name(c): c for c in wanted if _name(c) not in named}
        if present or extra:
            hook[_COLLECTIONS] = [*present, *extra.values()]
    job[HOOK] = hook
    return job


def _from_tornasole(rule: Any) -> Any:
    """Return an entry of tornasole's `rules_specification` in SageMaker's form."""
    if not isinstance(rule, Mapping) or "RuleName" not in rule:
        return rule
    parameters = rule.get("RuntimeConfigurations") or {}
    return {
        "RuleConfigurationName": rule["RuleName"],
        "RuleParameters": _without_none(
            {
                "rule_to_invoke": rule["RuleName"],
                "source_s3_uri": rule.get("SourceS3Uri"),
                **(parameters if isinstance(parameters, Mapping) else {}),
            }
        ),
    }


def _name(collection: Any) -> Any:
    return collection.get("CollectionName") if isinstance(collection, Mapping) else str(collection)


def _is_known(value: Any) -> bool:
    if isinstance(value, Unknown):
        return False
    if isinstance(value, Mapping):
        return all(map(_is_known, value.values()))
    return all(map(_is_known, value)) if isinstance(value, list) else True


def _without_none(content: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in content.items() if value is not None}
