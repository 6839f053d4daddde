"""For code written against smdebug: the paths of a run, and local folders."""

from __future__ import annotations

import os
import re
from pathlib import Path

from smdebug.exceptions import IndexReaderException, SMDebugRuntimeError, SMDebugValueError
from smdebug.files import names

__all__ = [
    "deserialize_tf_device",
    "ensure_dir",
    "get_immediate_subdirectories",
    "get_path_to_collections",
    "get_path_to_events_directory",
    "get_relative_event_file_path",
    "get_worker_name_from_collection_file",
    "is_s3",
    "list_collection_files_in_directory",
    "list_files_in_directory",
    "parse_worker_name_from_file",
    "remove_file_if_exists",
    "serialize_tf_device",
]

_S3 = re.compile(r"^s3://([^/]+)(?:/(.*))?$", re.DOTALL)
_EVENT_FILE = re.compile(r"(?:^|/)((?:events|tensorboard)/.+)$")

serialize_tf_device = names.serialize_device
deserialize_tf_device = names.deserialize_device


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
