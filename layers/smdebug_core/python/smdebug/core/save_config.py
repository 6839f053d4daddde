"""For code written against smdebug: save configs live in `smdebug.config.save_config`."""

from smdebug.config.save_config import DEFAULT_SAVE_INTERVAL, SaveConfig, SaveConfigMode
from smdebug.mode_keys import ModeKeys

__all__ = [
    "DEFAULT_SAVE_INTERVAL",
    "ModeKeys",
    "SaveConfig",
    "SaveConfigMode",
]
