"""For code written against smdebug: the identity of this process, and its claim on a run."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from smdebug.config.constants import DEFAULT_RESOURCE_CONFIG_FILE
from smdebug.config.json_config import get_node_id_from_resource_config
from smdebug.core.utils.paths import is_s3
from smdebug.exceptions import SMDebugValueError
from smdebug.files import names
from smdebug.saving.claim import Claim, Outcome
from smdebug.storage import open_storage

__all__ = [
    "check_smdataparallel_env",
    "check_smmodelparallel_training",
    "get_aws_region_from_processing_job_arn",
    "get_distributed_worker",
    "get_node_id",
    "get_region",
    "get_tb_worker",
    "is_first_process",
    "remove_claim_file",
    "setup_profiler_report",
]


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
    node = (
        get_node_id_from_resource_config() if Path(DEFAULT_RESOURCE_CONFIG_FILE).exists() else None
    )
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
    return Claim(open_storage(_folder_of(path, is_dir))).take() is not Outcome.NOT_MINE


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
