"""Environment variables about where and how this process runs."""

from __future__ import annotations

import os

from smdebug.config.constants import (
    CHECKPOINT_CONFIG_FILE_PATH_ENV_VAR,
    CONFIG_FILE_PATH_ENV_STR,
    DEFAULT_CHECKPOINT_CONFIG_FILE,
    DEFAULT_CONFIG_FILE_PATH,
    DEFAULT_SAGEMAKER_TENSORBOARD_PATH,
    TENSORBOARD_CONFIG_FILE_PATH_ENV_STR,
    TRAINING_JOB_NAME_ENV_VAR,
    USE_SMDEBUG_ENV_VAR,
)
from smdebug.exceptions import SMDebugValueError


def is_sagemaker_job() -> bool:
    """Whether this process belongs to a SageMaker training job."""
    return TRAINING_JOB_NAME_ENV_VAR in os.environ


def is_switched_off() -> bool:
    """Whether `USE_SMDEBUG` is false."""
    return os.environ.get(USE_SMDEBUG_ENV_VAR, "true").strip().lower() in {"false", "0"}


def config_file_path() -> str:
    return os.environ.get(CONFIG_FILE_PATH_ENV_STR, DEFAULT_CONFIG_FILE_PATH)


def tensorboard_config_file_path() -> str:
    return os.environ.get(TENSORBOARD_CONFIG_FILE_PATH_ENV_STR, DEFAULT_SAGEMAKER_TENSORBOARD_PATH)


def checkpoint_config_file_path() -> str:
    return os.environ.get(CHECKPOINT_CONFIG_FILE_PATH_ENV_VAR, DEFAULT_CHECKPOINT_CONFIG_FILE)


def number_in(variable: str, default: float) -> float:
    """Return the non-negative number in an environment variable, or the default."""
    text = os.environ.get(variable, "").strip()
    if not text:
        return default
    try:
        number = float(text)
    except ValueError:
        number = -1
    if not 0 <= number < 1e12:
        raise SMDebugValueError(f"{variable} must be a number that is not negative, not {text!r}")
    return number
