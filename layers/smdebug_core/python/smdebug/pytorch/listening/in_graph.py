"""What layers inside a compiled graph compute, shown by an operator that is a part of the graph.

A callback of a layer does not run in a compiled graph, but what it calls while the graph is traced becomes
a part of it. So the callback of such a layer calls an operator with the layer's tensors: one node, which
breaks no graph. At most steps nobody awaits them, and the operator returns at once.

A step begins by another such operator where the forward of a model lies inside a graph. A compiler may order
what does not depend on each other as it likes, so layers that may show themselves at that step are given the
number of the model, which that operator says to change.

Each layer carries a tensor with its number. The graph takes it as it takes parameters, so blocks that share
one graph still have numbers of their own. The operator says that it changes this tensor, which it does not:
a compiler removes what has no result and changes nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol
from weakref import WeakValueDictionary

import torch
from torch import nn

from smdebug.pytorch.listening.callbacks import (
    Callback,
    in_backward,
    is_compiling,
    is_exporting,
    run_as_it_is,
)

# Before PyTorch 2.7 a callback cannot tell that a model is exported, where the operator has no place.
CAN_SHOW = hasattr(torch.compiler, "is_exporting") and hasattr(torch.library, "register_fake")

Shown = Callable[[list[torch.Tensor], bool], None]
"""What is called with a layer's tensors, and whether they are its inputs."""


class Beginning(Protocol):
    """What is called when the forward of a model begins inside a graph."""

    def in_graph(self, module: nn.Module) -> None: ...


_NUMBER = "_smdebug_number"
_INPUTS = "_smdebug_shows_inputs"
_AFTER = "_smdebug_shows_after"
# They return what the layer before or inside them does, at most with some of it left out.
_UNSHOWN = (nn.Identity, nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.Sequential)

_awaited: dict[Any, Shown] = {}
"""Who awaits the tensors of a layer at the current step, by its number."""
_begins: WeakValueDictionary[Any, Beginning] = WeakValueDictionary()
"""Who is called when the forward of a model begins, by the model's number."""
_owners: WeakValueDictionary[Any, nn.Module] = WeakValueDictionary()
"""The module that has a number: a copy of it is another one."""
_numbers = itertools.count()
_library: Any = None


def is_shown(module: nn.Module) -> bool:
    """Return whether graphs that are compiled from now on show the module's tensors."""
    return _AFTER in module.__dict__ and _has_number(module)


def passes_on(module: nn.Module) -> bool:
    """Return whether the module's outputs are those of another one, or differ from them by chance alone."""
    return isinstance(module, _UNSHOWN)


def show(module: nn.Module, *, inputs: bool, after: torch.Tensor | None = None) -> bool:
    """Let every graph that is compiled from now on show the module's outputs, and its inputs if wanted.

    `after` is the number of a model whose forward begins steps inside the graph. Return whether it will.
    """
    if passes_on(module):
        return False
    is_new = not is_shown(module)
    _number_of(module)
    if is_new:  # what a graph has read stays, or it would be compiled again
        module.__dict__[_AFTER] = after
    module.__dict__[_INPUTS] = inputs
    if not any(callback is _IN_GRAPH for callback in module._forward_hooks.values()):
        module.register_forward_hook(_IN_GRAPH, with_kwargs=True)
    return True


def hide(module: nn.Module) -> None:
    """Take the callback off. Graphs that were compiled meanwhile keep the operator, which does nothing.

    The module keeps its number: without it, they would be compiled again.
    """
    for key, callback in list(module._forward_hooks.items()):
        if callback is _IN_GRAPH:
            del module._forward_hooks[key]
            module._forward_hooks_with_kwargs.pop(key, None)


def let_begin(module: nn.Module, before: Beginning) -> torch.Tensor:
    """Let graphs that contain the forward of the module call `before` by its number, which is returned."""
    number = _number_of(module)
    _begins[_key_of(number)] = before
    return number


def _number_of(module: nn.Module) -> torch.Tensor:
    """Return the tensor with the number of a module, which gets one if it has none."""
    _define()
    if not _has_number(module):
        number = next(_numbers)
        parameter = next(module.parameters(), None)
        is_elsewhere = parameter is not None and not (parameter.is_cpu or parameter.is_meta)
        place = parameter.device if parameter is not None and is_elsewhere else None
        # An attribute of the object, not a buffer: the module's state stays what it was.
        module.__dict__[_NUMBER] = tensor = torch.tensor(number, dtype=torch.int64, device=place)
        _owners[_key_of(tensor)] = module
    numbered: torch.Tensor = module.__dict__[_NUMBER]
    return numbered


def _has_number(module: nn.Module) -> bool:
    """Return whether the module has a number of its own, and not that of what it is a copy of."""
    return _owner_of(module.__dict__.get(_NUMBER)) is module


def _owner_of(number: torch.Tensor | None) -> nn.Module | None:
    return None if number is None else _owners.get(_key_of(number))


class Awaited:
    """A wish for the tensors of one layer, until it is removed."""

    def __init__(self, module: nn.Module, shown: Shown):
        self._key = _key_of(module.__dict__[_NUMBER])
        self._shown = shown
        self.has_come = False
        """Whether the layer has shown a tensor since the wish was made."""
        self.renew()

    def renew(self) -> None:
        """Await the tensors again."""
        self.has_come = False
        _awaited[self._key] = self._come

    def remove(self) -> None:
        """Await them no more."""
        _awaited.pop(self._key, None)

    def _come(self, tensors: list[torch.Tensor], are_inputs: bool) -> None:
        self.has_come = True
        self._shown(tensors, are_inputs)


class _InGraph(Callback):
    """Puts the operator into a graph that is being traced; outside of graphs it does nothing."""

    @run_as_it_is
    def __call__(self, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        if not is_compiling() or is_exporting():
            return
        number, after = module._smdebug_number, module._smdebug_shows_after
        if module._smdebug_shows_inputs:
            _put(list(_tensors_in([*args, *kwargs.values()])), number, True, after)
        _put(list(_tensors_in(output)), number, False, after)


_IN_GRAPH = _InGraph()


def _put(tensors: list[torch.Tensor], number: Any, are_inputs: bool, after: Any) -> None:
    if tensors:
        torch.ops.smdebug.show(tensors, number, are_inputs, after)


def _tensors_in(values: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors in values that may be nested, in the order in which a hook numbers them."""
    if isinstance(values, torch.Tensor):
        yield values
    elif isinstance(values, Mapping):
        for value in values.values():
            yield from _tensors_in(value)
    elif isinstance(values, (list, tuple)):
        for value in values:
            yield from _tensors_in(value)


def _define() -> None:
    """Define the operators, once in the process."""
    global _library
    if _library is not None:
        return
    _library = torch.library.Library("smdebug", "DEF")
    # A CUDA graph replays kernels without Python: the compiler leaves the operator outside of it.
    unsafe = getattr(torch.Tag, "cudagraph_unsafe", None)
    tags = (unsafe,) if unsafe else ()
    operators: dict[str, tuple[str, Callable[..., None]]] = {
        "show": ("Tensor[] tensors, Tensor(a!) number, bool are_inputs, Tensor? after", _called),
        "begin": ("Tensor(a!) number, bool keeps_gradients", _begun),
    }
    for name, (arguments, called) in operators.items():
        _library.define(f"{name}({arguments}) -> ()", tags=tags)
        _library.impl(name, called, "CompositeExplicitAutograd")
        torch.library.register_fake(f"smdebug::{name}", _without_values, lib=_library)
        torch.library.register_vmap(f"smdebug::{name}", _in_vmap, lib=_library)


def _begun(number: torch.Tensor, keeps_gradients: bool) -> None:
    """Begin a step. Inside of a graph no gradients are kept, whatever its caller has wanted."""
    before = _begins.get(_key_of(number))
    module = _owner_of(number)
    if before is not None and module is not None:
        with torch.set_grad_enabled(keeps_gradients):
            before.in_graph(module)


def _called(
    tensors: list[torch.Tensor], number: torch.Tensor, are_inputs: bool, after: torch.Tensor | None
) -> None:
    if _awaited and not in_backward():  # which computes again what was not kept
        shown = _awaited.get(_key_of(number))
        if shown is not None:
            shown(tensors, are_inputs)


def _key_of(number: torch.Tensor) -> Any:
    """Return what tells a layer's number from others; reading the value on a device would wait for that."""
    return int(number) if number.is_cpu else number.data_ptr()


def _without_values(*arguments: Any) -> None:
    """Do nothing: the operators have no result."""


def _in_vmap(info: Any, in_dims: Any, *arguments: Any) -> tuple[None, None]:
    """Do nothing: within a transform of functions tensors have no values."""
    return None, None
