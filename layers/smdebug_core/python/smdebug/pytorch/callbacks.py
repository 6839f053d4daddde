"""What PyTorch calls. A model that is copied or saved takes none of it along: a copy is nobody's run."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import ref

import torch
from torch import nn
from torch._C import _current_graph_task_id as graph_task
from torch._C import _is_tracing as is_tracing

try:
    from torch.compiler import is_compiling as is_compiling
except ImportError:  # PyTorch 2.1
    from torch._dynamo.external_utils import is_compiling as is_compiling

if TYPE_CHECKING:
    from smdebug.pytorch.hook import Hook


Called = TypeVar("Called", bound=Callable[..., Any])

# What a callback is in the copy of a model: it takes what it is given and does nothing. It is Python's own,
# so that who loads a saved model needs no smdebug.
_CONTEXT = nullcontext()


def is_exporting() -> bool:
    """Is the model called to be exported, not to compute?"""
    asked = getattr(torch.compiler, "is_exporting", None)  # since PyTorch 2.7
    return asked is not None and bool(asked())


def in_backward() -> bool:
    """Does the backward pass call, to compute once more what was not kept?"""
    return bool(graph_task() != -1)


def not_compiled(function: Called) -> Called:
    """Of compiled code that calls it, it becomes no part, nor is it compiled by itself."""
    disabled: Called = torch.compiler.disable(function)
    return disabled


class Callback:
    """In a copy, it calls nothing."""

    def __deepcopy__(self, memo: Any) -> Any:
        return _CONTEXT.__exit__

    def __copy__(self) -> Any:
        return _CONTEXT.__exit__

    def __reduce__(self) -> Any:
        return getattr, (_CONTEXT, "__exit__")


class _OfHook(Callback):
    def __init__(self, hook: Hook):
        self.hook = hook


class BeforeForward(_OfHook):
    """Called before the forward of a model: a step begins."""

    def __call__(self, module: nn.Module, args: Any) -> None:
        if is_compiling():
            if not is_exporting():
                _outside_the_graph(self, module)
        elif not is_tracing():
            self.hook.before_forward(module)


class BeforeCompiled:
    """Called in place of a model that was compiled by `model.compile()`; `before` is no part of its graph."""

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
        """Stand there no longer."""
        self._before = None
        module = self._module()
        if module is not None and module._compiled_call_impl is self:
            module._compiled_call_impl = self._compiled


@not_compiled
def _outside_the_graph(callback: BeforeForward, module: nn.Module) -> None:
    """The model was registered before it was compiled, so its graph calls out, to here."""
    callback.hook.before_forward(module, in_graph=True)


class AroundLayer(_OfHook):
    """Called with what a layer was given, and what it gave."""

    def __init__(self, hook: Hook, name: str, *, inputs: bool, outputs: bool):
        super().__init__(hook)
        self.name = name
        self.inputs = inputs
        self.outputs = outputs

    def __call__(self, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        if is_compiling() or is_tracing():
            return
        if self.hook.saves_now and not in_backward():
            _after_layer(self, module, args, kwargs, output)


@not_compiled
def _after_layer(
    around: AroundLayer, module: nn.Module, args: Any, kwargs: Any, output: Any
) -> None:
    if getattr(module, "_is_replica", False):
        around.hook.say_once(
            f"{around.name} runs on several devices at once (DataParallel): what its replicas are "
            "given and give is not saved"
        )
        return
    if around.inputs:
        around.hook.record_inputs(around.name, [*args, *kwargs.values()])
    if around.outputs:
        around.hook.record_outputs(around.name, output)


class AfterAccumulation(_OfHook):
    """Called when a parameter has been given its gradient, or more of it."""

    def __call__(self, parameter: torch.Tensor) -> None:
        _after_accumulation(self.hook, parameter)


@not_compiled
def _after_accumulation(hook: Hook, parameter: torch.Tensor) -> None:
    hook.guarded(lambda: hook.gradients.accumulated(parameter))


class BeforeOptimizer(_OfHook):
    """Called with every optimizer of the process before it changes parameters."""

    def __call__(self, optimizer: Any, args: Any, kwargs: Any) -> Any:
        if is_compiling():
            self.hook.stays_with_optimizers()
        return _before_step(self.hook, optimizer, args, kwargs)


@not_compiled
def _before_step(hook: Hook, optimizer: Any, args: Any, kwargs: Any) -> Any:
    """A compiled step calls out, to here: nothing that we do becomes part of it."""
    gradients = hook.gradients
    if not gradients.are_awaited:
        return None
    closure = args[1] if len(args) > 1 else kwargs.get("closure")
    if closure is None:
        hook.guarded(lambda: gradients.used_by(optimizer))
        return None

    def closure_told() -> Any:  # the gradients come into being only in there
        result = closure()
        hook.guarded(lambda: gradients.used_by(optimizer))
        return result

    if len(args) > 1:
        return (args[0], closure_told, *args[2:]), kwargs
    return args, {**kwargs, "closure": closure_told}
