"""A SageMaker training job's debugger configuration, converted to the files that this library reads.

The job is the answer of `describe_training_job`, or the request of `create_training_job`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from smdebug.exceptions import SMDebugValueError
from smdebug.service.aws import Clients, aws_errors, default_clients
from smdebug.service.checks.job_checks import check_training_job
from smdebug.service.rules_file import RULES_FILE, in_our_form, read_rules

HOOK_FILE = "debughookconfig.json"
TENSORBOARD_FILE = "tensorboardoutputconfig.json"
_LARGEST = 4 << 20
_HOOK, _RULES = "DebugHookConfig", "DebugRuleConfigurations"
_TENSORBOARD = "TensorBoardOutputConfig"
_PROFILER = ("ProfilerConfig", "ProfilerRuleConfigurations")


class ImportedJob(NamedTuple):
    """The equivalent files, by name, and notes on what has no equivalent."""

    job: str
    files: Mapping[str, str]
    rules: tuple[str, ...]  # names of the rules
    notes: tuple[str, ...]


def describe_training_job(name: str, clients: Clients | None = None) -> Mapping[str, Any]:
    """Return SageMaker's description of a job in this account and region."""
    client = (clients or default_clients())("sagemaker")
    place = f"The training job {name} in {client.meta.region_name}"
    with aws_errors(place, "sagemaker:DescribeTrainingJob"):
        job: Mapping[str, Any] = client.describe_training_job(TrainingJobName=name)
    return job


def read_training_job(data: bytes, *, file: str) -> Mapping[str, Any]:
    """Return the job in a JSON file."""
    if len(data) > _LARGEST:
        raise SMDebugValueError(f"{file} has {len(data)} bytes: not a training job")
    try:
        job = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise SMDebugValueError(f"{file} is not JSON: {error}") from None
    if not isinstance(job, dict) or not {_HOOK, _RULES, _TENSORBOARD} & set(job):
        raise SMDebugValueError(
            f"{file} contains no debugger configuration: it has no {_HOOK} and no {_RULES}. "
            "Create it with: aws sagemaker describe-training-job --training-job-name NAME > job.json"
        )
    return job


def import_training_job(job: Mapping[str, Any], *, name: str = "the job") -> ImportedJob:
    """Convert the job's configuration to our files.

    `debughookconfig.json` is the hook's, named by `SMDEBUG_CONFIG_FILE_PATH`; its `LocalPath` is the bucket,
    to which the hook now writes itself. `rules.json` goes beside the run. Raise `SMDebugValueError` if the
    hook or the rules would refuse the configuration.
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
        names = tuple(rule.name for rule in read.rules)
        notes += read.notes
        notes += map(str, read.problems)
        files[RULES_FILE] = _text(in_our_form(read.rules))
    board = job.get(_TENSORBOARD)
    if board is not None:
        files[TENSORBOARD_FILE] = _text(_tensorboard_file(board))
    if any(job.get(key) for key in _PROFILER):
        notes.append("The profiler's configuration is omitted: there is no profiler here.")
    if not files:
        notes.append(f"{job_name} has no debugger configuration: nothing to import.")
    return ImportedJob(job_name, files, names, tuple(notes))


def _hook_file(hook: Mapping[str, Any], job: str) -> dict[str, Any]:
    content = {key: value for key, value in hook.items() if key not in ("S3OutputPath", "LocalPath")}
    place = hook.get("S3OutputPath")
    if place:
        content["LocalPath"] = f"{place.rstrip('/')}/{job}/debug-output"
    elif hook.get("LocalPath"):
        content["LocalPath"] = hook["LocalPath"]
    return content


def _tensorboard_file(board: Mapping[str, Any]) -> dict[str, Any]:
    return {"LocalPath": board.get("S3OutputPath") or board.get("LocalPath")}


def _text(content: Mapping[str, Any]) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"
