"""For code written against smdebug: `smdebug.config.environment` reads the environment."""

from smdebug.config.environment import is_sagemaker_job

__all__ = [
    "is_sagemaker_job",
]
