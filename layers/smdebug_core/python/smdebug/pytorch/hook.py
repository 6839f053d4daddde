"""The hook for PyTorch.

    hook = smd.Hook("s3://bucket/run", include_collections=["weights", "gradients"])
    hook.register_module(model)      # each forward of the model begins a step
    hook.register_loss(criterion)

At a step of which nothing is saved the hook does no more than count it. At one that is saved, parameters are
taken before the forward, what layers are given and give as it happens, gradients when the optimizer is about
to use them.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary, ref

import numpy as np

from smdebug.config.keys import CollectionKeys
from smdebug.config.reduction_config import ReductionConfig
from smdebug.config.save_config import SaveConfig
from smdebug.exceptions import SMDebugTypeError, SMDebugValueError, TrainingStopped
from smdebug.mode_keys import ModeKeys
from smdebug.pytorch.collection import CollectionManager
from smdebug.saving.control import LOOK_EVERY, Agree
from smdebug.saving.framework import require
from smdebug.saving.hook import CallbackHook, Checksum
from smdebug.saving.places import Place

require("PyTorch", "torch", "torch")

import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn.modules.loss import _Loss  # noqa: E402
from torch.nn.parameter import is_lazy  # noqa: E402
from torch.optim.optimizer import register_optimizer_step_pre_hook  # noqa: E402

from smdebug.pytorch.arrays import (  # noqa: E402
    Copied,
    as_array,
    copy_values,
    is_flattened,
    is_plain,
    is_sharded,
    owns_its_values,
)
from smdebug.pytorch.callbacks import (  # noqa: E402
    AfterAccumulation,
    AroundLayer,
    BeforeCompiled,
    BeforeForward,
    BeforeOptimizer,
    in_backward,
)
from smdebug.pytorch.gradients import Gradients  # noqa: E402
from smdebug.pytorch.names import (  # noqa: E402
    Layer,
    class_name,
    layers_of,
    name_layers,
    parameters_of,
    unwrapped,
)
from smdebug.pytorch.ranks import Agreement, rank_and_size  # noqa: E402

DEFAULT_INCLUDE_COLLECTIONS = [CollectionKeys.LOSSES]
# How many inputs and outputs a layer will have is not known beforehand: so many are asked for.
_NUMBERS_ASKED_FOR = 16
_MAY_LEAVE_GRAPHS = hasattr(torch.compiler, "set_stance")  # since PyTorch 2.6

# What a layer may give: that tensors are found in, and that has none.
_KNOWN = (
    *(Mapping, list, tuple, type(None), bool, int, float, complex, str, bytes),
    *(torch.dtype, torch.device, torch.layout),
)

# Who watches a module.
_hooks: WeakKeyDictionary[nn.Module, ref[Hook]] = WeakKeyDictionary()


class _Model(NamedTuple):
    """A model that was registered. It is its owner's: here it is not kept alive."""

    module: ref[nn.Module]
    root: str  # what it is called


class _HookedLayer(NamedTuple):
    module: ref[nn.Module]
    name: str
    inputs: bool
    outputs: bool
    handle: Any  # None: it could not be hooked


class Hook(CallbackHook):
    """Saves weights, gradients, losses, and what layers are given and give, while a PyTorch model trains.

        hook = smd.Hook(out_dir, include_collections=["weights", "gradients"])
        hook.register_module(model)
        hook.register_loss(criterion)

    Each forward of the model is a step; `hook.set_mode(modes.EVAL)` says what the next ones belong to. Who
    writes `with hook.step(modes.TRAIN):` says alone where a step begins.

    The layers inside of a compiled model are not seen. With `compiled_layers="eager"` the steps at which they
    are saved run uncompiled, which may change the last bits of results.
    """

    _takes_over = True

    def __init__(
        self,
        out_dir: Place | None = None,
        export_tensorboard: bool = False,
        tensorboard_dir: str | None = None,
        dry_run: bool = False,
        reduction_config: ReductionConfig | None = None,
        save_config: SaveConfig | Mapping[ModeKeys, Any] | None = None,
        include_regex: str | Iterable[str] | None = None,
        include_collections: str | Iterable[str] | None = None,
        save_all: bool = False,
        include_workers: str = "one",
        *,
        compiled_layers: str = "skip",
        run_id: str | None = None,
        checksum: Checksum = "constant",
        rules: Any = None,
        agree: Agree | None = None,
        on_stop: Callable[[TrainingStopped], object] | None = None,
        look_for_stop: float | None = LOOK_EVERY,
    ):
        if compiled_layers not in ("skip", "eager"):
            raise SMDebugValueError(
                f'compiled_layers is "skip" or "eager", not {compiled_layers!r}'
            )
        self._runs_eagerly = compiled_layers == "eager" and _MAY_LEAVE_GRAPHS
        self._models: list[_Model] = []  # that are trained; the forward of the first begins a step
        self._left: list[_Model] = []  # that were
        self._losses: list[nn.Module] = []
        self._forward: Any = None  # the handle of what the first model calls
        self._wanted_of: dict[tuple[int, str], tuple[bool, bool]] = {}  # inputs, outputs of a layer
        self._hooked: list[_HookedLayer] | None = None
        self._by_hand = False  # the user begins the steps
        self._modes_by_training = False  # the mode follows model.training
        self._stance: Any = None
        self._optimizers: Any = None  # the handle of what is told when one runs
        self._stays = False  # is told of all they do, wanted or not
        self._giving: str | None = None  # whose output is recorded
        self._agreement: Agreement | None = None
        self.gradients = Gradients(self.record, self._kept, AfterAccumulation(self))
        super().__init__(
            CollectionManager(),
            DEFAULT_INCLUDE_COLLECTIONS,
            None,
            "Tensor",
            out_dir,
            export_tensorboard=export_tensorboard,
            tensorboard_dir=tensorboard_dir,
            dry_run=dry_run,
            reduction_config=reduction_config,
            save_config=save_config,
            include_regex=include_regex,
            include_collections=include_collections,
            save_all=save_all,
            include_workers=include_workers,
            run_id=run_id,
            checksum=checksum,
            rules=rules,
            agree=agree,
            on_stop=on_stop,
            look_for_stop=look_for_stop,
        )

    # What to watch

    def register_module(self, module: nn.Module) -> None:
        """Watch this model: its forward begins a step. Of several models, the first one's does.

        It may be wrapped already (`DistributedDataParallel`, `torch.compile`), which changes no names.
        """
        if not isinstance(module, nn.Module):
            raise SMDebugTypeError(f"register_module takes a torch.nn.Module, not {module!r}")
        if not self._may_watch(module):
            return
        self._forget_models_that_are_gone()
        root = self._root_name(module)
        name_layers(layers_of(module, root))
        self._models.append(_Model(ref(module), root))
        if len(self._models) == 1:
            self._watch_the_first()
            self._watch_optimizers()
        self._wanted_of.clear()
        self.gradients.of(module.parameters())

    register_hook = register_module

    def register_loss(self, loss_module: nn.Module) -> None:
        """Save what this loss gives, as `<Class>_output_0`."""
        if not isinstance(loss_module, _Loss):
            raise SMDebugTypeError(
                "register_loss takes a loss of torch.nn, such as nn.CrossEntropyLoss(), not "
                f"{loss_module!r}. Tell of any other: hook.record_tensor_value('my_loss', loss)"
            )
        if self._may_watch(loss_module):
            self._losses.append(loss_module)
            self._wanted_of.clear()

    def leave_module(self, module: nn.Module) -> None:
        """Watch this model no longer: the next one that is registered may have its place and name."""
        self._leave(module)

    def follow_module(self, module: nn.Module) -> None:
        """Watch this model instead of the one that began the steps: that is trained no longer.

        Each keeps its name, also if it comes back.
        """
        if not self.has_module(module):
            self.register_module(module)
        first = self._models[0]
        if first.module() is module:
            return
        self._left.append(first)
        self._models.sort(key=lambda model: model.module() is not module)
        self._leave(first.module())

    def has_module(self, module: nn.Module) -> bool:
        """Is it registered, and not left?"""
        return any(model.module() is module for model in self._models)

    def detach(self) -> None:
        """Watch nothing any more: models are as they were before they were registered."""
        for module in [*(model.module() for model in self._models), *self._losses]:
            if module is not None:
                _hooks.pop(unwrapped(module), None)
        self._watch_forward(None)
        self._models.clear()
        self._left.clear()
        self._losses.clear()
        self._wanted_of.clear()
        self.gradients.forget()
        self._leave_optimizers()
        self._unhook_layers()

    def _leave(self, module: nn.Module | None) -> None:
        self._models = [model for model in self._models if model.module() is not module]
        if module is not None:
            _hooks.pop(unwrapped(module), None)
        self._watch_the_first()
        self._wanted_of.clear()
        self._unhook_layers()

    def _forget_models_that_are_gone(self) -> None:
        """Nobody trains them any more, and they are nobody's: a script may go on with another one."""
        first = self._models[0] if self._models else None
        gone = [model for model in self._models if model.module() is None]
        self._left += gone
        self._models = [model for model in self._models if model not in gone]
        if first in gone:
            self._watch_the_first()

    def _root_name(self, module: nn.Module) -> str:
        """The model's class; of several of one class each has a name of its own: `Net`, `Net-2` …"""
        known = [model for model in self._left if model.module() is module]
        if known:
            self._left.remove(known[0])
            return known[0].root
        name = class_name(unwrapped(module))
        taken = {model.root for model in (*self._models, *self._left)}
        names = itertools.chain([name], (f"{name}-{number}" for number in itertools.count(2)))
        return next(each for each in names if each not in taken)

    def _watch_the_first(self) -> None:
        self._watch_forward(self._models[0].module() if self._models else None)

    def _watch_forward(self, module: nn.Module | None) -> None:
        """Let this model's forward begin steps, and no other's."""
        if self._forward is not None:
            self._forward.remove()
            self._forward = None
        if module is None:
            return
        if module._compiled_call_impl is not None:
            self._forward = BeforeCompiled(module, BeforeForward(self))
            return
        try:
            self._forward = module.register_forward_pre_hook(BeforeForward(self), prepend=True)
        except RuntimeError:
            if not isinstance(module, torch.jit.ScriptModule):
                raise
            self.say_once(
                f"{class_name(module)} is scripted, and does not tell when it is called: say where each "
                "step begins, by `with hook.step(modes.TRAIN):`"
            )

    def _may_watch(self, module: nn.Module) -> bool:
        """Is it new to us? From another hook it is taken over: in a notebook, that one is an older cell's."""
        known = _hooks.get(unwrapped(module))
        other = known() if known else None
        if other is self:
            self.logger.warning("%s is registered with this hook already", class_name(module))
            return False
        if other is not None:
            self.logger.warning(
                "%s was registered with another hook, which ends here", class_name(module)
            )
            other._close(ended=False)
        _hooks[unwrapped(module)] = ref(self)
        return True

    # A step

    def begin_step(self, mode: ModeKeys | None = None) -> None:
        """Begin the next step. From now on the forward of the model does not."""
        self._by_hand = True
        self._next_step(mode)

    def end_step(self, *, interrupted: bool = False) -> None:
        """End the step: what was recorded of it is on its way. An interrupted one is marked so."""
        self._finish_gradients()
        super().end_step(interrupted=interrupted)

    def before_forward(self, module: nn.Module, in_graph: bool = False) -> None:
        """The model is about to be called: unless the user says when, a step begins."""
        if self._by_hand or self._closed or in_backward():
            return
        if self._idle and not self._modes_by_training:  # the shorter way, while caches are cold
            CallbackHook.begin_step(self)
            return
        mode = None
        if self._modes_by_training:
            trains = module.training and torch.is_grad_enabled()
            mode = ModeKeys.TRAIN if trains else ModeKeys.EVAL
        self._next_step(mode, in_graph)

    def follow_training_flag(self) -> None:
        """Let steps be of mode TRAIN while `model.training` is true and gradients are wanted, else EVAL."""
        self._modes_by_training = True

    @property
    def saves_now(self) -> bool:
        """Is something saved at the step that runs?"""
        return bool(self._due)

    def has_a_loss_besides(self, name: str) -> bool:
        """Was a loss of another name recorded at the step that runs?"""
        return self._calls_of is self._ran and any(
            prefix.lower().endswith("loss_output_") and prefix != f"{name}_output_"
            for prefix in self._calls
        )

    def _next_step(self, mode: ModeKeys | None = None, in_graph: bool = False) -> None:
        if self.gradients:
            self._finish_gradients()
        super().begin_step(mode)
        if self._due or self._hooked is not None:
            self.guarded(lambda: self._set_up(in_graph))

    def _set_up(self, in_graph: bool) -> None:
        """Record the parameters, and hook what else is wanted at this step."""
        due = self._due
        if not due:
            self._unhook_layers()
            if not (self.gradients.are_awaited or self._stays):
                self._leave_optimizers()
            return
        gradients = []
        # Of a forward without gradients none come: what changes there is cleared by zero_grad().
        may_come = self._by_hand or torch.is_grad_enabled()
        for model, root in self._models_there_are():
            for name, parameter in parameters_of(unwrapped(model), root):
                if is_lazy(parameter):
                    self.say_once(
                        f"{name} is not saved at this step, as others may not be: a lazy module has no "
                        "values before its first forward",
                        "lazy",
                    )
                else:
                    self.record(name, parameter)
                gradient = f"gradient/{name}"
                if may_come and parameter.requires_grad and self.wants(gradient):
                    gradients.append((gradient, parameter))
        if gradients:
            self.gradients.of(parameter for _, parameter in gradients)
            self.gradients.expect(gradients)
            self._watch_optimizers()
        self._hook_layers(due, in_graph)

    def _finish_gradients(self) -> None:
        if self.gradients:
            self.guarded(self.gradients.finish)

    def _watch_optimizers(self) -> None:
        if self._optimizers is None:
            self._optimizers = register_optimizer_step_pre_hook(BeforeOptimizer(self))

    def stays_with_optimizers(self) -> None:
        """A step was compiled: it would be once more whenever somebody comes or goes."""
        self._stays = True

    def _leave_optimizers(self) -> None:
        if self._optimizers is not None:
            self._optimizers.remove()
            self._optimizers = None

    # Layers

    def _models_there_are(self) -> Iterator[tuple[nn.Module, str]]:
        for model in self._models:
            module = model.module()
            if module is not None:
                yield module, model.root

    def _hook_layers(self, due: int, in_graph: bool) -> None:
        """Hook the layers of which something is wanted, as they are now: one may have been replaced."""
        wanted = self._layers_wanted(due, in_graph)
        if self._hooked is not None and _are_hooked(wanted, self._hooked):
            return
        self._unhook_layers()
        self._hooked = []
        for layer, inputs, outputs in wanted:
            around = AroundLayer(self, layer.name, inputs=inputs, outputs=outputs)
            handle = None
            try:
                handle = layer.module.register_forward_hook(around, with_kwargs=True)
            except RuntimeError:
                if not isinstance(layer.module, torch.jit.ScriptModule):
                    raise
                self.say_once(
                    f"What the layer {layer.name} is given and gives is not saved: it is scripted, and tells "
                    "nobody"
                )
            told = _HookedLayer(ref(layer.module), layer.name, inputs, outputs, handle)
            self._hooked.append(told)
        if any(layer.is_in_graph for layer, _, _ in wanted):
            self._stance = torch.compiler.set_stance("force_eager")
            self._stance.__enter__()

    def _unhook_layers(self) -> None:
        for layer in self._hooked or ():
            if layer.handle is not None:
                layer.handle.remove()
        self._hooked = None
        if self._stance is not None:
            self._stance.__exit__(None, None, None)
            self._stance = None

    def _layers_wanted(self, due: int, in_graph: bool) -> list[tuple[Layer, bool, bool]]:
        """Each layer of which something is wanted; and whether inputs are, and outputs."""
        known = [
            layer for module, root in self._models_there_are() for layer in layers_of(module, root)
        ]
        known += [Layer(class_name(loss), loss, False) for loss in self._losses]
        wanted, hidden = [], []
        for layer in known:
            inputs, outputs = self._wanted_of_layer(due, layer.name)
            if not (inputs or outputs):
                continue
            is_inside = layer.is_in_graph or (in_graph and layer.module not in self._losses)
            if is_inside and not (self._runs_eagerly and not in_graph):
                hidden.append(layer.name)
            else:
                wanted.append((layer, inputs, outputs))
        if hidden:
            self.say_once(
                f"What the layer {hidden[0]} is given and gives is not saved, nor of {len(hidden) - 1} "
                "others: they run inside of a compiled graph. "
                + (
                    "See compiled_layers, and register a model after torch.compile(model)."
                    if _MAY_LEAVE_GRAPHS
                    else "From PyTorch 2.6 on they can be: see compiled_layers."
                )
            )
        return wanted

    def _wanted_of_layer(self, due: int, name: str) -> tuple[bool, bool]:
        wanted = self._wanted_of.get((due, name))
        if wanted is None:
            inputs, outputs = self._wants_any(f"{name}_input_"), self._wants_any(f"{name}_output_")
            wanted = self._wanted_of[due, name] = inputs, outputs
        return wanted

    def _wants_any(self, prefix: str) -> bool:
        """Is any input, or any output, of a layer wanted?"""
        return any(self.wants(f"{prefix}{i}") for i in range(_NUMBERS_ASKED_FOR)) or any(
            name.startswith(prefix) and self.wants(name)
            for collection in self.get_collections().values()
            for name in collection.tensor_names
        )

    def record_outputs(self, name: str, values: Any) -> None:
        """Offer what a layer gave: every tensor in it, however nested, as `<name>_output_<i>`."""
        self._giving = name
        super().record_outputs(name, values)
        self._giving = None

    def _tensors_in(self, values: Any) -> Iterator[Any]:
        if isinstance(values, torch.Tensor):
            yield values
            return
        if dataclasses.is_dataclass(values) and not isinstance(values, type):
            values = [getattr(values, field.name) for field in dataclasses.fields(values)]
        elif self._giving is not None and not isinstance(values, _KNOWN):
            kind = type(values).__name__
            self.say_once(
                f"{self._giving} gives a {kind}, as others may: whatever tensors are in it are not saved. "
                "Tell of them: hook.record_tensor_value('my_name', tensor)",
                f"type {kind}",
            )
        yield from super()._tensors_in(values)

    def _is_tensor(self, value: Any) -> bool:
        return isinstance(value, torch.Tensor)

    # Values

    def _converted(self, name: str, value: Any) -> np.ndarray[Any, Any] | None:
        if isinstance(value, torch.Tensor) and is_sharded(value):
            self.say_once(
                f"{name} is sharded over several processes, as others may be: each saves its own part, of "
                f"{name} one of shape {tuple(value.to_local().shape)} of {tuple(value.shape)}. "
                'include_workers="all" saves every part.',
                "sharded",
            )
        elif isinstance(value, torch.nn.Parameter) and is_flattened(value):
            self.say_once(
                f"{name} is sharded over several processes, as others may be, and between forwards flattened "
                "(FullyShardedDataParallel): each saves the numbers that it holds of it. "
                'include_workers="all" saves every part.',
                "sharded",
            )
        return super()._converted(name, value)

    def _kept(self, gradient: torch.Tensor) -> Any:
        """What the gradient is now, however it changes."""
        if gradient.is_cpu and is_plain(gradient):
            return Copied(self._current().copied(as_array(gradient)))
        return gradient.detach().clone()

    _copy = staticmethod(copy_values)

    @staticmethod
    def _make_numpy_array(tensor_value: Any) -> np.ndarray[Any, Any]:
        if isinstance(tensor_value, torch.Tensor):
            return as_array(tensor_value)
        if isinstance(tensor_value, Copied):
            return tensor_value.array
        return CallbackHook._make_numpy_array(tensor_value)

    @staticmethod
    def _is_copied(value: Any, array: np.ndarray[Any, Any]) -> bool:
        if isinstance(value, torch.Tensor):
            return owns_its_values(value, array)
        if isinstance(value, Copied):
            return True
        return CallbackHook._is_copied(value, array)

    # Several processes

    def _rank_and_size(self) -> tuple[int, int]:
        return rank_and_size()

    def _watch_for_stop(self, attempt: Any) -> None:
        if self.agree is None and self._look_for_stop is not None:
            self._agreement = Agreement.among_ranks(self.out_dir)
            if self._agreement is not None:
                self.agree = self._agree
        super()._watch_for_stop(attempt)

    def _agree(self, last: int | None) -> int | None:
        assert self._agreement is not None
        assert self._ran is not None
        step = self._ran.step
        wanted = last is not None and last <= step
        is_last = self._agreement.is_last(wanted, self._ran.mode, self._ran.mode_step)
        return step if is_last else None

    # The end

    def _close(self, *, ended: bool) -> None:
        self._finish_gradients()
        if not ended and self._open is not None:
            self._open.interrupted = True
        super()._close(ended=ended)
        self.detach()


def _are_hooked(wanted: list[tuple[Layer, bool, bool]], hooked: list[_HookedLayer]) -> bool:
    return len(wanted) == len(hooked) and all(
        known.module() is layer.module and known[1:4] == (layer.name, inputs, outputs)
        for (layer, inputs, outputs), known in zip(wanted, hooked, strict=True)
    )
