"""The places that a hook saves to."""

from __future__ import annotations

import os
from pathlib import Path

from smdebug.config.environment import is_sagemaker_job
from smdebug.config.json_config import get_tensorboard_dir_from_json_config
from smdebug.exceptions import StorageError
from smdebug.files.names import END_MARKER
from smdebug.saving.place.deadline import within
from smdebug.saving.place.trouble import warn_of_storage
from smdebug.saving.process.process_end import run_ended
from smdebug.storage import Storage, open_storage

TENSORBOARD_FOLDER = "tensorboard"

Place = str | os.PathLike[str] | Storage


def verify_and_get_out_dir(out_dir: Place | None) -> str:
    """Return the place to save to, with `~` expanded; raise RunEnded if it holds a finished run.

    A place with an unfinished run is accepted: saving to it continues that run.
    """
    return place_for_a_run(out_dir).location


def place_for_a_run(out_dir: Place | None) -> Storage:
    """Return the place to save to as a storage; raise RunEnded if it holds a finished run."""
    if out_dir is None:
        raise RuntimeError("out_dir is a required argument: a local folder, or s3://bucket/prefix")
    storage = open_storage(out_dir)
    try:
        ended = within(lambda: storage.exists(END_MARKER), storage.location)
    except StorageError as error:
        # Without permission to read, or a connection yet, the training can still continue.
        question = "It is unknown whether %s holds a finished run: %s"
        warn_of_storage(storage, error, question, out_dir)
        ended = False
    if ended:
        location = storage.location
        raise run_ended(location, None if "://" in location else str(unused(Path(location))))
    return storage


def unused(folder: Path) -> Path:
    """Return the folder, or else the first of `folder-2`, `folder-3` … that does not exist."""
    number, candidate = 2, folder
    while candidate.exists():
        candidate = folder.with_name(f"{folder.name}-{number}")
        number += 1
    return candidate


def get_tensorboard_dir(export_tensorboard: bool, tensorboard_dir: str | None, out_dir: str) -> str | None:
    """Return the place for TensorBoard files, or None. In SageMaker its own configuration file decides."""
    if is_sagemaker_job():
        return get_tensorboard_dir_from_json_config()
    if tensorboard_dir is not None:
        return os.path.expanduser(tensorboard_dir)  # noqa: PTH111 - may be an S3 address
    return f"{out_dir.rstrip('/')}/{TENSORBOARD_FOLDER}" if export_tensorboard else None
