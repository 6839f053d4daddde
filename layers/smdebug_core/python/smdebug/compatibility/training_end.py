"""Whether a training has ended, or a rule has to stop."""

from __future__ import annotations

import os
import time

from smdebug.config.environment import is_sagemaker_job
from smdebug.exceptions import ObjectMissing
from smdebug.files.names import END_MARKER
from smdebug.logger import get_logger
from smdebug.storage import open_storage
from smdebug.storage.base import S3_SCHEME

END_OF_JOB_FILENAME = END_MARKER
ENV_RULE_STOP_SIGNAL_FILENAME = "SAGEMAKER_ENV_RULE_STOP_SIGNAL_FILE"
GRACETIME_ENV = "rule_stop_grace_time_secs"
DEFAULT_GRACETIME_FOR_RULE_STOP_SEC = 60


def training_has_ended(trial_prefix: str) -> None:
    """Write the end marker of a run; in a SageMaker job do nothing, as the job's end counts."""
    if not is_sagemaker_job():
        open_storage(trial_prefix).write(END_MARKER, b"")


def has_training_ended(trial_prefix: str) -> bool:
    """Return whether the run has an end marker."""
    # Listed, because a missing key returns 404 only to callers with ListBucket.
    return END_MARKER in open_storage(trial_prefix).list(END_MARKER)


def check_dir_exists(path: str) -> bool:
    """Return whether the run at `path` has ended, so that nothing can be saved there."""
    return has_training_ended(path)


def file_exists(file_path: str) -> bool:
    """Return whether there is a file, a folder or an object of that name."""
    if not file_path.startswith(S3_SCHEME):
        return os.path.exists(file_path)  # noqa: PTH110
    folder, _, name = file_path.rpartition("/")
    return open_storage(folder).exists(name)


def is_rule_signalled_gracetime_passed(trial_prefix: str) -> bool:
    """Return whether SageMaker requested rules to stop, and the grace time has passed.

    The file that `SAGEMAKER_ENV_RULE_STOP_SIGNAL_FILE` names holds the time of the request in seconds. A
    file that cannot be parsed counts as an old request.
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
        get_logger().info("Cannot parse the stop request in %s (%s): stopping", name, error)
        return True
    return passed
