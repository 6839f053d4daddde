"""For code written against smdebug: the modes live in `smdebug.mode_keys`."""

from smdebug.mode_keys import ALLOWED_MODE_NAMES, ALLOWED_MODES, ModeKeys, str_to_mode_keys

MODE_PLUGIN_NAME = "mode"
MODE_STEP_PLUGIN_NAME = "mode_step"

__all__ = [
    "ALLOWED_MODES",
    "ALLOWED_MODE_NAMES",
    "MODE_PLUGIN_NAME",
    "MODE_STEP_PLUGIN_NAME",
    "ModeKeys",
    "str_to_mode_keys",
]
