"""Watching a framework from its import on, wherever a script imports it."""

from __future__ import annotations

import importlib.util
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from smdebug.logger import get_logger

#: The modules that watch a framework, by the framework's module.
WATCHERS = {
    "torch": "smdebug.pytorch.unchanged",
    "keras": "smdebug.tensorflow.unchanged",
    "xgboost": "smdebug.xgboost.unchanged",
    # Trainers around PyTorch, which say more of a training than its tensors do:
    "transformers.trainer": "smdebug.huggingface.joined",
    "lightning.pytorch.trainer.trainer": "smdebug.lightning.joined",
    "pytorch_lightning.trainer.trainer": "smdebug.lightning.joined",
}
MakeHook = Callable[[Any], Any]


def watch_imports(make_hook: MakeHook) -> None:
    """Watch each framework from its import on."""
    for module in WATCHERS:
        if module in sys.modules:
            _watch(module, make_hook)
    sys.meta_path.insert(0, _AfterImport(make_hook))


def _watch(module: str, make_hook: MakeHook) -> None:
    try:
        import_module(WATCHERS[module]).watch(make_hook)
    except Exception as error:  # noqa: BLE001 - whatever it is, the script runs on
        get_logger().exception("%s is not watched: %s", module, error)


class _AfterImport:
    """Finds the modules of frameworks like any other finder, and watches them once imported."""

    def __init__(self, make_hook: MakeHook):
        self._make_hook = make_hook
        self._waiting = set(WATCHERS) - set(sys.modules)
        self._asking = threading.local()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name not in self._waiting or getattr(self._asking, "name", None) == name:
            return None
        self._asking.name = name
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._asking.name = None
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self._imported)  # type: ignore[assignment]
        return spec

    def _imported(self, name: str) -> None:
        self._waiting.discard(name)
        _watch(name, self._make_hook)


class _Loader:
    """A module's own loader, which calls `loaded` when it has loaded."""

    def __init__(self, loader: Any, loaded: Callable[[str], None]):
        self._loader = loader
        self._loaded = loaded

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        module: ModuleType | None = self._loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._loaded(module.__name__)
