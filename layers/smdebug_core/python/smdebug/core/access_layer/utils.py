"""For code written against smdebug that asks whether a training or a rule has come to its end."""

from __future__ import annotations

import os
import time

from smdebug.config.environment import is_sagemaker_job
from smdebug.core.access_layer.s3handler import DeleteRequest, S3Handler
from smdebug.exceptions import ObjectMissing
from smdebug.files.names import END_MARKER
from smdebug.logger import get_logger
from smdebug.storage import open_storage

__all__ = [
    "DEFAULT_GRACETIME_FOR_RULE_STOP_SEC",
    "END_OF_JOB_FILENAME",
    "ENV_RULE_STOP_SIGNAL_FILENAME",
    "check_dir_exists",
    "delete_s3_prefixes",
    "file_exists",
    "has_training_ended",
    "is_rule_signalled_gracetime_passed",
    "training_has_ended",
]

END_OF_JOB_FILENAME = END_MARKER
ENV_RULE_STOP_SIGNAL_FILENAME = "SAGEMAKER_ENV_RULE_STOP_SIGNAL_FILE"
GRACETIME_ENV = "rule_stop_grace_time_secs"
DEFAULT_GRACETIME_FOR_RULE_STOP_SEC = 60


def training_has_ended(trial_prefix: str) -> None:
    """Write the end marker into the run. Not in a SageMaker job, where the job's end is the end."""
    if not is_sagemaker_job():
        open_storage(trial_prefix).write(END_MARKER, b"")


def has_training_ended(trial_prefix: str) -> bool:
    """Is there an end marker in the run?"""
    # Listed, not asked for by name: a missing key is a denial to those who may not list.
    return END_MARKER in open_storage(trial_prefix).list(END_MARKER)


def check_dir_exists(path: str) -> bool:
    """Is there a run at `path` that has ended, so that nothing can be saved to it?"""
    return has_training_ended(path)


def file_exists(file_path: str) -> bool:
    """Is there a file, a folder or an object of that name?"""
    if not file_path.startswith("s3://"):
        return os.path.exists(file_path)  # noqa: PTH110
    folder, _, name = file_path.rpartition("/")
    return open_storage(folder).exists(name)


def delete_s3_prefixes(bucket: str, keys: list[str]) -> None:
    """Delete every object of the bucket whose key begins with one of `keys`."""
    S3Handler.delete_prefixes([DeleteRequest(bucket, key) for key in keys])


def is_rule_signalled_gracetime_passed(trial_prefix: str) -> bool:
    """Has SageMaker asked rules to stop, longer ago than the time of grace?

    The file that `SAGEMAKER_ENV_RULE_STOP_SIGNAL_FILE` names holds the second of the request. What is
    there but cannot be understood counts as a request long past.
    """
    name = os.environ.get(ENV_RULE_STOP_SIGNAL_FILENAME)
    if not name:
        return False
    try:
        text = open_storage(trial_prefix).read(name)
    except ObjectMissing:
        return False
    try:
        grace = int(os.environ.get(GRACETIME_ENV) or DEFAULT_GRACETIME_FOR_RULE_STOP_SEC)
        passed = time.time() > int(text) + grace
    except ValueError as error:
        get_logger().info("The request to stop in %s is not understood (%s): stopping", name, error)
        return True
    return passed
