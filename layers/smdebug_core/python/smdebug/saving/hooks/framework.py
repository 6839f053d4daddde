"""What the packages of all frameworks share: lazy imports, and `get_hook`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from smdebug.exceptions import FrameworkMissing
from smdebug.saving.hooks import singleton

#: The names that every framework package offers without its framework, and their modules.
SHARED_HOMES = {
    "CollectionKeys": "smdebug.config.keys",
    "ReductionConfig": "smdebug.config.reduction_config",
    "SaveConfig": "smdebug.config.save_config",
    "SaveConfigMode": "smdebug.config.save_config",
    "create_trial": "smdebug.trials",
    "del_hook": "smdebug.saving.hooks.singleton",
    "modes": "smdebug",
    "set_hook": "smdebug.saving.hooks.singleton",
}


def require(framework: str, module: str, extra: str) -> None:
    """Raise FrameworkMissing, which names what to install, if the framework cannot be imported."""
    try:
        found = find_spec(module) is not None
    except (ImportError, ValueError):
        found = False
    if not found:
        raise FrameworkMissing(framework, extra)


def lazily(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a `__getattr__` for a package whose names are imported on first use."""

    def find(name: str) -> Any:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(home), name)
        setattr(import_module(package), name, value)
        return value

    return find


def get_hook(
    hook_home: str,
    hook_name: str | None,
    json_config_path: str | None,
    create_if_not_exists: bool,
) -> Any:
    """Return the hook of this process, of that class; None if the library is switched off."""
    from smdebug.config.validator import get_config_validator

    if not get_config_validator().validate_training_job():
        return None
    if hook_name is None:
        return singleton.current_hook()
    try:
        hook_class = getattr(import_module(hook_home), hook_name)
    except FrameworkMissing:
        if create_if_not_exists:
            raise
        return None
    return singleton.get_hook(
        json_config_path=json_config_path,
        hook_class=hook_class,
        create_if_not_exists=create_if_not_exists,
    )
