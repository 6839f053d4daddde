"""The hook of this process: what `get_hook()` finds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smdebug.exceptions import SMDebugTypeError
from smdebug.logger import get_logger

if TYPE_CHECKING:
    from smdebug.saving.base_hook import BaseHook

_hook: BaseHook | None = None


def current_hook() -> BaseHook | None:
    """The hook that was made or set last, if any."""
    return _hook


def get_hook(
    *,
    json_config_path: str | None,
    hook_class: type[BaseHook] | None,
    create_if_not_exists: bool,
) -> Any:
    """The hook of this process; if there is none of that class, one made from the JSON configuration.

    None if there is no hook and no configuration file.
    """
    if hook_class is None:
        return _hook
    if _hook is not None and not isinstance(_hook, hook_class):
        get_logger().info("The hook is no %s: another is made", hook_class.__name__)
        del_hook()
    if _hook is None and create_if_not_exists:
        try:
            hook_class.create_from_json_file(json_config_path)  # its constructor sets it
        except FileNotFoundError as error:
            get_logger().info("No hook is made: there is no %s", error.filename)
    return _hook


def set_hook(custom_hook: BaseHook) -> None:
    """Let `get_hook()` find this hook."""
    from smdebug.saving.base_hook import BaseHook

    if not isinstance(custom_hook, BaseHook):
        raise SMDebugTypeError(f"set_hook takes a hook, not {custom_hook!r}")
    global _hook
    _hook = custom_hook


def del_hook() -> None:
    """Forget the hook of this process. It is not closed: that happens when the process ends."""
    global _hook
    _hook = None
