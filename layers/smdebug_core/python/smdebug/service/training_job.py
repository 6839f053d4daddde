"""A SageMaker training job's debugger configuration, as the files that this library reads.

The job is what `describe_training_job` answers, or what was given to `create_training_job`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from smdebug.exceptions import SMDebugValueError
from smdebug.service.aws import Clients, default_clients, speaking_of
from smdebug.service.job_checks import check_training_job
from smdebug.service.rules_file import RULES_FILE, in_our_form, read_rules

HOOK_FILE = "debughookconfig.json"
TENSORBOARD_FILE = "tensorboardoutputconfig.json"
_LARGEST = 4 << 20
_HOOK, _RULES = "DebugHookConfig", "DebugRuleConfigurations"
_TENSORBOARD = "TensorBoardOutputConfig"
_PROFILER = ("ProfilerConfig", "ProfilerRuleConfigurations")


class ImportedJob(NamedTuple):
    """The files that say the same, by name, and what could not be said."""

    job: str
    files: Mapping[str, str]
    rules: tuple[str, ...]  # their names
    notes: tuple[str, ...]


def describe_training_job(name: str, clients: Clients | None = None) -> Mapping[str, Any]:
    """What SageMaker says of a job of this account and region."""
    client = (clients or default_clients())("sagemaker")
    place = f"The training job {name} in {client.meta.region_name}"
    with speaking_of(place, "sagemaker:DescribeTrainingJob", missing="there is none of that name"):
        told: Mapping[str, Any] = client.describe_training_job(TrainingJobName=name)
    return told


def read_training_job(data: bytes, *, file: str) -> Mapping[str, Any]:
    """The job in a JSON file."""
    if len(data) > _LARGEST:
        raise SMDebugValueError(f"{file} has {len(data)} bytes: it is no training job")
    try:
        told = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise SMDebugValueError(f"{file} is not JSON: {error}") from None
    if not isinstance(told, dict) or not {_HOOK, _RULES, _TENSORBOARD} & set(told):
        raise SMDebugValueError(
            f"{file} holds no debugger configuration: it has no {_HOOK} and no {_RULES}. "
            "Write it by: aws sagemaker describe-training-job --training-job-name NAME > job.json"
        )
    return told


def import_training_job(job: Mapping[str, Any], *, name: str = "the job") -> ImportedJob:
    """The job's configuration in our files.

    `debughookconfig.json` is the hook's: `SMDEBUG_CONFIG_FILE_PATH` names it, and its `LocalPath` is the
    bucket, to which the hook writes by itself now. `rules.json` goes beside the run. `SMDebugValueError` if
    the hook or the rules would not take what the job says.
    """
    check_training_job(job)
    job_name = str(job.get("TrainingJobName") or name)
    files: dict[str, str] = {}
    notes: list[str] = []
    hook = job.get(_HOOK)
    if hook is not None:
        files[HOOK_FILE] = _text(_hook_file(hook, job_name))
    names: tuple[str, ...] = ()
    rules = job.get(_RULES)
    if rules:
        read = read_rules({_RULES: rules}, file=job_name)
        names = tuple(one.name for one in read.rules)
        notes += read.notes
        notes += map(str, read.problems)
        files[RULES_FILE] = _text(in_our_form(read.rules))
    board = job.get(_TENSORBOARD)
    if board is not None:
        files[TENSORBOARD_FILE] = _text(_tensorboard_file(board))
    if any(job.get(key) for key in _PROFILER):
        notes.append("The profiler's configuration is left out: there is no profiler here.")
    if not files:
        notes.append(f"{job_name} has no debugger configuration: there is nothing to import.")
    return ImportedJob(job_name, files, names, tuple(notes))


def _hook_file(hook: Mapping[str, Any], job: str) -> dict[str, Any]:
    told = {key: value for key, value in hook.items() if key not in ("S3OutputPath", "LocalPath")}
    place = hook.get("S3OutputPath")
    if place:
        told["LocalPath"] = f"{place.rstrip('/')}/{job}/debug-output"
    elif hook.get("LocalPath"):
        told["LocalPath"] = hook["LocalPath"]
    return told


def _tensorboard_file(board: Mapping[str, Any]) -> dict[str, Any]:
    return {"LocalPath": board.get("S3OutputPath") or board.get("LocalPath")}


def _text(told: Mapping[str, Any]) -> str:
    return json.dumps(told, indent=2, ensure_ascii=False) + "\n"
