"""Save tensors while a model trains, inspect them, and evaluate rules on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smdebug.compatibility.finder import follow_old_addresses
from smdebug.mode_keys import ModeKeys as modes  # noqa: N813

if TYPE_CHECKING:
    from smdebug.config.keys import CollectionKeys
    from smdebug.config.reduction_config import ReductionConfig
    from smdebug.config.save_config import SaveConfig, SaveConfigMode
    from smdebug.launching.starting import start
    from smdebug.runs.evaluation.diagnosing import diagnose
    from smdebug.saving.hooks.logged import log, mark_checkpoint
    from smdebug.saving.hooks.loop_hook import Hook
    from smdebug.saving.logged.values import Audio, ConfusionMatrix, Histogram, Image, Table, Text

follow_old_addresses()

__version__ = "0.1.0"
__all__ = [
    "Audio",
    "CollectionKeys",
    "ConfusionMatrix",
    "Histogram",
    "Hook",
    "Image",
    "ReductionConfig",
    "SaveConfig",
    "SaveConfigMode",
    "Table",
    "Text",
    "__version__",
    "diagnose",
    "log",
    "mark_checkpoint",
    "modes",
    "start",
]

# A program that only reads a run need not load what writes one.
_HOMES = {
    "Text": "smdebug.saving.logged.values",
    "Table": "smdebug.saving.logged.values",
    "Image": "smdebug.saving.logged.values",
    "Histogram": "smdebug.saving.logged.values",
    "ConfusionMatrix": "smdebug.saving.logged.values",
    "Audio": "smdebug.saving.logged.values",
    "CollectionKeys": "smdebug.config.keys",
    "Hook": "smdebug.saving.hooks.loop_hook",
    "ReductionConfig": "smdebug.config.reduction_config",
    "SaveConfig": "smdebug.config.save_config",
    "SaveConfigMode": "smdebug.config.save_config",
    "diagnose": "smdebug.runs.evaluation.diagnosing",
    "log": "smdebug.saving.hooks.logged",
    "mark_checkpoint": "smdebug.saving.hooks.logged",
    "start": "smdebug.launching.starting",
}
_ROOMS = {"ui"}  # smdebug.ui(…) needs no import of its own: the module can be called


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _ROOMS:
        return import_module(f"smdebug.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, *_ROOMS})
