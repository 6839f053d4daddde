"""Small helpers that scripts and tests import from `smdebug.core.utils` and `smdebug.analysis.utils`."""

from __future__ import annotations

import json
import os
import re
import socket
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from smdebug.compatibility.simulators import SagemakerSimulator, ScriptSimulator
from smdebug.config.constants import DEFAULT_RESOURCE_CONFIG_FILE
from smdebug.config.json_config import get_node_id_from_resource_config
from smdebug.config.parsing import split
from smdebug.config.patterns import matches_any
from smdebug.config.validator import FRAMEWORK, is_framework_version_supported
from smdebug.exceptions import (
    IndexReaderException,
    SMDebugRuntimeError,
    SMDebugTypeError,
    SMDebugValueError,
)
from smdebug.files import names
from smdebug.files.event_writing import as_saved_array
from smdebug.logger import get_logger
from smdebug.saving.hooks.error_agent import ErrorHandlingAgent
from smdebug.saving.place.claim import Claim, ClaimOutcome
from smdebug.storage import open_storage

MODE_PLUGIN_NAME = "mode"
MODE_STEP_PLUGIN_NAME = "mode_step"

error_handling_agent = ErrorHandlingAgent.get_error_handling_agent()
serialize_tf_device = names.serialize_device
deserialize_tf_device = names.deserialize_device

_S3 = re.compile(r"^s3://([^/]+)(?:/(.*))?$", re.DOTALL)
_EVENT_FILE = re.compile(r"(?:^|/)((?:events|tensorboard)/.+)$")


# Lists, dictionaries, text


def match_inc(tname: str, include: Sequence[str]) -> bool:
    """Return whether any pattern occurs in the name; an empty list matches nothing."""
    return matches_any(tname, include)


def flatten(lis: list[Any]) -> list[Any]:
    """Return the members of nested lists in order; tuples stay whole."""
    flat: list[Any] = []
    for item in lis:
        flat.extend(flatten(item) if isinstance(item, list) else [item])
    return flat


def merge_two_dicts(x: Mapping[Any, Any], y: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return a new dictionary of both; `y` wins."""
    return {**x, **y}


def index(sorted_list: Sequence[Any], elem: Any) -> int:
    """Return the place of `elem` in a sorted list."""
    i = bisect_left(sorted_list, elem)
    if i == len(sorted_list) or sorted_list[i] != elem:
        raise SMDebugValueError(f"{elem} is not in the list")
    return i


def step_in_range(range_steps: tuple[int | None, int | None], step: int) -> bool:
    """Return whether begin <= step < end; None is an open end."""
    begin, end = range_steps
    return (begin is None or step >= int(begin)) and (end is None or step < int(end))


def load_json_as_dict(s: str | dict[str, Any] | None) -> dict[str, Any] | None:
    """Return a dictionary as it is, or parsed from JSON; None for None and "None"."""
    if s is None or s == "None":
        return None
    if isinstance(s, dict):
        return s
    if isinstance(s, str):
        try:
            return json.loads(s)  # type: ignore[no-any-return]
        except ValueError as error:
            raise SMDebugValueError(f"This is not JSON ({error}): {s[:200]}") from error
    raise SMDebugValueError(f"Expected a dictionary or its JSON, not {type(s).__name__}")


def parse_list_from_str(arg: str | Iterable[str] | None, delimiter: str = ",") -> list[str]:
    """Return the parts of "a,b" unchanged; a list is returned as it is, None and "" as the empty list."""
    if arg is None or arg == "":
        return []
    if isinstance(arg, str):
        return arg.split(delimiter)
    if isinstance(arg, list | tuple | set | frozenset):
        return list(arg)
    raise SMDebugTypeError(f"A list, or text with {delimiter!r} in it, was expected, not {arg!r}")


def parse_bool(arg: bool | str | None, default: bool) -> bool:
    """True or False, also as text, in any case; `default` for None."""
    if arg is None:
        return default
    if isinstance(arg, bool | int) and arg in (0, 1):
        return bool(arg)
    if isinstance(arg, str) and arg.strip().lower() in ("true", "false"):
        return arg.strip().lower() == "true"
    raise SMDebugValueError(f"true or false was expected, not {arg!r}")


# Values


def size_and_shape(t: Any) -> tuple[int, Any]:
    """Return the size of a value in bytes, and its shape."""
    if isinstance(t, (bytes, str)):
        return len(t), [len(t)]
    return t.nbytes, t.shape


def make_numpy_array(x: Any) -> npt.NDArray[Any]:
    """Return the value as it would be saved: a scalar or a string becomes an array of one element."""
    return np.array(x) if isinstance(x, dict) else as_saved_array(x)


def validate_custom_tensor_value(tensor_value: Any, make_numpy_fn: Callable[[Any], npt.NDArray[Any]]) -> bool:
    """Return whether `make_numpy_fn` can convert the value."""
    try:
        make_numpy_fn(tensor_value)
    except TypeError:
        return False
    return True


# Paths


def is_s3(path: str) -> tuple[bool, str | None, str | None]:
    """Return whether a path is `s3://bucket/key`, and its bucket and key."""
    match = _S3.match(path)
    return (True, match[1], match[2] or "") if match else (False, None, None)


def get_path_to_collections(directory: str) -> str:
    """Return the folder of a run's collections files."""
    return f"{directory.rstrip('/')}/{names.COLLECTIONS_FOLDER}"


def get_path_to_events_directory(directory: str) -> str:
    """Return the folder of a run's event files."""
    return f"{directory.rstrip('/')}/{names.EVENTS_FOLDER}"


def get_worker_name_from_collection_file(filename: str) -> str:
    """Return the worker of `…/collections/000000000/<worker>_collections.json`."""
    folders = filename.split("/")
    worker = names.collections_worker(filename)
    if worker is None or len(folders) < 3 or folders[-3] != "collections":
        raise SMDebugValueError(f"{filename} is not the path of a collections file")
    return worker


def parse_worker_name_from_file(filename: str) -> str:
    """Return the worker in the name of an event or index file."""
    found = names.step_file(filename)
    if found is None:
        raise IndexReaderException(f"Invalid File Found: {filename}")
    return found.worker


def get_relative_event_file_path(path: str) -> str:
    """Return the path relative to the run: `events/…` or `tensorboard/…`."""
    match = _EVENT_FILE.search(path)
    if match is None:
        raise SMDebugRuntimeError(f"{path} is below neither events/ nor tensorboard/")
    return match[1]


def ensure_dir(file_path: str, is_file: bool = True) -> None:
    """Make the folder, or the parent folder of the file."""
    folder = Path(file_path).parent if is_file else Path(file_path)
    folder.mkdir(parents=True, exist_ok=True)


def get_immediate_subdirectories(a_dir: str) -> list[str]:
    """Return the names of the folders in a folder."""
    return [entry.name for entry in os.scandir(a_dir) if entry.is_dir()]


def list_files_in_directory(directory: str, file_regex: str | None = None) -> list[str]:
    """Return every file below the folder, sorted by path."""
    return sorted(
        f"{folder}/{file}"
        for folder, _, files in os.walk(directory)
        for file in files
        if file_regex is None or re.match(file_regex, file)
    )


def list_collection_files_in_directory(directory: str) -> list[str]:
    """Return every collections file below the folder."""
    return list_files_in_directory(directory, file_regex=r".*_?collections\.json$")


def remove_file_if_exists(file_path: str) -> None:
    """Remove the file, if there is one."""
    Path(file_path).unlink(missing_ok=True)


# This process


def get_region() -> str | None:
    """Return `AWS_REGION`, or None where it is not set."""
    return os.environ.get("AWS_REGION") or None


def get_aws_region_from_processing_job_arn(processing_job_arn: str) -> str:
    """Return the region in `arn:aws:sagemaker:<region>:<account>:processing-job/<name>`."""
    parts = processing_job_arn.split(":")
    if len(parts) < 4:
        raise SMDebugValueError(f"{processing_job_arn!r} is not an ARN")
    return parts[3]


def get_tb_worker() -> str:
    """Return the name of this process in TensorBoard files: `<pid>_<host>`."""
    return f"{os.getpid()}_{socket.gethostname()}"


def get_node_id() -> str:
    """Return `<pid>-<host>`; in a SageMaker job with the host's name there."""
    node = get_node_id_from_resource_config() if Path(DEFAULT_RESOURCE_CONFIG_FILE).exists() else None
    return node or f"{os.getpid()}-{socket.gethostname()}"


def get_distributed_worker() -> str | None:
    """Return `worker_<rank>` as a launcher has set it, or None."""
    for variable in ("RANK", "OMPI_COMM_WORLD_RANK"):
        if os.environ.get(variable, "").isdigit():
            return f"worker_{os.environ[variable]}"
    return None


def is_first_process(path: str, is_dir: bool = True) -> bool:
    """Claim the run in that folder and return whether this process is the first; on S3 always True."""
    if is_s3(path)[0]:
        return True
    return Claim(open_storage(_folder_of(path, is_dir))).take() is not ClaimOutcome.NOT_MINE


def remove_claim_file(path: str, is_dir: bool = True) -> None:
    """Remove the claim on the run in that folder; on S3 there is none."""
    if not is_s3(path)[0]:
        open_storage(_folder_of(path, is_dir)).delete(names.CLAIM)


def _folder_of(path: str, is_dir: bool) -> str:
    return path if is_dir else str(Path(path).parent)


def check_smdataparallel_env() -> bool:
    """Return whether SageMaker's data parallel library runs this training."""
    parameters = os.environ.get("SM_FRAMEWORK_PARAMS", "")
    return "sagemaker_distributed_dataparallel_enabled" in parameters and '": true' in parameters


def check_smmodelparallel_training() -> bool:
    """Return whether SageMaker's model parallel library runs this training."""
    return "mp_parameters" in os.environ.get("SM_HPS", "")


def setup_profiler_report(processing_job_arn: str, opt_out: bool = False) -> None:
    """Do nothing: the old library sent telemetry here."""


def __getattr__(name: str) -> Any:
    """Return a function that returns "" for each private name of the old library's telemetry."""
    if name.startswith("_") and not name.startswith("__") and "telemetry" in name:
        return lambda *arguments, **options: ""
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
