"""For code written against smdebug: small helpers that other people's scripts and tests import.

Nothing in this library uses them.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import tempfile
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from smdebug.config.constants import (
    CONFIG_FILE_PATH_ENV_STR,
    DEFAULT_RESOURCE_CONFIG_FILE,
    DEFAULT_SAGEMAKER_OUTDIR,
    TENSORBOARD_CONFIG_FILE_PATH_ENV_STR,
    TRAINING_JOB_NAME_ENV_VAR,
)
from smdebug.config.json_config import get_node_id_from_resource_config
from smdebug.config.patterns import matches_any
from smdebug.exceptions import IndexReaderException, SMDebugRuntimeError, SMDebugValueError
from smdebug.files import names
from smdebug.files.events import as_saved_array
from smdebug.saving.claim import Claim, Outcome
from smdebug.saving.error_agent import ErrorHandlingAgent
from smdebug.saving.singleton import current_hook, del_hook
from smdebug.storage import open_storage

__all__ = [
    "FRAMEWORK",
    "SagemakerSimulator",
    "ScriptSimulator",
    "check_smdataparallel_env",
    "check_smmodelparallel_training",
    "deserialize_tf_device",
    "ensure_dir",
    "error_handling_agent",
    "flatten",
    "get_distributed_worker",
    "get_immediate_subdirectories",
    "get_node_id",
    "get_path_to_collections",
    "get_path_to_events_directory",
    "get_region",
    "get_relative_event_file_path",
    "get_tb_worker",
    "get_worker_name_from_collection_file",
    "index",
    "is_first_process",
    "is_framework_version_supported",
    "is_s3",
    "list_collection_files_in_directory",
    "list_files_in_directory",
    "load_json_as_dict",
    "make_numpy_array",
    "match_inc",
    "merge_two_dicts",
    "parse_worker_name_from_file",
    "remove_claim_file",
    "remove_file_if_exists",
    "serialize_tf_device",
    "setup_profiler_report",
    "size_and_shape",
    "split",
    "step_in_range",
    "validate_custom_tensor_value",
]

_S3 = re.compile(r"^s3://([^/]+)(?:/(.*))?$", re.DOTALL)
_EVENT_FILE = re.compile(r"(?:^|/)((?:events|tensorboard)/.+)$")

error_handling_agent = ErrorHandlingAgent.get_error_handling_agent()
serialize_tf_device = names.serialize_device
deserialize_tf_device = names.deserialize_device


class FRAMEWORK(Enum):
    """The frameworks that have hooks of their own."""

    PYTORCH = "pytorch"
    TENSORFLOW = "tensorflow"
    MXNET = "mxnet"
    XGBOOST = "xgboost"


# Names and lists


def match_inc(tname: str, include: Sequence[str]) -> bool:
    """Does any of the patterns occur in the name? Nothing matches an empty list."""
    return matches_any(tname, include)


def flatten(lis: list[Any]) -> list[Any]:
    """The members of nested lists, in order; tuples stay whole."""
    flat: list[Any] = []
    for item in lis:
        flat.extend(flatten(item) if isinstance(item, list) else [item])
    return flat


def split(comma_separated_string: str) -> list[str]:
    return [part.strip() for part in comma_separated_string.split(",")]


def merge_two_dicts(x: Mapping[Any, Any], y: Mapping[Any, Any]) -> dict[Any, Any]:
    """A new dictionary of both; `y` wins."""
    return {**x, **y}


def index(sorted_list: Sequence[Any], elem: Any) -> int:
    """Where `elem` is in a sorted list."""
    i = bisect_left(sorted_list, elem)
    if i == len(sorted_list) or sorted_list[i] != elem:
        raise SMDebugValueError(f"{elem} is not in the list")
    return i


def step_in_range(range_steps: tuple[int | None, int | None], step: int) -> bool:
    """Is the step in [begin, end)? None is open."""
    begin, end = range_steps
    return (begin is None or step >= int(begin)) and (end is None or step < int(end))


def load_json_as_dict(s: str | dict[str, Any] | None) -> dict[str, Any] | None:
    if s is None or s == "None":
        return None
    if isinstance(s, dict):
        return s
    if isinstance(s, str):
        try:
            return json.loads(s)  # type: ignore[no-any-return]
        except ValueError as error:
            raise SMDebugValueError(f"This is not JSON ({error}): {s[:200]}") from error
    raise SMDebugValueError(f"A dictionary or its JSON was expected, not {type(s).__name__}")


# Values


def size_and_shape(t: Any) -> tuple[int, Any]:
    """How many bytes a value has, and its shape."""
    if isinstance(t, (bytes, str)):
        return len(t), [len(t)]
    return t.nbytes, t.shape


def make_numpy_array(x: Any) -> npt.NDArray[Any]:
    """The value as it would be saved: a scalar or a string becomes an array of one."""
    return np.array(x) if isinstance(x, dict) else as_saved_array(x)


def validate_custom_tensor_value(
    tensor_value: Any, make_numpy_fn: Callable[[Any], npt.NDArray[Any]]
) -> bool:
    """Can the value be made an array?"""
    try:
        make_numpy_fn(tensor_value)
    except TypeError:
        return False
    return True


# Paths


def is_s3(path: str) -> tuple[bool, str | None, str | None]:
    """Whether a path is `s3://bucket/key`, and its bucket and key."""
    match = _S3.match(path)
    return (True, match[1], match[2] or "") if match else (False, None, None)


def get_path_to_collections(directory: str) -> str:
    return f"{directory.rstrip('/')}/{names.COLLECTIONS_FOLDER}"


def get_path_to_events_directory(directory: str) -> str:
    return f"{directory.rstrip('/')}/{names.EVENTS_FOLDER}"


def get_worker_name_from_collection_file(filename: str) -> str:
    """The worker in `…/collections/000000000/<worker>_collections.json`."""
    folders = filename.split("/")
    worker = names.collections_worker(filename)
    if worker is None or len(folders) < 3 or folders[-3] != "collections":
        raise SMDebugValueError(f"{filename} is not the path of a collections file")
    return worker


def parse_worker_name_from_file(filename: str) -> str:
    """The worker in the name of an event or index file."""
    found = names.step_file(filename)
    if found is None:
        raise IndexReaderException(f"Invalid File Found: {filename}")
    return found.worker


def get_relative_event_file_path(path: str) -> str:
    """The path from the run on: `events/…` or `tensorboard/…`."""
    match = _EVENT_FILE.search(path)
    if match is None:
        raise SMDebugRuntimeError(f"{path} lies below neither events/ nor tensorboard/")
    return match[1]


def ensure_dir(file_path: str, is_file: bool = True) -> None:
    """Make the folder, or the one that the file is in."""
    folder = Path(file_path).parent if is_file else Path(file_path)
    folder.mkdir(parents=True, exist_ok=True)


def get_immediate_subdirectories(a_dir: str) -> list[str]:
    return [entry.name for entry in os.scandir(a_dir) if entry.is_dir()]


def list_files_in_directory(directory: str, file_regex: str | None = None) -> list[str]:
    """Every file below the folder, by path."""
    return sorted(
        f"{folder}/{file}"
        for folder, _, files in os.walk(directory)
        for file in files
        if file_regex is None or re.match(file_regex, file)
    )


def list_collection_files_in_directory(directory: str) -> list[str]:
    return list_files_in_directory(directory, file_regex=r".*_?collections\.json$")


def remove_file_if_exists(file_path: str) -> None:
    Path(file_path).unlink(missing_ok=True)


# Who and where this process is


def get_region() -> str | None:
    """`AWS_REGION`, or None where it is not set."""
    return os.environ.get("AWS_REGION") or None


def get_tb_worker() -> str:
    """How this process is called in the names of TensorBoard files."""
    return f"{os.getpid()}_{socket.gethostname()}"


def get_node_id() -> str:
    """The host and process, as `<pid>-<host>`; in a SageMaker job the host's name there."""
    node = (
        get_node_id_from_resource_config() if Path(DEFAULT_RESOURCE_CONFIG_FILE).exists() else None
    )
    return node or f"{os.getpid()}-{socket.gethostname()}"


def get_distributed_worker() -> str | None:
    """The worker that a launcher has told this process to be, if any has."""
    for variable in ("RANK", "OMPI_COMM_WORLD_RANK"):
        if os.environ.get(variable, "").isdigit():
            return f"worker_{os.environ[variable]}"
    return None


def is_first_process(path: str, is_dir: bool = True) -> bool:
    """Is this the first process to claim the run in that folder? On S3 each is."""
    if is_s3(path)[0]:
        return True
    return Claim(open_storage(_folder_of(path, is_dir))).take() is not Outcome.NOT_MINE


def remove_claim_file(path: str, is_dir: bool = True) -> None:
    if not is_s3(path)[0]:
        open_storage(_folder_of(path, is_dir)).delete(names.CLAIM)


def _folder_of(path: str, is_dir: bool) -> str:
    return path if is_dir else str(Path(path).parent)


# What is not here any more


def is_framework_version_supported(framework_type: FRAMEWORK) -> bool:
    """Every version that this library can be installed beside is."""
    return isinstance(framework_type, FRAMEWORK)


def check_smdataparallel_env() -> bool:
    """Does SageMaker's data parallel library run this training?"""
    parameters = os.environ.get("SM_FRAMEWORK_PARAMS", "")
    return "sagemaker_distributed_dataparallel_enabled" in parameters and '": true' in parameters


def check_smmodelparallel_training() -> bool:
    """Does SageMaker's model parallel library run this training?"""
    return "mp_parameters" in os.environ.get("SM_HPS", "")


def setup_profiler_report(processing_job_arn: str, opt_out: bool = False) -> None:
    """Nothing: the old library sent telemetry here."""


# For tests of training scripts


class SagemakerSimulator:
    """While it lasts, this process looks like a SageMaker training job with that hook configuration."""

    def __init__(
        self,
        json_config_path: str = "/tmp/zcc_config.json",  # noqa: S108 - the old default
        tensorboard_dir: str = "/tmp/tensorboard",  # noqa: S108 - the old default
        training_job_name: str = "sm_job",
        json_file_contents: str = "{}",
        cleanup: bool = True,
    ):
        self.out_dir = DEFAULT_SAGEMAKER_OUTDIR
        self.json_config_path = json_config_path
        self.tensorboard_dir = tensorboard_dir
        self.training_job_name = training_job_name
        self.json_file_contents = json_file_contents
        self.cleanup = cleanup
        self._before: dict[str, str | None] = {}
        self._tensorboard_config = ""

    def __enter__(self) -> SagemakerSimulator:
        _forget_hook()
        self._remove_output()
        ensure_dir(self.json_config_path)
        Path(self.json_config_path).write_text(self.json_file_contents, encoding="utf-8")
        handle, self._tensorboard_config = tempfile.mkstemp(suffix=".json")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump({"LocalPath": self.tensorboard_dir}, file)
        self._set(CONFIG_FILE_PATH_ENV_STR, self.json_config_path)
        self._set(TENSORBOARD_CONFIG_FILE_PATH_ENV_STR, self._tensorboard_config)
        self._set(TRAINING_JOB_NAME_ENV_VAR, self.training_job_name)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _forget_hook()
        if self.cleanup:
            self._remove_output()
            remove_file_if_exists(self.json_config_path)
        remove_file_if_exists(self._tensorboard_config)
        for variable, value in self._before.items():
            if value is None:
                os.environ.pop(variable, None)
            else:
                os.environ[variable] = value

    def _set(self, variable: str, value: str) -> None:
        self._before[variable] = os.environ.get(variable)
        os.environ[variable] = value

    def _remove_output(self) -> None:
        if self.cleanup:
            shutil.rmtree(self.out_dir, ignore_errors=True)
            shutil.rmtree(self.tensorboard_dir, ignore_errors=True)


class ScriptSimulator:
    """While it lasts, `out_dir` is empty at the start and removed at the end."""

    def __init__(self, out_dir: str = "/tmp/test", tensorboard_dir: str | None = None):  # noqa: S108
        self.out_dir = out_dir
        self.tensorboard_dir = tensorboard_dir

    def __enter__(self) -> ScriptSimulator:
        _forget_hook()
        self._remove_output()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _forget_hook()
        self._remove_output()

    def _remove_output(self) -> None:
        shutil.rmtree(self.out_dir, ignore_errors=True)
        if self.tensorboard_dir:
            shutil.rmtree(self.tensorboard_dir, ignore_errors=True)


def _forget_hook() -> None:
    hook = current_hook()
    if hook is not None:
        hook.close()
    del_hook()
