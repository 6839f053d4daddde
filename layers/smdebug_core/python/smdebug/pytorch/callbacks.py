"""What PyTorch calls. A model that is copied or saved takes none of it along: a copy is nobody's run."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch._C import _current_graph_task_id as graph_task
from torch.compiler import is_compiling

if TYPE_CHECKING:
    from smdebug.pytorch.hook import Hook


# What a callback is in the copy of a model: it takes what it is given and does nothing. It is Python's own,
# so that who loads a saved model needs no smdebug.
_CONTEXT = nullcontext()


def in_backward() -> bool:
    """Does the backward pass call, to compute once more what was not kept?"""
    return bool(graph_task() != -1)


class _Callback:
    """Calls the hook; in a copy, nothing."""

    def __init__(self, hook: Hook):
        self.hook = hook

    def __deepcopy__(self, memo: Any) -> Any:
        return _CONTEXT.__exit__

    def __copy__(self) -> Any:
        return _CONTEXT.__exit__

    def __reduce__(self) -> Any:
        return getattr, (_CONTEXT, "__exit__")


class BeforeForward(_Callback):
    """Called before the forward of a model: a step begins."""

    def __call__(self, module: nn.Module, args: Any) -> None:
        if is_compiling():
            _outside_the_graph(self, module)
        else:
            self.hook.before_forward(module)


@torch.compiler.disable  # type: ignore[untyped-decorator, unused-ignore]
def _outside_the_graph(callback: BeforeForward, module: nn.Module) -> None:
    """The model was registered before it was compiled, so its graph calls out, to here."""
    callback.hook.before_forward(module, in_graph=True)


class AroundLayer(_Callback):
    """Called with what a layer was given, and what it gave."""

    def __init__(self, hook: Hook, name: str, *, inputs: bool, outputs: bool):
        super().__init__(hook)
        self.name = name
        self.inputs = inputs
        self.outputs = outputs

    def __call__(self, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        if is_compiling():
            return
        if self.hook.saves_now and not in_backward():
            if getattr(module, "_is_replica", False):
                self.hook.say_once(
                    f"{self.name} runs on several devices at once (DataParallel): what its replicas are "
                    "given and give is not saved"
                )
                return
            if self.inputs:
                self.hook.record_inputs(self.name, [*args, *kwargs.values()])
            if self.outputs:
                self.hook.record_outputs(self.name, output)


class AfterAccumulation(_Callback):
    """Called when a parameter has been given its gradient, or more of it."""

    def __call__(self, parameter: torch.Tensor) -> None:
        self.hook.guarded(lambda: self.hook.gradients.accumulated(parameter))


class BeforeOptimizer(_Callback):
    """Called with every optimizer of the process before it changes parameters."""

    def __call__(self, optimizer: Any, args: Any, kwargs: Any) -> Any:
        gradients = self.hook.gradients
        if not gradients.are_awaited:
            return None
        closure = args[1] if len(args) > 1 else kwargs.get("closure")
        if closure is None:
            self.hook.guarded(lambda: gradients.used_by(optimizer))
            return None

        def closure_told() -> Any:  # the gradients come into being only in there
            result = closure()
            self.hook.guarded(lambda: gradients.used_by(optimizer))
            return result

        if len(args) > 1:
            return (args[0], closure_told, *args[2:]), kwargs
        return args, {**kwargs, "closure": closure_told}
