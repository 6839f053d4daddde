"""Begins a step before the forward of a model, called as it is or inside of a compiled graph.

Of a model that is compiled alone, PyTorch calls the callbacks, and then a graph. Within a function that is
compiled it calls none: it traces them, and what they do becomes a part of the graph. So the callback calls an
operator there, by which the step begins when the graph runs (`in_graph.py`). While the graph is traced, what
is marked as constant is called once: there the layers are prepared, which the graph is about to contain.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Protocol
from weakref import ref

import torch
from torch import nn

from smdebug.pytorch.listening.callbacks import (
    Callback,
    InGraph,
    WatchingHook,
    compiler,
    is_compiling,
    is_exporting,
    is_tracing,
    not_compiled,
    run_alone_as_it_is,
)
from smdebug.pytorch.listening.in_graph import CAN_SHOW, let_begin

_BY_OPERATOR, _BY_BREAK, _NOT = "operator", "break", "not"


class BeginningHook(WatchingHook, Protocol):
    """What beginning needs from a hook."""

    def prepare_graph(self, module: nn.Module, number: torch.Tensor) -> None: ...

    def has_no_beginning(self) -> None: ...


class BeforeForward(Callback):
    """Called before the forward of a model: a step begins."""

    def __init__(self, hook: BeginningHook, module: nn.Module):
        self.hook = hook
        self._module = ref(module)
        self.how_in_graph = _while_traced(self)

    @run_alone_as_it_is
    def __call__(self, module: nn.Module, args: Any) -> None:
        if is_compiling():
            if not is_exporting():
                how = self.how_in_graph()
                if how == _BY_OPERATOR:
                    torch.ops.smdebug.begin(module._smdebug_number, torch.is_grad_enabled())
                elif how == _BY_BREAK:
                    _outside_the_graph(self, module)
        elif not is_tracing():
            compiles = compiler() not in (None, False)  # what is called next, or runs it as a graph
            self.hook.before_forward(module, InGraph.LAYERS if compiles else InGraph.NOTHING)

    def in_graph(self, module: nn.Module) -> None:
        """Begin a step, called by the operator."""
        self.hook.before_forward(module, InGraph.MODEL)

    def prepared(self) -> str:
        """Prepare for a graph that is being traced; return how the step begins in there."""
        module, tracing = self._module(), _tracing()
        if module is None or tracing is None:
            return _NOT
        if CAN_SHOW:
            try:
                self.hook.prepare_graph(module, let_begin(module, self))
            except Exception as error:  # noqa: BLE001 - whatever it is, the training continues
                self.hook.leave_out(error)
            return _BY_OPERATOR
        is_export, is_whole, code = tracing
        if is_export or code is BeforeForward.__call__.__code__:
            return _NOT  # traced alone, the callback is called as it is
        if not is_whole:
            return _BY_BREAK
        self.hook.has_no_beginning()
        return _NOT


def _while_traced(before: BeforeForward) -> Callable[[], str]:
    """Return what is called once while a graph is traced, which keeps the result."""

    known = ref(before)

    def how_in_graph() -> str:
        found = known()
        return _NOT if found is None else found.prepared()

    marked: Any = how_in_graph
    marked._dynamo_marked_constant = True  # as torch.compiler.assume_constant_result does, and no more
    return how_in_graph


def _tracing() -> tuple[bool, bool, Any] | None:
    """Of what is being traced: whether it is exported, must stay in one piece, and where that began."""
    found = None
    frame: Any = sys._getframe(1)
    while frame is not None:
        tracer = frame.f_locals.get("self")
        if hasattr(tracer, "one_graph") and hasattr(tracer, "f_code"):
            found = bool(getattr(tracer, "export", False)), bool(tracer.one_graph), tracer.f_code
        frame = frame.f_back
    return found


@not_compiled
def _outside_the_graph(callback: BeforeForward, module: nn.Module) -> None:
    """Begin a step between two graphs."""
    callback.in_graph(module)
