"""The hook of this process: what `get_hook()` finds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from smdebug.exceptions import SMDebugTypeError
from smdebug.logger import get_logger


class AnyHook:
    """What this module needs to know of a hook."""

    @classmethod
    def create_from_json_file(
        cls, json_file_path: str | None = None, *, beside: Mapping[str, Any] | None = None
    ) -> Any:
        """Make a hook from a JSON file, or else from the one that `SMDEBUG_CONFIG_FILE_PATH` names."""
        raise NotImplementedError

    def close(self) -> None:
        """End the run."""
        raise NotImplementedError


_hook: AnyHook | None = None


def current_hook() -> AnyHook | None:
    """Return the hook that was made or set last, if any."""
    return _hook


def get_hook(
    *,
    json_config_path: str | None,
    hook_class: type[AnyHook] | None,
    create_if_not_exists: bool,
) -> Any:
    """Return the hook of this process, made from the JSON configuration if it has none of that class.

    Return None if there is neither a hook nor a configuration file.
    """
    if hook_class is None:
        return _hook
    if _hook is not None and not isinstance(_hook, hook_class):
        get_logger().info("The hook is not a %s: a new one is made", hook_class.__name__)
        del_hook()
    if _hook is None and create_if_not_exists:
        try:
            hook_class.create_from_json_file(json_config_path)  # its constructor sets it
        except FileNotFoundError as error:
            get_logger().info("No hook is made: %s does not exist", error.filename)
    return _hook


def set_hook(custom_hook: AnyHook) -> None:
    """Make this the hook that `get_hook()` returns."""
    if not isinstance(custom_hook, AnyHook):
        raise SMDebugTypeError(f"set_hook takes a hook, not {custom_hook!r}")
    global _hook
    _hook = custom_hook


def del_hook() -> None:
    """Forget the hook of this process. It stays open until the process ends."""
    global _hook
    _hook = None
