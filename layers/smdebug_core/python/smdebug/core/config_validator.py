"""For code written against smdebug: `smdebug.config.validator` decides whether a hook is created."""

from smdebug.config import validator
from smdebug.config.validator import (
    ConfigValidator,
    get_config_validator,
    is_framework_version_supported,
    reset_config_validator,
)

# Looked up here at each call: tests of training scripts patch the function at this address.
validator.version_check = lambda framework: is_framework_version_supported(framework)

__all__ = [
    "ConfigValidator",
    "get_config_validator",
    "is_framework_version_supported",
    "reset_config_validator",
]
