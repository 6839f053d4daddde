"""The layers of which something is wanted at a step, hooked only while that is the case."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol
from weakref import ref

import torch
from torch import nn

from smdebug.pytorch.listening import in_graph as graphs
from smdebug.pytorch.listening.callbacks import AroundLayer, InGraph, WatchingHook
from smdebug.pytorch.modules.names import Layer, unwrapped

_CAN_LEAVE_GRAPHS = hasattr(torch.compiler, "set_stance")  # since PyTorch 2.6
_COMPILED_BEFORE = (
    "they run inside a compiled graph, which was made before the model was registered. Register the model "
    "before its first compiled call, and compile it alone, without its loss."
)
# The number of a layer's inputs and outputs is unknown beforehand: this many are tried.
NUMBERS_TRIED = 16


class LayersHook(WatchingHook, Protocol):
    """What layers need from a hook."""

    def wants(self, tensor_name: str) -> bool: ...

    def includes(self, tensor_name: str) -> bool: ...

    def takes(self, tensor_name: str) -> bool: ...

    def get_collections(self) -> dict[str, Any]: ...


class Layered(Protocol):
    """What has layers."""

    @property
    def layers(self) -> list[Layer]: ...


class _Wanted(NamedTuple):
    layer: Layer
    inputs: bool
    outputs: bool
    from_graph: bool  # a compiled graph shows it


class _HookedLayer(NamedTuple):
    module: ref[nn.Module]
    name: str
    inputs: bool
    outputs: bool
    handle: Any  # None: it could not be hooked; Awaited: a compiled graph shows it
    around: AroundLayer | None  # None: it needs more than hooking

    def is_for(self, wanted: _Wanted) -> bool:
        layer, inputs, outputs, from_graph = wanted
        is_same = self.module() is layer.module and self[1:4] == (layer.name, inputs, outputs)
        return is_same and isinstance(self.handle, graphs.Awaited) == from_graph


class LayerHooks:
    """Forward hooks on the layers of which something is wanted, and on no others."""

    def __init__(self, hook: LayersHook, *, eager: bool, from_graphs: bool):
        self._hook = hook
        self._runs_eagerly = eager and _CAN_LEAVE_GRAPHS
        self._sees_graphs = from_graphs and graphs.CAN_SHOW
        self._showing: list[ref[nn.Module]] = []
        """The layers that graphs show."""
        self._has_seen_graphs = False
        """Whether a graph has shown any layer."""
        self._wanted: dict[tuple[int, str], tuple[bool, bool]] = {}  # inputs, outputs of a layer
        self._hooked: list[_HookedLayer] | None = None
        self._before: list[_HookedLayer] = []
        self._circumstances: tuple[Layered, int, InGraph] | None = None
        """Those of the layers that were hooked before."""
        self._stance: Any = None

    def __bool__(self) -> bool:
        """Whether layers were hooked at the last step."""
        return self._hooked is not None

    def forget_wishes(self) -> None:
        """Work out again what is wanted: the models have changed."""
        self._wanted.clear()
        self._before, self._circumstances = [], None

    def show_in_graphs(
        self, layers: Iterable[Layer], in_graph: bool, after: torch.Tensor | None = None
    ) -> None:
        """Let graphs that are compiled from now on show the layers of which anything is ever wanted.

        `after` is the number of the model whose forward begins steps inside such a graph.
        """
        if not self._sees_graphs:
            return
        for layer in layers:
            module = unwrapped(layer.module)
            if not (layer.is_in_graph or in_graph) or isinstance(module, torch.jit.ScriptModule):
                continue
            inputs, outputs = (self._includes_any(f"{layer.name}_{side}_") for side in ("input", "output"))
            if (inputs or outputs) and graphs.show(module, inputs=inputs, after=after):
                self._showing.append(ref(module))

    def hide_in_graphs(self) -> None:
        """Take off what shows layers in graphs."""
        for shown in self._showing:
            module = shown()
            if module is not None:
                graphs.hide(module)
        self._showing.clear()

    def hook(self, structure: Layered, losses: Iterable[Layer], due: int, in_graph: InGraph) -> None:
        """Hook the layers of which something is wanted, as they are now: one may have been replaced.

        The same `structure` as at a step before has the same layers.
        """
        self._look_for_graphs()
        circumstances = (structure, due, in_graph)
        if circumstances == self._circumstances and (self._hooked is not None or self._hook_again()):
            return
        wanted = self._visible(structure.layers, losses, due, in_graph)
        if self._hooked is not None and self._are_hooked(wanted):
            return
        self.remove()
        self._hooked = self._before = [self._hooked_layer(layer) for layer in wanted]
        self._circumstances = circumstances
        if any(wish.layer.is_in_graph and not wish.from_graph for wish in wanted):
            self._stance = torch.compiler.set_stance("force_eager")
            self._stance.__enter__()

    def remove(self) -> None:
        """Unhook every layer."""
        self._look_for_graphs()
        for layer in self._hooked or ():
            if layer.handle is not None:
                layer.handle.remove()
        self._hooked = None
        if self._stance is not None:
            self._stance.__exit__(None, None, None)
            self._stance = None

    def unhook(self, layers: Iterable[Layer]) -> None:
        """Unhook these before a graph reads their callbacks: it would be compiled again without them."""
        ids = {id(layer.module) for layer in layers}
        for layer in self._hooked or ():
            if layer.handle is not None and id(layer.module()) in ids:
                layer.handle.remove()

    def _hook_again(self) -> bool:
        """Hook the layers that were hooked before, if that is all there is to do."""
        again: list[_HookedLayer] = []
        for layer in self._before:
            module: Any = layer.module()
            if module is not None and isinstance(layer.handle, graphs.Awaited):
                layer.handle.renew()
                again.append(layer)
                continue
            if module is None or layer.around is None:
                for each in again:
                    each.handle.remove()
                return False
            hooks = getattr(module, "_forward_hooks", None)
            handle = layer.handle
            if hooks is None or handle.hooks_dict_ref() is not hooks or handle.id in hooks:
                handle = module.register_forward_hook(layer.around, with_kwargs=layer.inputs)
                layer = layer._replace(handle=handle)
            else:  # with the same handle, which takes a fifth of the time
                hooks[handle.id] = layer.around
                if layer.inputs:
                    module._forward_hooks_with_kwargs[handle.id] = True
            again.append(layer)
        self._hooked = again
        return True

    def _hooked_layer(self, wanted: _Wanted) -> _HookedLayer:
        layer, inputs, outputs, from_graph = wanted
        if from_graph:
            wish = graphs.Awaited(unwrapped(layer.module), self._recorded_as(layer.name, inputs, outputs))
            return _HookedLayer(ref(layer.module), layer.name, inputs, outputs, wish, None)
        around = AroundLayer(self._hook, layer.name, inputs=inputs, outputs=outputs)
        handle = None
        try:
            handle = layer.module.register_forward_hook(around, with_kwargs=inputs)
        except RuntimeError:
            if not isinstance(layer.module, torch.jit.ScriptModule):
                raise
            self._hook.warn_once(
                f"Inputs and outputs of the layer {layer.name} are "
                "not saved: it is scripted, and takes no hooks"
            )
        is_simple = handle is not None and not layer.is_in_graph
        return _HookedLayer(
            ref(layer.module), layer.name, inputs, outputs, handle, around if is_simple else None
        )

    def _recorded_as(self, name: str, inputs: bool, outputs: bool) -> graphs.Shown:
        """Return what records the tensors that a graph shows of a layer."""
        hook = self._hook

        def record(tensors: list[torch.Tensor], are_inputs: bool) -> None:
            if not hook.saves_now:
                return
            try:
                if are_inputs and inputs:
                    hook.record_inputs(name, tensors)
                elif outputs and not are_inputs:
                    hook.record_outputs(name, tensors)
            except Exception as error:  # noqa: BLE001 - whatever it is, the training continues
                hook.leave_out(error)

        return record

    def _look_for_graphs(self) -> None:
        """Say once that no graph has shown a layer since it was hooked, if that is so."""
        if self._has_seen_graphs:
            return
        awaited = [layer for layer in self._hooked or () if isinstance(layer.handle, graphs.Awaited)]
        if not awaited:
            return
        self._has_seen_graphs = any(layer.handle.has_come for layer in awaited)
        if not self._has_seen_graphs:
            self._has_seen_graphs = True  # it is said once
            self._warn_of_hidden(awaited[0].name, len(awaited) - 1, _COMPILED_BEFORE)

    def _are_hooked(self, wanted: list[_Wanted]) -> bool:
        hooked = self._hooked or []
        return len(wanted) == len(hooked) and all(
            layer.is_for(wish) for wish, layer in zip(wanted, hooked, strict=True)
        )

    def _visible(
        self, layers: Iterable[Layer], losses: Iterable[Layer], due: int, in_graph: InGraph
    ) -> list[_Wanted]:
        """The layers of which something is wanted, without those that a compiled graph hides."""
        visible: list[_Wanted] = []
        hidden: list[Layer] = []
        known = [(layer, layer.is_in_graph or bool(in_graph)) for layer in layers]
        if in_graph is InGraph.LAYERS and known:  # the first is the model
            known[0] = known[0][0], known[0][0].is_in_graph
        known += [(loss, False) for loss in losses]
        for layer, is_inside in known:
            inputs, outputs = self._wanted_of(due, layer.name)
            if not (inputs or outputs):
                continue
            from_graph = is_inside and self._sees_graphs and graphs.is_shown(unwrapped(layer.module))
            wanted = _Wanted(layer, inputs, outputs, from_graph)
            if is_inside and not from_graph and not (self._runs_eagerly and not in_graph):
                hidden.append(layer)
            else:
                visible.append(wanted)
        missed = [layer for layer in hidden if self._would_be_saved(layer)]
        if missed and not (self._sees_graphs and all(map(_needs_no_showing, missed))):
            self._warn_of_hidden(missed[0].name, len(missed) - 1, _why(missed[0]))
        return visible

    def _would_be_saved(self, layer: Layer) -> bool:
        wants = self._hook.wants
        return wants(f"{layer.name}_input_0") or wants(f"{layer.name}_output_0")

    def _warn_of_hidden(self, first: str, others: int, why: str) -> None:
        and_others = f" and of {others} others" if others else ""
        self._hook.warn_once(f"Inputs and outputs of the layer {first}{and_others} are not saved: {why}")

    def _wanted_of(self, due: int, name: str) -> tuple[bool, bool]:
        wanted = self._wanted.get((due, name))
        if wanted is None:
            inputs, outputs = self._wants_any(f"{name}_input_"), self._wants_any(f"{name}_output_")
            wanted = self._wanted[due, name] = inputs, outputs
        return wanted

    def _includes_any(self, prefix: str) -> bool:
        """Whether any input, or any output, of a layer is wanted at any step."""
        return self._any(prefix, self._hook.includes)

    def _wants_any(self, prefix: str) -> bool:
        """Whether any input, or any output, of a layer is wanted now."""
        return self._any(prefix, self._hook.takes)

    def _any(self, prefix: str, takes: Callable[[str], bool]) -> bool:
        return any(takes(f"{prefix}{number}") for number in range(NUMBERS_TRIED)) or any(
            name.startswith(prefix) and takes(name)
            for collection in self._hook.get_collections().values()
            for name in collection.tensor_names
        )


def _needs_no_showing(layer: Layer) -> bool:
    return graphs.passes_on(unwrapped(layer.module))


def _why(hidden: Layer) -> str:
    """Return why the inside of a layer is not seen, and what to do."""
    if isinstance(unwrapped(hidden.module), torch.jit.ScriptModule):
        return "torch.jit has compiled the model. Train it before compiling it, and they will be."
    todo = (
        "See compiled_layers, and register a model before its first compiled call."
        if _CAN_LEAVE_GRAPHS
        else "From PyTorch 2.6 on they can be saved: see compiled_layers."
    )
    return f"they run inside a compiled graph. {todo}"
