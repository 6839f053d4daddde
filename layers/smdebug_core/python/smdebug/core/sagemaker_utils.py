"""For code written against smdebug: what the environment says is asked of `smdebug.config.environment`."""

from smdebug.config.environment import is_sagemaker_job

__all__ = [
    "is_sagemaker_job",
]
