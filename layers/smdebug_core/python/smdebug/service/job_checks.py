"""Is a training job's debugger configuration one that the hook and the rules will take?

SageMaker has texts for values, and nothing else. What is of another kind, or says what no hook understands,
is told by its place in the JSON, before a file is written that would be refused when the training starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from smdebug.config.json_config import check_hook_config
from smdebug.exceptions import SMDebugValueError

_TEXT: Final = "a text"
_NUMBER: Final = "a number"
_TEXTS: Final = {"*": _TEXT}  # whatever the keys are

_CONFIGURATION: Final[Mapping[str, Any]] = {
    "TrainingJobName": _TEXT,
    "DebugHookConfig": {
        "S3OutputPath": _TEXT,
        "LocalPath": _TEXT,
        "HookParameters": _TEXTS,
        "CollectionConfigurations": [{"CollectionName": _TEXT, "CollectionParameters": _TEXTS}],
    },
    "DebugRuleConfigurations": [
        {
            "RuleConfigurationName": _TEXT,
            "RuleEvaluatorImage": _TEXT,
            "RuleParameters": _TEXTS,
            "InstanceType": _TEXT,
            "VolumeSizeInGB": _NUMBER,
            "S3OutputPath": _TEXT,
            "LocalPath": _TEXT,
        }
    ],
    "TensorBoardOutputConfig": {"S3OutputPath": _TEXT, "LocalPath": _TEXT},
}


def check_training_job(job: Mapping[str, Any]) -> None:
    """`SMDebugValueError` for the first thing that is wrong: where it is, what it is, what it should be."""
    _check_kinds(job, _CONFIGURATION, "")
    hook = job.get("DebugHookConfig") or {}
    for key, value in (hook.get("HookParameters") or {}).items():
        _check(f"DebugHookConfig.HookParameters.{key}", {"HookParameters": {key: value}})
    for number, one in enumerate(hook.get("CollectionConfigurations") or []):
        place = f"DebugHookConfig.CollectionConfigurations[{number}]"
        name = (one or {}).get("CollectionName")
        if not name:
            raise SMDebugValueError(f"{place}.CollectionName is not there: it has to be a text")
        for key, value in (one.get("CollectionParameters") or {}).items():
            alone = {"CollectionName": name, "CollectionParameters": {key: value}}
            _check(f"{place}.CollectionParameters.{key}", {"CollectionConfigurations": [alone]})


def _check(place: str, described: Mapping[str, Any]) -> None:
    """Whether a hook takes one parameter, by itself, so that the one that is wrong can be named."""
    try:
        check_hook_config(described)
    except SMDebugValueError as error:
        raise SMDebugValueError(f"{place}: {error}") from None


def _check_kinds(told: Any, wanted: Any, place: str) -> None:
    """What is null says nothing, and keys that are not known here are nobody's business."""
    if told is None:
        return
    if isinstance(wanted, str):
        if _kind(told) != wanted:
            raise SMDebugValueError(f"{place} has to be {wanted}, not {_shown(told)}")
    elif isinstance(wanted, list):
        if not isinstance(told, list):
            raise SMDebugValueError(f"{place} has to be a list, not {_shown(told)}")
        for number, one in enumerate(told):
            _check_kinds(one, wanted[0], f"{place}[{number}]")
    elif not isinstance(told, Mapping):
        raise SMDebugValueError(f"{place} has to be an object, not {_shown(told)}")
    else:
        for key, one in told.items():
            inner = wanted.get(key, wanted.get("*"))
            if inner is not None:
                _check_kinds(one, inner, f"{place}.{key}" if place else str(key))


def _kind(told: Any) -> str:
    if isinstance(told, str):
        return _TEXT
    if isinstance(told, bool):
        return "true or false"
    if isinstance(told, int | float):
        return _NUMBER
    return "an object" if isinstance(told, Mapping) else "a list"


def _shown(told: Any) -> str:
    text = repr(told)
    return f"{_kind(told)}: {text if len(text) <= 60 else text[:59] + '…'}"
