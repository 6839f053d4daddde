"""Should a hook be made at all?"""

from __future__ import annotations

from typing import Any

from smdebug.config.environment import is_switched_off
from smdebug.logger import get_logger


class ConfigValidator:
    """Says whether the library is to be used in this training job."""

    def __init__(self, framework_type: Any = None):
        self._framework_type = framework_type

    def validate_training_job(self) -> bool:
        """False if `USE_SMDEBUG` is set to false or 0."""
        if is_switched_off():
            get_logger().info("USE_SMDEBUG is false, so no hook is made")
            return False
        return True

    def validate_profiler_config(self) -> bool:
        """Always False: the profiler is not part of this library."""
        return False


_validator: ConfigValidator | None = None


def get_config_validator(framework: Any = None) -> ConfigValidator:
    """The validator of this process."""
    global _validator
    if _validator is None:
        _validator = ConfigValidator(framework)
    return _validator


def reset_config_validator() -> None:
    global _validator
    _validator = None
