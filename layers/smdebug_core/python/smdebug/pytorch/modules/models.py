"""The models of a hook: which are trained, what they are called, and which hook watches them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary, ref

from torch import nn

from smdebug.pytorch.modules.names import Layer, class_name, layers_of, unwrapped

_watchers: WeakKeyDictionary[nn.Module, ref[Any]] = WeakKeyDictionary()
_claimed: WeakKeyDictionary[nn.Module, ref[Any]] = WeakKeyDictionary()


def claim(module: nn.Module, hook: Any) -> None:
    """Let that hook alone watch this model: the callback that a person gave to a Trainer drives it."""
    _claimed[unwrapped(module)] = ref(hook)


def release(module: nn.Module) -> None:
    """Let anything watch the model again."""
    _claimed.pop(unwrapped(module), None)


def is_claimed(module: nn.Module) -> bool:
    """Return whether such a hook, whose run goes on, watches the model."""
    known = _claimed.get(unwrapped(module))
    hook = None if known is None else known()
    return hook is not None and not hook.has_closed


def claimed_parameters() -> set[int]:
    """Return the `id` of each parameter of the models that such hooks watch."""
    models = [module for module in list(_claimed) if is_claimed(module)]
    return {id(parameter) for module in models for parameter in module.parameters()}


def watcher_of(module: nn.Module) -> Any:
    """Return the hook that watches this module, or None."""
    known = _watchers.get(unwrapped(module))
    return known() if known else None


def set_watcher(module: nn.Module, hook: Any) -> None:
    """Set the hook that watches the module, or None."""
    if hook is None:
        _watchers.pop(unwrapped(module), None)
    else:
        _watchers[unwrapped(module)] = ref(hook)


def take_over(hook: Any, module: nn.Module) -> bool:
    """Take the module over from another hook, an earlier cell's; return False if it is `hook`'s already."""
    other = watcher_of(module)
    if other is hook:
        hook.logger.warning("%s is registered with this hook already", class_name(module))
        return False
    if other is not None:
        hook.logger.warning("%s was registered with another hook, which is closed now", class_name(module))
        other.end_run(ended=False)
    set_watcher(module, hook)
    return True


class Model(NamedTuple):
    """A registered model. Its owner keeps it alive, not the hook."""

    module: ref[nn.Module]
    root: str  # the name that its parameters begin with
    prefixes_layers: bool = False  # another model has layers of the same paths


class Models:
    """The models of one hook, in order of registration. The forward of the first begins a step."""

    def __init__(self) -> None:
        self._trained: list[Model] = []
        self._left: list[Model] = []  # their names stay taken

    def __iter__(self) -> Iterator[tuple[nn.Module, str]]:
        """The models that still exist, each with its root name."""
        for model in self._trained:
            module = model.module()
            if module is not None:
                yield module, model.root

    def __len__(self) -> int:
        return len(self._trained)

    @property
    def first(self) -> nn.Module | None:
        """The model whose forward begins a step."""
        return self._trained[0].module() if self._trained else None

    def has(self, module: nn.Module) -> bool:
        """Return whether the model is registered and was not left."""
        return any(model.module() is module for model in self._trained)

    def add(self, module: nn.Module) -> str:
        """Register a model and return its root name."""
        root = self._root_name(module)
        taken = {layer.name for registered in self for layer in self.layers_of(*registered)}
        shares_names = any(layer.name in taken for layer in layers_of(module, root))
        self._trained.append(Model(ref(module), root, shares_names))
        return root

    def layers_of(self, module: nn.Module, root: str) -> list[Layer]:
        """Return the layers of a model. Where another has the same, their names begin with its root name."""
        layers = layers_of(module, root)
        if not any(model.root == root and model.prefixes_layers for model in self._trained):
            return layers
        return [
            layer if layer.name == root else layer._replace(name=f"{root}_{layer.name}") for layer in layers
        ]

    def leave(self, module: nn.Module | None) -> None:
        """Unregister a model; another may have its name."""
        self._trained = [model for model in self._trained if model.module() is not module]

    def put_first(self, module: nn.Module) -> nn.Module | None:
        """Let the forward of this model begin steps; return the one that did, whose name stays taken."""
        before = self._trained[0]
        self._left.append(before)
        self._trained.sort(key=lambda model: model.module() is not module)
        return before.module()

    def drop_collected(self) -> bool:
        """Drop garbage-collected models and return whether the first was among them."""
        first = self._trained[0] if self._trained else None
        gone = [model for model in self._trained if model.module() is None]
        self._left += gone
        self._trained = [model for model in self._trained if model not in gone]
        return first in gone

    def clear(self) -> None:
        self._trained.clear()
        self._left.clear()

    def _root_name(self, module: nn.Module) -> str:
        """Return the model's class; of several of one class each has its own name: `Net`, `Net-2` …"""
        known = [model for model in self._left if model.module() is module]
        if known:
            self._left.remove(known[0])
            return known[0].root
        name = class_name(unwrapped(module))
        taken = {model.root for model in (*self._trained, *self._left)}
        names = itertools.chain([name], (f"{name}-{number}" for number in itertools.count(2)))
        return next(free for free in names if free not in taken)
