"""Calls listeners around what is not a module: backward passes, criteria, dropout, scales, compiling.

PyTorch offers no hooks for these, so its functions are replaced by ones that call listeners. That happens
once, when the first listener to an event is added; without listeners they behave as before.
"""

from __future__ import annotations

import functools
import gc
import operator
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from types import FunctionType, ModuleType
from typing import Any, cast
from weakref import ref

import torch
from torch import nn
from torch._C import _current_graph_task_id as graph_task
from torch.nn import functional as F  # noqa: N812

from smdebug.exceptions import TrainingStopped
from smdebug.pytorch.listening.callbacks import (
    AGAIN,
    WatchingHook,
    is_compiling,
    is_tracing,
    kept_out_of_graphs,
)

_ABSOLUTE = "l1_loss"
CRITERIA = (
    "cross_entropy",
    "nll_loss",
    "mse_loss",
    _ABSOLUTE,
    "smooth_l1_loss",
    "huber_loss",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "kl_div",
    "ctc_loss",
)
DROPOUTS = (
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "alpha_dropout",
    "feature_alpha_dropout",
)
_EVENTS = (
    "before_backward",
    "after_backward",
    "after_criterion",
    "after_absolute_error",
    "before_dropout",
    "after_scaling",
    "after_scaled_step",
    "before_compile",
)
_LIBRARIES = frozenset({"torch", "smdebug"})
"""Packages whose modules keep the functions that they have."""
UNSCALED = "_smdebug_unscaled"
"""The attribute of a scaled loss that holds the loss as it was."""
# Before PyTorch 2.3 CUDA alone had one.
GradScaler: Any = getattr(torch.amp, "GradScaler", None) or torch.cuda.amp.GradScaler


class _Process:
    """The listeners of this process, by what they listen to: the name of their method.

    before_backward(tensors, is_retained)
                                   a backward pass is about to begin with these tensors; their graph is
                                   retained for another one, or freed
    after_backward()               it has ended
    after_criterion(name, value)   a criterion of `torch.nn.functional` has returned this without a graph;
                                   modules call them, too
    after_absolute_error(value, args, kwargs)
                                   an absolute error with a graph was computed of these: it keeps no targets
    before_dropout(rate, values)   dropout is about to be applied
    after_scaling(scaler)          a loss was scaled
    after_scaled_step(optimizer)   a scaler has called this optimizer's step, or skipped it
    before_compile(module)         something is about to be compiled: a module, or None for a function

    fail(error)                    what a listener raised, other than a request to stop
    """

    def __init__(self) -> None:
        self._listeners: dict[str, tuple[ref[Any], ...]] = dict.fromkeys(_EVENTS, ())
        self._installed: set[str] = set()

    def add(self, listener: Any) -> None:
        """Call the listener's methods from now on, for as long as it is referenced."""
        self.discard(listener)
        for event in _EVENTS:
            if hasattr(listener, event):
                self._listeners[event] += (ref(listener),)
                self._install(event)

    def install(self) -> None:
        """Replace all functions now: a graph that contains them later would be compiled again."""
        for event in _EVENTS:
            self._install(event)

    def discard(self, listener: Any) -> None:
        """Stop calling the listener."""
        for event, known in self._listeners.items():
            self._listeners[event] = tuple(
                reference for reference in known if reference() not in (None, listener)
            )

    def tell(self, event: str, *details: Any) -> None:
        """Call the listeners to that event which still exist. One that fails gets its error instead."""
        if AGAIN.runs:
            return
        for known in self._listeners[event]:
            listener = known()
            if listener is None:
                continue
            try:
                getattr(listener, event)(*details)
            except TrainingStopped:
                raise
            except Exception as error:  # noqa: BLE001 - whatever it is, the training continues
                listener.fail(error)

    def _install(self, event: str) -> None:
        if event not in self._installed:
            self._installed.add(event)
            getattr(self, f"_install_{event}")()

    def _install_before_backward(self) -> None:
        torch.autograd.backward = self._backward(torch.autograd.backward)
        GradScaler.scale = self._scale(GradScaler.scale)

    def _install_after_backward(self) -> None:
        """The end of a backward pass is watched together with its beginning."""

    def _install_after_criterion(self) -> None:
        _replace({name: self._criterion(name, getattr(F, name)) for name in CRITERIA})

    def _install_after_absolute_error(self) -> None:
        """Absolute errors are watched together with the other criteria."""

    def _install_before_dropout(self) -> None:
        known = [name for name in DROPOUTS if hasattr(F, name)]
        _replace({name: self._dropout(getattr(F, name)) for name in known})

    def _install_after_scaling(self) -> None:
        """Scaling is watched together with backward passes."""

    def _install_after_scaled_step(self) -> None:
        GradScaler.step = self._step(GradScaler.step)

    def _install_before_compile(self) -> None:
        """Watch what every way to compile calls, when it is asked to: graphs are made at the first call."""
        eval_frame: Any = import_module("torch._dynamo.eval_frame")
        torch._dynamo.optimize = self._compile(torch._dynamo.optimize, lambda arguments: None)
        made = eval_frame.OptimizedModule.__init__
        eval_frame.OptimizedModule.__init__ = self._compile(made, lambda arguments: arguments[1])
        module: Any = nn.Module
        module.compile = self._compile(module.compile, lambda arguments: arguments[0])

    def _compile(self, compiled: Any, module_in: Callable[[Any], Any]) -> Any:
        @functools.wraps(compiled)
        def watched_compile(*args: Any, **kwargs: Any) -> Any:
            self.tell("before_compile", module_in([*args, *kwargs.values(), None]))
            return compiled(*args, **kwargs)

        return watched_compile

    def _backward(self, backward: Any) -> Any:
        @functools.wraps(backward, updated=())  # one kept out of graphs would replace ours, too
        def watched_backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            if isinstance(tensors, torch.Tensor):  # as mostly
                given: Sequence[Any] = (tensors,)
            else:
                if isinstance(tensors, Iterator):  # which can be read once
                    tensors = tuple(tensors)
                given = tensors if isinstance(tensors, Sequence) else (tensors,)
            is_retained = bool(args[1] if len(args) > 1 else kwargs.get("retain_graph"))
            # A recomputation of activations calls it within a backward pass.
            is_outermost = graph_task() == -1
            if is_outermost:
                for known in self._listeners["before_backward"]:  # as `tell` does, without the call
                    listener = known()
                    if listener is None:
                        continue
                    try:
                        listener.before_backward(given, is_retained)
                    except TrainingStopped:
                        raise
                    except Exception as error:  # noqa: BLE001 - whatever it is, the training continues
                        listener.fail(error)
            result = backward(tensors, *args, **kwargs)
            if is_outermost and self._listeners["after_backward"]:
                self.tell("after_backward")
            return result

        return kept_out_of_graphs(watched_backward)

    def _criterion(self, name: str, criterion: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(criterion)
        def watched_criterion(*args: Any, **kwargs: Any) -> Any:
            value = criterion(*args, **kwargs)
            if is_compiling() or is_tracing():
                return value
            if not torch.is_grad_enabled():
                self.tell("after_criterion", name, value)
            elif name == _ABSOLUTE:
                self.tell("after_absolute_error", value, args, kwargs)
            return value

        return _scriptable(watched_criterion, criterion)

    def _dropout(self, dropout: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(dropout)
        def watched_dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
            if training and p and not is_compiling() and not is_tracing():
                self.tell("before_dropout", p, input)
            return dropout(input, p, training, inplace)

        return _scriptable(watched_dropout, dropout)

    def _scale(self, scale: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(scale)
        def watched_scale(scaler: Any, outputs: Any) -> Any:
            scaled = scale(scaler, outputs)
            if self._listeners["before_backward"] and isinstance(scaled, torch.Tensor):
                setattr(scaled, UNSCALED, outputs)
                self.tell("after_scaling", scaler)
            return scaled

        return watched_scale

    def _step(self, step: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(step)
        def watched_step(scaler: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            result = step(scaler, optimizer, *args, **kwargs)
            self.tell("after_scaled_step", optimizer)
            return result

        return watched_step


def _scriptable(watched: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    """Let `torch.jit.script` compile the function itself: it cannot compile what calls listeners.

    It takes it for a wrapper of `torch.jit.script_if_tracing`, and looks names up where the function was
    defined. With `__prepare_scriptable__`, PyTorch 2.1 looks them up in this module.
    """
    setattr(watched, "__script_if_tracing_wrapper", True)
    setattr(watched, "__original_fn", function)
    return cast(Callable[..., Any], watched)


def _replace(replacements: Mapping[str, Callable[..., Any]]) -> None:
    """Replace functions of `torch.nn.functional`, and what scripts and models have from there so far.

    A function that is no longer found under its name cannot be pickled.
    """
    by_identity = {id(getattr(F, name)): made for name, made in replacements.items()}
    for name, made in replacements.items():
        setattr(F, name, made)
    for module_name, module in list(sys.modules.items()):
        if not isinstance(module, ModuleType) or module_name.partition(".")[0] in _LIBRARIES:
            continue
        for name, value in list(vars(module).items()):
            if id(value) in by_identity:
                setattr(module, name, by_identity[id(value)])
            elif isinstance(value, FunctionType) and value.__defaults__:
                defaults = value.__defaults__
                changed = tuple(by_identity.get(id(default), default) for default in defaults)
                if any(map(operator.is_not, changed, defaults)):
                    value.__defaults__ = changed
    for known in gc.get_objects():
        if issubclass(type(known), nn.Module):
            for name, value in list(vars(known).items()):
                if id(value) in by_identity:
                    vars(known)[name] = by_identity[id(value)]


PROCESS = _Process()


class SkippedSteps:
    """Records the gradients of steps that a scaler has skipped, because they overflowed."""

    def __init__(self, hook: WatchingHook):
        self._hook = hook
        PROCESS.add(self)

    def after_scaled_step(self, optimizer: Any) -> None:
        """Record the gradients that are still awaited: the step did not use them."""
        gradients = self._hook.gradients
        if gradients:
            self._hook.guarded(lambda: gradients.used_by(optimizer))

    def fail(self, error: Exception) -> None:
        """Log what went wrong; that is left out, and the rest is saved."""
        self._hook.leave_out(error)
