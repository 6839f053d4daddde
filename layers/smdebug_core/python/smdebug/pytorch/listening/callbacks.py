"""The callables that PyTorch calls. A copied or saved model has none of them: copies are not watched."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import nullcontext
from enum import IntEnum
from typing import Any, Protocol, TypeVar
from weakref import ref

import torch
from torch import nn
from torch._C import _current_graph_task_id as graph_task
from torch._C import _is_tracing
from torch._C._functorch import peek_interpreter_stack as _innermost_transform

try:
    from torch.compiler import is_compiling as is_compiling
except ImportError:  # PyTorch 2.1
    from torch._dynamo.external_utils import is_compiling as is_compiling

try:
    from torch._C._dynamo.eval_frame import (
        _FrameAction,
        _FrameExecStrategy,
    )
    from torch._C._dynamo.eval_frame import set_code_exec_strategy as _set_strategy
except ImportError:  # PyTorch 2.1
    _set_strategy = None

try:
    from torch._C._dynamo.eval_frame import get_eval_frame_callback as _compiler
except ImportError:  # before PyTorch 2.6

    def _compiler() -> Any:
        return None


from smdebug.pytorch.listening.gradients import Gradients

is_tracing: Callable[[], bool] = _is_tracing
"""Whether `torch.jit.trace` calls, for which numbers are tensors."""
compiler: Callable[[], Any] = _compiler
"""What compiles the functions that are called next; None or False if they run as they are."""

Called = TypeVar("Called", bound=Callable[..., Any])

# What replaces a callback in the copy of a model: it takes any arguments and does nothing. It is Python's
# own, so that loading a saved model needs no smdebug.
_CONTEXT = nullcontext()


class InGraph(IntEnum):
    """What of a model is part of a compiled graph when a step begins."""

    NOTHING = 0
    LAYERS = 1
    """What its forward calls: the model itself is called from outside."""
    MODEL = 2


class WatchingHook(Protocol):
    """What callbacks need from the hook that watches a model."""

    gradients: Gradients

    @property
    def saves_now(self) -> bool: ...

    def before_forward(self, module: nn.Module, in_graph: InGraph = InGraph.NOTHING) -> None: ...

    def after_forward(self, module: nn.Module, labels: Any, output: Any) -> None: ...

    def record_inputs(self, name: str, values: Any) -> None: ...

    def record_outputs(self, name: str, values: Any) -> None: ...

    def guarded(self, capture: Callable[[], object]) -> None: ...

    def leave_out(self, error: Exception) -> None: ...

    def warn_once(self, message: str, kind: str = "") -> None: ...

    def stay_with_optimizers(self) -> None: ...

    def before_update(self, optimizer: Any) -> None: ...


class _Again:
    """Whether the library calls a model itself, to compute again what the training has computed."""

    runs = False


AGAIN = _Again()


def has_compiled() -> bool:
    """Return whether anything was compiled in this process.

    PyTorch counts frames, but not those of `fullgraph=True`, of which it counts the graphs.
    """
    dynamo = sys.modules.get("torch._dynamo.utils")
    return dynamo is not None and any(dynamo.counters.get(kind) for kind in ("frames", "stats"))


def called_from_a_graph() -> bool:
    """Return whether the caller is a compiled function, between two of its graphs."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__") == "torch._dynamo.eval_frame":
            return True
        frame = frame.f_back
    return False


def called_from_an_optimizer() -> bool:
    """Return whether the caller is the step of an optimizer, which computes gradients itself."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        if str(frame.f_globals.get("__name__")).startswith("torch.optim."):
            return True
        frame = frame.f_back
    return False


def called_to_generate() -> bool:
    """Return whether the caller generates, as `model.generate` does, or is inside of a `training_step`.

    A call without gradients in there evaluates nothing: it writes completions, or scores them.
    """
    frame: Any = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_name.lstrip("_")
        if name in ("generate", "training_step") or name.startswith("generate_"):
            return True
        frame = frame.f_back
    return False


def is_exporting() -> bool:
    """Return whether the model is called to be exported, not to compute."""
    exporting = getattr(torch.compiler, "is_exporting", None)  # since PyTorch 2.7
    return exporting is not None and bool(exporting())


def in_transform() -> bool:
    """Return whether a transform of functions, such as `torch.vmap`, calls: tensors have no values then."""
    return _innermost_transform() is not None


def in_backward() -> bool:
    """Return whether the caller is the backward pass, which recomputes activations that were not kept."""
    return bool(graph_task() != -1)


def not_compiled(function: Called) -> Called:
    """Keep the function out of graphs that call it, and from being compiled itself."""
    disabled: Called = torch.compiler.disable(function)
    return disabled


def kept_out_of_graphs(function: Called) -> Called:
    """Keep the function, and what it calls, from being compiled, at no cost to its calls.

    It must not be called from within a graph: `not_compiled` is for that.
    """
    if _set_strategy is None:
        return not_compiled(function)
    code: Any = function.__code__
    _set_strategy(code, _FrameExecStrategy(_FrameAction.SKIP, _FrameAction.SKIP))
    return function


def run_as_it_is(function: Called) -> Called:
    """Let the function run as it is outside of graphs, and be traced inside of them."""
    return function if _set_strategy is None else kept_out_of_graphs(function)


def run_alone_as_it_is(function: Called) -> Called:
    """Let the function run as it is outside of graphs, where it can see whether what follows is compiled."""
    if _set_strategy is not None:
        code: Any = function.__code__
        _set_strategy(code, _FrameExecStrategy(_FrameAction.SKIP, _FrameAction.DEFAULT))
    return function


class Callback:
    """A callback that does nothing in a copy."""

    def __deepcopy__(self, memo: Any) -> Any:
        return _CONTEXT.__exit__

    def __copy__(self) -> Any:
        return _CONTEXT.__exit__

    def __reduce__(self) -> Any:
        return getattr, (_CONTEXT, "__exit__")


class _OfHook(Callback):
    def __init__(self, hook: WatchingHook):
        self.hook = hook


class AfterForward(_OfHook):
    """Called after the forward of a model that may be given labels."""

    @run_as_it_is
    def __call__(self, module: nn.Module, args: Any, named: Any, output: Any) -> None:
        labels = named.get("labels")
        if labels is not None and not (is_compiling() or is_tracing()) and graph_task() == -1:
            _after_forward(self.hook, module, labels, output)


@kept_out_of_graphs
def _after_forward(hook: WatchingHook, module: nn.Module, labels: Any, output: Any) -> None:
    if not AGAIN.runs:
        hook.guarded(lambda: hook.after_forward(module, labels, output))


class BeforeCompiled:
    """Called in place of a model that was compiled by `model.compile()`; `before` stays out of its graph."""

    def __init__(self, module: nn.Module, before: Callable[[nn.Module, Any], object]):
        self._module = ref(module)
        self._before: Callable[[nn.Module, Any], object] | None = before
        self._compiled: Any = module._compiled_call_impl
        module._compiled_call_impl = self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        module = self._module()
        if self._before is not None and module is not None and not is_compiling():
            self._before(module, args)
        return self._compiled(*args, **kwargs)

    def remove(self) -> None:
        """Unregister."""
        self._before = None
        module = self._module()
        if module is not None and module._compiled_call_impl is self:
            module._compiled_call_impl = self._compiled


class AroundLayer(_OfHook):
    """Called with the inputs and outputs of a layer."""

    def __init__(self, hook: WatchingHook, name: str, *, inputs: bool, outputs: bool):
        super().__init__(hook)
        self.name = name
        self.inputs = inputs
        self.outputs = outputs

    @run_as_it_is
    def __call__(self, module: nn.Module, args: Any, *rest: Any) -> None:
        if not (is_compiling() or is_tracing()):
            _after_layer(self, module, args, rest[0] if self.inputs else {}, rest[-1])


@kept_out_of_graphs
def _after_layer(around: AroundLayer, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
    if not around.hook.saves_now or graph_task() != -1 or AGAIN.runs:  # in a backward pass: see `in_backward`
        return
    if "_is_replica" in module.__dict__:  # which DataParallel sets; getattr would search the whole module
        around.hook.warn_once(
            f"{around.name} runs on several devices at once (DataParallel): inputs and outputs of its "
            "replicas are not saved"
        )
        return
    try:
        if in_transform():
            around.hook.warn_once(
                f"Inputs and outputs of {around.name} (others may too) are not saved: it is called within a "
                "transform such as torch.vmap, where tensors have no values",
                "transform",
            )
            return
        if around.inputs:
            around.hook.record_inputs(around.name, [*args, *kwargs.values()])
        if around.outputs:
            around.hook.record_outputs(around.name, output)
    except Exception as error:  # noqa: BLE001 - whatever it is, the training continues
        around.hook.leave_out(error)


class AfterAccumulation(_OfHook):
    """Called when a backward pass has set a parameter's gradient, or added to it."""

    def __call__(self, parameter: torch.Tensor) -> None:
        _after_accumulation(self.hook, parameter)


@kept_out_of_graphs
def _after_accumulation(hook: WatchingHook, parameter: torch.Tensor) -> None:
    hook.guarded(lambda: hook.gradients.accumulated(parameter))


class BeforeOptimizer(_OfHook):
    """Called with every optimizer of the process before it changes parameters."""

    def __call__(self, optimizer: Any, args: Any, kwargs: Any) -> Any:
        if is_compiling():
            self.hook.stay_with_optimizers()
            return _before_compiled_step(self.hook, optimizer, args, kwargs)
        return _before_step(self.hook, optimizer, args, kwargs)


@not_compiled
def _before_compiled_step(hook: WatchingHook, optimizer: Any, args: Any, kwargs: Any) -> Any:
    """Record gradients before a compiled step of the optimizer, outside of its graph."""
    return _with_gradients(hook, optimizer, args, kwargs)


@kept_out_of_graphs
def _before_step(hook: WatchingHook, optimizer: Any, args: Any, kwargs: Any) -> Any:
    """Record gradients before a step of the optimizer."""
    hook.before_update(optimizer)
    return _with_gradients(hook, optimizer, args, kwargs)


def _with_gradients(hook: WatchingHook, optimizer: Any, args: Any, kwargs: Any) -> Any:
    gradients = hook.gradients
    if not gradients.are_awaited:
        return None
    closure = args[1] if len(args) > 1 else kwargs.get("closure")
    if closure is None:
        hook.guarded(lambda: gradients.used_by(optimizer))
        return None

    def watched_closure() -> Any:  # the gradients are computed in there
        result = closure()
        hook.guarded(lambda: gradients.used_by(optimizer))
        return result

    if len(args) > 1:
        return (args[0], watched_closure, *args[2:]), kwargs
    return args, {**kwargs, "closure": watched_closure}
