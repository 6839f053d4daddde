"""The hook of this process, for PyTorch."""

from __future__ import annotations

from typing import Any

from smdebug.saving.hooks import framework
from smdebug.saving.hooks.singleton import del_hook, set_hook

__all__ = ["del_hook", "get_hook", "set_hook"]


def get_hook(json_config_path: str | None = None, create_if_not_exists: bool = False) -> Any:
    """The hook of this process; with `create_if_not_exists`, one made from the JSON configuration."""
    return framework.get_hook("smdebug.pytorch.hook", "Hook", json_config_path, create_if_not_exists)
