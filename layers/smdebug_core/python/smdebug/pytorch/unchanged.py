"""Watching an unchanged PyTorch script.

The model is the first module that is called and has parameters of an optimizer. When others are trained and
it is no longer called, as from fold to fold, the one that is trained replaces it. All losses of `torch.nn`
are watched; at a step without one, the number that `backward` was called on is saved. `model.training` and
whether gradients are enabled distinguish training from evaluation.
"""

from __future__ import annotations

import functools
import gc
import warnings
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakSet, WeakValueDictionary, ref

import torch
from torch import nn
from torch.nn.modules.loss import _Loss
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.nn.parameter import is_lazy

from smdebug.exceptions import SMDebugError, TrainingStopped
from smdebug.logger import get_logger
from smdebug.mode_keys import ModeKeys
from smdebug.pytorch.hook import Hook
from smdebug.pytorch.listening.callbacks import (
    AGAIN,
    BeforeCompiled,
    Callback,
    called_from_a_graph,
    has_compiled,
    in_backward,
    is_compiling,
)
from smdebug.pytorch.listening.optimizers import tell_of_optimizers
from smdebug.pytorch.listening.passes import PASSES
from smdebug.pytorch.listening.process import PROCESS, UNSCALED
from smdebug.pytorch.modules.models import claimed_parameters
from smdebug.pytorch.modules.names import class_name, unwrapped

_LOSS = "loss"  # the name of a loss that is not a module's output
_LOSSES = 4
"""Losses of one name that are saved at a step, which may accumulate the gradients of many batches."""
_TURNS = 10
"""How often another model is trained before it takes the place of one that still exists. A critic has fewer
turns between two calls of its generator."""


_MOST_CALLED = 64
"""How many called modules without parameters of an optimizer to remember."""

watchers: list[_Watcher] = []


def watch(make_hook: Callable[[Any], Any]) -> None:
    """Watch every training in this process from now on, unless `make_hook` returns no hook for it."""
    watcher = _Watcher(make_hook)
    watchers.append(watcher)
    watcher.begin()


def stop() -> None:
    """Watch nothing until `restart`."""
    for watcher in watchers:
        watcher.stop()


def restart() -> None:
    """Treat what is trained from now on as another training, with its own hook."""
    for watcher in watchers:
        watcher.restart()


def passes_over_trainings() -> bool:
    """Return whether a training was left to the callback that a person gave to its Trainer."""
    return any(watcher.is_passed_over for watcher in watchers)


class _Watcher:
    def __init__(self, make_hook: Callable[[Any], Any]):
        self._make_hook = make_hook
        self._hook: Hook | None = None
        self._driven: Hook | None = None  # by a callback that has joined a Trainer
        # Parameters of optimizers that belong to no known model, by their `id` for as long as they live:
        # another tensor may get the `id` of one that is gone.
        self._trained: WeakValueDictionary[int, torch.Tensor] = WeakValueDictionary()
        self._others: WeakSet[nn.Module] = WeakSet()  # modules that have none of them
        self._called: list[ref[nn.Module]] = []  # the first of those, in the order of their calls
        self._is_sought = False  # a model that no call has shown was searched for
        # Backward passes begin steps: the model's forward is part of a graph.
        self._in_graph = False
        self._models: WeakSet[nn.Module] = WeakSet()
        self._model: ref[nn.Module] | None = None  # whose forward begins a step
        self._turns = 0  # of other models since that was called
        self._first_step = 0  # of a run that begins
        self._has_turned = False  # backward was called since the last forward of them
        self._handle: Any = None
        self._optimizers: WeakSet[Any] = WeakSet()
        self._is_active = True
        self._in_loss = False
        self.is_passed_over = False  # a training that a callback of its own watches

    def stop(self) -> None:
        """Stop watching: forget the training that was watched."""
        self._is_active = False
        self._stop_watching_modules()
        self._hook = self._driven = self._model = None
        self._called.clear()
        self._is_sought = self._in_graph = False
        self._turns, self._has_turned, self._first_step = 0, False, 0
        self._models = WeakSet()
        self._trained.clear()

    @property
    def hook(self) -> Hook | None:
        """The hook of the training that is watched."""
        return self._hook

    def hook_to_drive(self) -> Hook | None:
        """Return the hook of the trainings of Trainers, which takes the place of another that was watched."""
        if not self._is_active:
            return None
        if self._hook is not None:
            self._hook.detach()
            self._hook = self._model = None
        if self._driven is None or self._driven.has_closed:
            self._driven = self._make_hook(Hook)
            if self._driven is not None:
                self._driven.number_training_steps()
        return self._driven

    def expect_training(self, first_step: int = 0) -> None:
        """Let the next other model take the place of the one that was; a run begins then with this step."""
        self._turns, self._first_step = _TURNS, first_step

    def restart(self) -> None:
        """Watch the next training. It may use an optimizer that was seen before."""
        self.stop()
        self._is_active, self.is_passed_over = True, False
        for optimizer in list(self._optimizers):
            self._optimizer_made(optimizer)

    def begin(self) -> None:
        tell_of_optimizers(functools.partial(self._contained, self._optimizer_made))
        compile_in_place = nn.Module.compile
        watcher = self

        @functools.wraps(compile_in_place)
        def module_compiled(module: Any, *args: Any, **kwargs: Any) -> Any:
            result = compile_in_place(module, *args, **kwargs)
            BeforeCompiled(module, watcher._before_compiled)
            return result

        def loss_called(loss: Any, *args: Any, **kwargs: Any) -> Any:
            if is_compiling():
                return nn.Module.__call__(loss, *args, **kwargs)
            watcher._in_loss = True  # which calls a criterion that is a function
            try:
                output = nn.Module.__call__(loss, *args, **kwargs)
            finally:
                watcher._in_loss = False
            watcher._contained(watcher._loss_called, loss, [*args, *kwargs.values()], output)
            return output

        nn.Module.compile = module_compiled
        _Loss.__call__ = loss_called
        PROCESS.install()
        PASSES.install()
        PROCESS.add(self)

    def _optimizer_made(self, optimizer: Any) -> None:
        self._optimizers.add(optimizer)
        if not self._is_active:
            return
        for group in optimizer.param_groups:
            self._trained.update((id(parameter), parameter) for parameter in group["params"])
        self._others.clear()
        self._called.clear()
        self._is_sought = False
        if self._handle is None:
            self._handle = register_module_forward_pre_hook(self._before_any_forward)
            # The callback of a compiled module itself is expected, too.
            warnings.filterwarnings("ignore", "Using `torch.compile.module.` when there are global")

    def fail(self, error: Exception) -> None:
        """Log what went wrong, and stop watching."""
        hook = self._hook
        self.stop()
        if hook is not None:
            hook.fail(error)
        else:
            kind = type(error).__name__
            get_logger().exception("The training is not watched, but goes on: %s: %s", kind, error)

    def _before_any_forward(self, module: nn.Module, args: Any) -> None:
        if not is_compiling() and module not in self._others:
            self._contained(self._consider, module)

    def _contained(self, react: Callable[..., object], *details: Any) -> None:
        """React to what the training does; it continues whatever goes wrong there."""
        if AGAIN.runs:
            return
        try:
            react(*details)
        except TrainingStopped:
            raise
        except Exception as error:  # noqa: BLE001
            self.fail(error)

    def _consider(self, module: nn.Module) -> None:
        """Watch the module that is about to be called, if it is trained."""
        if not self._trains(module):
            self._others.add(module)
            if self._is_claimed(module):
                return
            if next(module.parameters(), None) is not None and len(self._called) < _MOST_CALLED:
                self._called.append(ref(module))
            return
        # The forward of a scripted model takes no callbacks.
        self._watch(module, in_graph=isinstance(module, torch.jit.RecursiveScriptModule))

    def _trains(self, module: nn.Module) -> bool:
        """Return True if an optimizer without a known model has a parameter of the module."""
        if not self._has_trained(module):
            return False
        self._pass_over_claimed()
        return self._has_trained(module)

    def _has_trained(self, module: nn.Module) -> bool:
        return any(id(parameter) in self._trained for parameter in module.parameters())

    def _pass_over_claimed(self) -> None:
        """Leave the models that callbacks of Trainers watch, which a person gave to them."""
        for parameter in claimed_parameters():
            if self._trained.pop(parameter, None) is not None:
                self.is_passed_over = True

    def _is_claimed(self, module: nn.Module) -> bool:
        """Return whether the callback of a Trainer watches the module, which a person gave to it."""
        claimed = claimed_parameters()
        return bool(claimed) and any(id(parameter) in claimed for parameter in module.parameters())

    def _watch(self, module: nn.Module, *, in_graph: bool = False) -> None:
        """Watch a model from now on: make a hook if it is the first one, and register it."""
        if self._is_claimed(module):
            return
        for parameter in module.parameters():
            self._trained.pop(id(parameter), None)
        if not self._trained and not in_graph:  # a graph may contain that hook, as it is
            self._stop_watching_modules()
        is_first = self._hook is None
        try:
            if self._hook is None:
                self._hook = self._make_hook(Hook)
                if self._hook is None:  # no longer watched
                    self._stop_watching_modules()
                    return
                self._hook.follow_training_flag()
                self._hook.begin_at(self._first_step)
                self._first_step = 0
            if in_graph:
                self._hook.register_in_graph(module, with_optimizer=called_from_a_graph())
                self._in_graph = True
            elif self._hook.has_module(module):
                return  # its parameters are others now, as after pruning
            else:
                self._hook.register_module(module)
        except (SMDebugError, RuntimeError, OSError) as error:
            self.stop()
            get_logger().error("The training is not watched: %s", error)
            return
        self._models.add(module)
        if in_graph:
            return
        if is_first:
            self._model = ref(module)
            self._hook.before_forward(module)  # this call began before it was watched
            return
        unhooked = list(self._models) if len(self._models) == 2 else [module]
        for model in unhooked:  # a single model needs no callback
            if model._compiled_call_impl is None and not isinstance(model, torch.jit.ScriptModule):
                model.register_forward_pre_hook(_BeforeOneOfSeveral(self))
        self.before_forward(module)

    def _before_compiled(self, module: nn.Module, args: Any) -> None:
        """Replace the forward hook of a compiled model, which would be part of its graph."""
        if self._handle is not None:
            self._before_any_forward(module, args)
        elif len(self._models) > 1 and module in self._models:
            self.before_forward(module)

    def before_forward(self, module: nn.Module) -> None:
        """Find out whether one of several models, which is about to be called, is the one trained now."""
        if self._hook is not None:
            self._contained(self._before_one, module, self._hook)

    def _before_one(self, module: nn.Module, hook: Hook) -> None:
        model = self._model() if self._model is not None else None
        is_to_train = module.training and torch.is_grad_enabled() and not in_backward()
        if module is model:
            if is_to_train and _is_trainable(module):  # not one that has become a teacher
                self._turns, self._has_turned = 0, False
        elif is_to_train:
            self._turns += self._has_turned
            self._has_turned = False
            if model is None or self._turns >= _TURNS:
                hook.follow_module(module)
                self._model, self._turns = ref(module), 0
                hook.before_forward(module)  # this call began before it was watched

    def _stop_watching_modules(self) -> None:
        if self._handle is not None:
            self._handle.remove()
            self._handle = None

    def _loss_called(self, loss: nn.Module, inputs: list[Any], output: Any) -> None:
        hook = self._hook
        if hook is not None and hook.saves_now and hook.count_outputs(class_name(loss)) < _LOSSES:
            hook.record_inputs(class_name(loss), inputs)
            hook.record_outputs(class_name(loss), output)

    def before_backward(self, tensors: Sequence[Any], is_retained: bool) -> None:
        """Treat the number that a backward pass starts from as the loss, unless there is another."""
        self._has_turned, is_found = True, False
        if self._hook is None and self._is_active and self._optimizers and not self._is_sought:
            self._seek_model()
            is_found = self._hook is not None
        hook = self._hook
        if hook is not None and (self._in_graph or hook.is_in_graph):
            is_found = is_found or hook.last_step is None
            hook.begin_step(ModeKeys.TRAIN)
        if hook is not None and is_found:  # it listens to backward passes from the next one on
            for tensor in tensors:
                if isinstance(tensor, torch.Tensor) and tensor.numel() == 1:
                    hook.carry(_LOSS, getattr(tensor, UNSCALED, tensor))
        if hook is None or not hook.saves_now or hook.has_a_loss_besides(_LOSS):
            return
        for tensor in tensors:
            is_number = isinstance(tensor, torch.Tensor) and tensor.numel() == 1
            if is_number and hook.count_outputs(_LOSS) < _LOSSES:
                hook.record_tensor_value(_LOSS, getattr(tensor, UNSCALED, tensor))

    def _seek_model(self) -> None:
        """Watch the model of a training that has called none with parameters of its optimizers.

        Optimizers may own copies of the parameters, of higher precision. Or the model runs inside a
        compiled graph.
        """
        self._is_sought = True
        gc.collect()  # not optimizers of earlier trainings, which reference cycles keep alive until then
        numbers = {
            sum(p.numel() for group in optimizer.param_groups for p in group["params"])
            for optimizer in self._optimizers
        }
        for called in self._called:
            module = called()
            if module is not None and _trainable_numbers(module) in numbers:
                self._watch(module)
                return
        if not has_compiled():
            return
        owners = [
            known for known in gc.get_objects() if issubclass(type(known), nn.Module) and self._trains(known)
        ]
        inner = {child for owner in owners for child in owner.modules() if child is not owner}
        for owner in owners:
            if owner not in inner:
                self._watch(unwrapped(owner), in_graph=True)

    def after_criterion(self, name: str, value: Any) -> None:
        """Treat the result of a function as the loss of a step of evaluation, unless there is another."""
        hook = self._hook
        if hook is None or not hook.saves_now or self._in_loss:
            return
        is_number = isinstance(value, torch.Tensor) and value.numel() == 1
        if is_number and not hook.has_a_loss_besides(_LOSS):
            hook.record_tensor_value(_LOSS, value)


def _trainable_numbers(module: nn.Module) -> int:
    """The number of trained values in the module."""
    return sum(p.numel() for p in module.parameters() if p.requires_grad and not is_lazy(p))


def _is_trainable(module: nn.Module) -> bool:
    """Return whether any parameter of the module can get a gradient."""
    return any(parameter.requires_grad for parameter in module.parameters())


class _BeforeOneOfSeveral(Callback):
    """Called before the forward of a model, where there are several."""

    def __init__(self, watcher: _Watcher):
        self.watcher = watcher

    def __call__(self, module: nn.Module, args: Any) -> None:
        if not is_compiling():
            self.watcher.before_forward(module)
