"""Checks that the hook and the rules will accept a training job's debugger configuration.

In SageMaker's API all values are strings. Values of other types, and ones that no hook understands, are
reported by their place in the JSON before a file is written that would be refused when the training starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from smdebug.config.json_config import check_hook_config
from smdebug.exceptions import SMDebugValueError
from smdebug.service.rules_file.wording import kind_of

_STRING: Final = "a string"
_NUMBER: Final = "a number"
_STRINGS: Final = {"*": _STRING}  # whatever the keys are

_CONFIGURATION: Final[Mapping[str, Any]] = {
    "TrainingJobName": _STRING,
    "DebugHookConfig": {
        "S3OutputPath": _STRING,
        "LocalPath": _STRING,
        "HookParameters": _STRINGS,
        "CollectionConfigurations": [{"CollectionName": _STRING, "CollectionParameters": _STRINGS}],
    },
    "DebugRuleConfigurations": [
        {
            "RuleConfigurationName": _STRING,
            "RuleEvaluatorImage": _STRING,
            "RuleParameters": _STRINGS,
            "InstanceType": _STRING,
            "VolumeSizeInGB": _NUMBER,
            "S3OutputPath": _STRING,
            "LocalPath": _STRING,
        }
    ],
    "TensorBoardOutputConfig": {"S3OutputPath": _STRING, "LocalPath": _STRING},
}


def check_training_job(job: Mapping[str, Any]) -> None:
    """Raise `SMDebugValueError` for the first invalid value: its place, its type, the expected type."""
    _check_types(job, _CONFIGURATION, "")
    hook = job.get("DebugHookConfig") or {}
    for key, value in (hook.get("HookParameters") or {}).items():
        _check(f"DebugHookConfig.HookParameters.{key}", {"HookParameters": {key: value}})
    for number, collection in enumerate(hook.get("CollectionConfigurations") or []):
        place = f"DebugHookConfig.CollectionConfigurations[{number}]"
        name = (collection or {}).get("CollectionName")
        if not name:
            raise SMDebugValueError(f"{place}.CollectionName is missing: it must be a string")
        for key, value in (collection.get("CollectionParameters") or {}).items():
            alone = {"CollectionName": name, "CollectionParameters": {key: value}}
            _check(f"{place}.CollectionParameters.{key}", {"CollectionConfigurations": [alone]})


def _check(place: str, config: Mapping[str, Any]) -> None:
    """Check one parameter separately, so that the error names its place."""
    try:
        check_hook_config(config)
    except SMDebugValueError as error:
        raise SMDebugValueError(f"{place}: {error}") from None


def _check_types(value: Any, expected: Any, place: str) -> None:
    """Check `value` and what it contains; null and unknown keys are accepted."""
    if value is None:
        return
    if isinstance(expected, str):
        if kind_of(value) != expected:
            raise SMDebugValueError(f"{place} must be {expected}, not {_described(value)}")
    elif isinstance(expected, list):
        if not isinstance(value, list):
            raise SMDebugValueError(f"{place} must be a list, not {_described(value)}")
        for number, item in enumerate(value):
            _check_types(item, expected[0], f"{place}[{number}]")
    elif not isinstance(value, Mapping):
        raise SMDebugValueError(f"{place} must be an object, not {_described(value)}")
    else:
        for key, item in value.items():
            inner = expected.get(key, expected.get("*"))
            if inner is not None:
                _check_types(item, inner, f"{place}.{key}" if place else str(key))


def _described(value: Any) -> str:
    text = repr(value)
    return f"{kind_of(value)}: {text if len(text) <= 60 else text[:59] + '…'}"
