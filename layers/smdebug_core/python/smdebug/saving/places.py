"""Where a hook saves to."""

from __future__ import annotations

import os

from smdebug.config.environment import is_sagemaker_job
from smdebug.config.json_config import get_tensorboard_dir_from_json_config
from smdebug.exceptions import RunEnded, StorageError
from smdebug.files.names import END_MARKER
from smdebug.logger import get_logger
from smdebug.saving.deadline import within
from smdebug.storage import Storage, open_storage

TENSORBOARD_FOLDER = "tensorboard"

Place = str | os.PathLike[str] | Storage


def verify_and_get_out_dir(out_dir: Place | None) -> str:
    """The place to save to, with `~` expanded; RunEnded if it holds a finished run.

    A place with an unfinished run is accepted: saving to it goes on with that run.
    """
    return place_for_a_run(out_dir).location


def place_for_a_run(out_dir: Place | None) -> Storage:
    """The same as a storage."""
    if out_dir is None:
        raise RuntimeError(
            "out_dir is a required argument: say where to save, "
            "as a local folder or as s3://bucket/prefix"
        )
    storage = open_storage(out_dir)
    try:
        ended = within(lambda: storage.exists(END_MARKER), storage.location)
    except StorageError as error:
        # Whoever may write but not look, or cannot reach the place yet, can still train.
        get_logger().warning("Whether a run has ended in %s is not known: %s", out_dir, error)
        ended = False
    if ended:
        raise RunEnded(storage.location)
    return storage


def get_tensorboard_dir(
    export_tensorboard: bool, tensorboard_dir: str | None, out_dir: str
) -> str | None:
    """Where TensorBoard files go, if anywhere. In SageMaker only its own configuration file counts."""
    if is_sagemaker_job():
        return get_tensorboard_dir_from_json_config()
    if tensorboard_dir is not None:
        return os.path.expanduser(tensorboard_dir)  # noqa: PTH111 - may be an S3 address
    return f"{out_dir.rstrip('/')}/{TENSORBOARD_FOLDER}" if export_tensorboard else None
