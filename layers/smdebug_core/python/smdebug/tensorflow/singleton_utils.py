"""The hook of this process, for TensorFlow."""

from __future__ import annotations

from typing import Any

from smdebug.exceptions import SMDebugValueError
from smdebug.saving.hooks import framework
from smdebug.saving.hooks.singleton import del_hook, set_hook

__all__ = ["del_hook", "get_hook", "set_hook"]

_HOOKS = {
    "keras": ("smdebug.tensorflow.keras", "KerasHook"),
    "session": ("smdebug.tensorflow.session", "SessionHook"),
    "estimator": ("smdebug.tensorflow.session", "SessionHook"),
}


def get_hook(
    hook_type: str | None = None,
    json_config_path: str | None = None,
    create_if_not_exists: bool = False,
) -> Any:
    """The hook of this process, of that type ("keras", "session", "estimator") if one is given.

    With `create_if_not_exists`, one made from the JSON configuration.
    """
    if hook_type is not None and hook_type not in _HOOKS:
        raise SMDebugValueError(f"hook_type must be one of {', '.join(_HOOKS)}, not {hook_type!r}")
    home, name = _HOOKS[hook_type] if hook_type else ("", None)
    return framework.get_hook(home, name, json_config_path, create_if_not_exists)
