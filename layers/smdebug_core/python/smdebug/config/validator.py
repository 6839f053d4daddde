"""Whether `get_hook()` may make a hook in this process."""

from __future__ import annotations

from enum import Enum
from typing import Any

from smdebug.config.environment import is_switched_off
from smdebug.logger import get_logger


class FRAMEWORK(Enum):
    """The frameworks for which the old library had hooks."""

    PYTORCH = "pytorch"
    TENSORFLOW = "tensorflow"
    MXNET = "mxnet"
    XGBOOST = "xgboost"


def is_framework_version_supported(framework_type: Any) -> bool:
    """Return True: every version that can be installed beside this library is supported."""
    return True


class ConfigValidator:
    """Decides whether the library is used in this training job."""

    def __init__(self, framework_type: Any = None):
        self._framework_type = framework_type

    def validate_training_job(self) -> bool:
        """Return False if `USE_SMDEBUG` is false or 0, or the framework's version is not supported."""
        if is_switched_off():
            get_logger().info("USE_SMDEBUG is false: no hook is created")
            return False
        if not is_framework_version_supported(self._framework_type):
            get_logger().info("This version of the framework is not supported: no hook is created")
            return False
        return True

    def validate_profiler_config(self) -> bool:
        """Return False: the profiler is not part of this library."""
        return False


_validator: ConfigValidator | None = None


def get_config_validator(framework: Any = None) -> ConfigValidator:
    """Return the validator of this process."""
    global _validator
    if _validator is None:
        _validator = ConfigValidator(framework)
    return _validator


def reset_config_validator() -> None:
    """Forget the validator of this process."""
    global _validator
    _validator = None
