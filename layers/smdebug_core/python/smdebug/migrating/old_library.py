"""Addresses of the old library: which exist here, and what replaces the others."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any, NamedTuple

from smdebug.plain_text import did_you_mean, nearest_of

PACKAGES = ("smdebug", "smdebug_rules", "tornasole", "tornasole_rules")
_FRAMEWORKS = {"pytorch", "tensorflow", "mxnet", "xgboost", "jax", "huggingface", "lightning"}
_PROFILER = "The profiler is not part of this library."
_TORNASOLE_HOOKS = {
    "TornasoleHook": "Hook",
    "TornasoleKerasHook": "KerasHook",
    "TornasoleSessionHook": "SessionHook",
    "TornasoleEstimatorHook": "EstimatorHook",
}
# What every framework package offers, and where to import it from without the framework.
_SHARED = {
    "ReductionConfig": "smdebug",
    "SaveConfig": "smdebug",
    "SaveConfigMode": "smdebug",
    "create_trial": "smdebug.trials",
}
_PROFILER_KEPT = ("smdebug.profiler.profiler_config_parser", "smdebug.profiler.profiler_constants")


class Answer(NamedTuple):
    """Whether an address works unchanged, and if not, why and what replaces it."""

    works: bool
    message: str = ""
    replacement: str = ""


WORKS = Answer(True)


def is_ours(address: str) -> bool:
    """Return whether the address belongs to the old library or to tornasole."""
    return address.partition(".")[0] in PACKAGES


def check_import(module: str, name: str | None = None) -> Answer:
    """Check `import module`, or `from module import name`."""
    address = f"{module}.{name}" if name and name != "*" else module
    if address.startswith("smdebug.profiler.") and not address.startswith(_PROFILER_KEPT):
        return Answer(False, _PROFILER, "Remove it.")
    if not _exists(module):
        return _replacement(module, name)
    if name is None or name == "*" or _has(module, name):
        return WORKS
    return _replacement(module, name)


def check_call(address: str, arguments: Mapping[str, Any]) -> Answer:
    """Check a call by its keywords and their values, as far as this shows without its framework."""
    name = address.rpartition(".")[2]
    if name == "create_trial" and arguments.get("profiler") is True:
        return Answer(False, _PROFILER, "Remove it.")
    if name in ("SaveConfig", "SaveConfigMode") and arguments.get("save_interval") == 0:
        return Answer(False, "save_interval must be at least 1.", "save_interval=1")
    found = _object_at(address)
    if found is None:
        return WORKS
    try:
        parameters = inspect.signature(found).parameters.values()
    except (TypeError, ValueError):
        return WORKS
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return WORKS
    accepted = [p.name for p in parameters if p.kind is not p.POSITIONAL_ONLY]
    unknown = [keyword for keyword in arguments if keyword not in accepted]
    if not unknown:
        return WORKS
    nearest = nearest_of(unknown[0], accepted)
    hint = f"Use {nearest}." if nearest else f"It takes {', '.join(accepted)}."
    return Answer(False, f"{address} has no parameter {unknown[0]}.", hint)


def _replacement(module: str, name: str | None) -> Answer:
    address = f"{module}.{name}" if name and name != "*" else module
    top, _, rest = address.partition(".")
    if top.startswith("tornasole"):
        parts = [_TORNASOLE_HOOKS.get(part, part) for part in rest.split(".")]
        package, _, last = ".".join(["smdebug", *parts]).rpartition(".")
        if _exists(f"{package}.{last}") or (_exists(package) and _has(package, last)):
            return Answer(False, f"{address} does not exist here.", f"from {package} import {last}")
    if not _exists(module):
        return Answer(False, f"There is no module {module} here.")
    known = dir(import_module(module)) if not _needs_framework(module) else []
    return Answer(False, f"{module} has no {name} here.", did_you_mean(name or "", known).strip())


@cache
def _exists(module: str) -> bool:
    """Return whether there is such a module; only packages above it are imported."""
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def _needs_framework(module: str) -> bool:
    """Return whether importing the module would import a framework."""
    parts = module.split(".")
    return len(parts) > 2 and parts[1] in _FRAMEWORKS


def _has(module: str, name: str) -> bool:
    """Return whether the module offers the name; True if only the framework could tell."""
    if _needs_framework(module):
        return True
    offered: ModuleType = import_module(module)
    if name in dir(offered) or name in getattr(offered, "__all__", ()):
        return True
    if _exists(f"{module}.{name}"):
        return True
    is_framework = module.split(".")[1:2] and module.split(".")[1] in _FRAMEWORKS
    return not is_framework and hasattr(offered, name)


def _object_at(address: str) -> Any:
    """Return the object at the address, unless a framework would be imported for it."""
    module, _, name = address.rpartition(".")
    if set(module.split(".")[1:2]) & _FRAMEWORKS:
        module = _SHARED.get(name, "")
    if not module or not _exists(module):
        return None
    return getattr(import_module(module), name, None)
