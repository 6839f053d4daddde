"""The names of modules, their parameters and their layers.

Wrappers do not change a name: a model has the same tensors whether it is trained alone, compiled, or on many
devices. Names of registered layers are kept in a table: nothing is added to a model.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import nn

# The parts that wrappers put into paths: torch.compile, FSDP, activation checkpointing.
_COMPILED = "_orig_mod"
_WRAPPED = (_COMPILED, "_fsdp_wrapped_module", "_checkpoint_wrapped_module")
# A module that model.compile() has compiled calls its own hooks outside of the graph.
_CALLS_HOOKS = hasattr(torch.compiler, "is_exporting")  # since PyTorch 2.7, or earlier
_FABRIC = "_FabricModule"
"""What `fabric.setup` returns, which has the model, or a wrapper of it, twice."""
_BY_MODULE = (nn.DataParallel, nn.parallel.DistributedDataParallel)

_names: WeakKeyDictionary[nn.Module, str] = WeakKeyDictionary()


class Layer(NamedTuple):
    """A module inside a registered one, or that one itself."""

    name: str
    module: nn.Module  # where it is hooked: the outermost wrapper
    is_in_graph: bool  # it runs inside a compiled graph, where hooks do not run


def unwrapped(module: nn.Module) -> nn.Module:
    """Return the user's own module, without its wrappers."""
    return _unwrapped(module)[0]


def class_name(module: nn.Module) -> str:
    """Return the name of the module's class, as the user wrote it."""
    if isinstance(module, torch.jit.ScriptModule):
        return str(module.original_name)
    kind = type(module)
    # fully_shard() changes the class of a module to FSDP<Class>, made of its own and the user's.
    if kind.__name__.startswith("FSDP") and len(kind.__bases__) == 2:
        kind = kind.__bases__[1]
    return kind.__name__


def parameters_of(module: nn.Module, root: str) -> Iterator[tuple[str, nn.Parameter]]:
    """Yield each parameter once, as `<root>_<path>`; a shared one by its first path."""
    for path, parameter in module.named_parameters():
        yield f"{root}_{_clean(path)}", parameter


def layers_of(outermost: nn.Module, root: str) -> list[Layer]:
    """Return each layer once, by its first path; the model itself as `root`."""
    return list(_layers_in(outermost, "", root, False, set()))


def name_layers(layers: list[Layer]) -> None:
    """Remember the names of a registered module's layers."""
    for layer in layers:
        _names[unwrapped(layer.module)] = layer.name


def name_of(module: Any) -> str | None:
    """Return the name under which the module was registered with a hook, or None."""
    return _names.get(unwrapped(module)) if isinstance(module, nn.Module) else None


def _layers_in(
    module: nn.Module, path: str, root: str, is_in_graph: bool, seen: set[nn.Module]
) -> Iterator[Layer]:
    own, is_wrapped = _unwrapped(module)
    if own in seen:
        return
    seen.add(own)
    is_compiled = own._compiled_call_impl is not None
    hidden = is_in_graph or (is_compiled and not _CALLS_HOOKS)
    yield Layer(path or root, module, hidden)
    hides = hidden or is_compiled or is_wrapped or isinstance(own, torch.jit.ScriptModule)
    for name, child in own._modules.items():
        if child is not None:
            yield from _layers_in(child, f"{path}.{name}" if path else name, root, hides, seen)


def _unwrapped(module: nn.Module) -> tuple[nn.Module, bool]:
    """Return the user's own module, and whether one of its wrappers is a compiled one."""
    is_compiled = False
    while True:
        parts = module._modules  # a scripted module has no real dict
        inner: Any = module.module if isinstance(module, _BY_MODULE) else None
        if type(module).__name__ == _FABRIC:
            inner = parts.get("_forward_module")
        for name in _WRAPPED:
            if inner is None and name in parts:
                inner = parts[name]
                is_compiled = is_compiled or name == _COMPILED
        if not isinstance(inner, nn.Module):
            return module, is_compiled
        module = inner


def _clean(path: str) -> str:
    if not any(wrapper in path for wrapper in _WRAPPED):
        return path
    return ".".join(part for part in path.split(".") if part not in _WRAPPED)
