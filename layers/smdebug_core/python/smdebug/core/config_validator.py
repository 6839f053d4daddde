"""For code written against smdebug: whether a hook is made is said by `smdebug.config.validator`."""

from smdebug.config.validator import ConfigValidator, get_config_validator, reset_config_validator

__all__ = [
    "ConfigValidator",
    "get_config_validator",
    "reset_config_validator",
]
