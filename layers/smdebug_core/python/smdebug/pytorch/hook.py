"""The hook for PyTorch.

    hook = smd.Hook("s3://bucket/run", include_collections=["weights", "gradients"])
    hook.register_module(model)      # each forward of the model begins a step
    hook.register_loss(criterion)

A step of which nothing is saved is only counted. At one that is saved, parameters are taken before the
forward, inputs and outputs of layers as they occur, gradients when the optimizer is about to use them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from smdebug.config.keys import CollectionKeys
from smdebug.exceptions import SMDebugTypeError, SMDebugValueError, TrainingStopped
from smdebug.files.names import EPOCHS
from smdebug.mode_keys import ModeKeys
from smdebug.pytorch.collection import CollectionManager
from smdebug.saving.hooks.framework import require
from smdebug.saving.hooks.hook import FrameworkHook
from smdebug.saving.hooks.options import HookOptions, checked_interval, takes
from smdebug.saving.planning.save_plan import Members
from smdebug.saving.planning.step_clock import StepClock
from smdebug.saving.recording.recorder_states import State
from smdebug.saving.requests.control import Agree

require("PyTorch", "torch", "torch")

import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch._C import _current_graph_task_id as graph_task  # noqa: E402
from torch.nn.parameter import is_lazy  # noqa: E402

from smdebug.pytorch.adapter import TorchAdapter  # noqa: E402
from smdebug.pytorch.listening.beginning import BeforeForward  # noqa: E402
from smdebug.pytorch.listening.callbacks import (  # noqa: E402
    AfterAccumulation,
    AfterForward,
    BeforeCompiled,
    BeforeOptimizer,
    InGraph,
    called_from_an_optimizer,
    called_to_generate,
    kept_out_of_graphs,
)
from smdebug.pytorch.listening.epochs import Epochs  # noqa: E402
from smdebug.pytorch.listening.gradients import Gradients, Named  # noqa: E402
from smdebug.pytorch.listening.optimizers import before_steps  # noqa: E402
from smdebug.pytorch.listening.passes import PASSES  # noqa: E402
from smdebug.pytorch.listening.process import PROCESS, SkippedSteps  # noqa: E402
from smdebug.pytorch.listening.scripting import script_without_callbacks  # noqa: E402
from smdebug.pytorch.listening.training_flag import TrainingFlag  # noqa: E402
from smdebug.pytorch.modules.activations import (  # noqa: E402
    activation_tensors,
    add_to_collections,
    list_for_readers,
)
from smdebug.pytorch.modules.layers import LayerHooks  # noqa: E402
from smdebug.pytorch.modules.losses import Losses  # noqa: E402
from smdebug.pytorch.modules.models import Models, set_watcher, take_over  # noqa: E402
from smdebug.pytorch.modules.names import (  # noqa: E402
    Layer,
    class_name,
    name_layers,
    name_of,
    unwrapped,
)
from smdebug.pytorch.observing.iterations import Iterations  # noqa: E402
from smdebug.pytorch.observing.labelled import shifts_labels  # noqa: E402
from smdebug.pytorch.observing.observer import TorchObserver  # noqa: E402
from smdebug.pytorch.observing.structure import KnownStructure  # noqa: E402
from smdebug.pytorch.ranks import Agreement  # noqa: E402
from smdebug.pytorch.tensors.arrays import Copied, as_array, is_plain  # noqa: E402

DEFAULT_INCLUDE_COLLECTIONS = [CollectionKeys.LOSSES]

# The types of values that a layer may return: those that tensors are found in, and those without any.
_KNOWN = (
    Mapping,
    list,
    tuple,
    type(None),
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    torch.dtype,
    torch.device,
    torch.layout,
)


@dataclass(frozen=True)
class TorchOptions(HookOptions):
    """The further options of the hook for PyTorch."""

    compiled_layers: str = field(default="graph", kw_only=True)
    compute_twice: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_interval(self.compute_twice)
        if self.compiled_layers not in ("graph", "skip", "eager"):
            raise SMDebugValueError(
                f'compiled_layers must be "graph", "skip" or "eager", not {self.compiled_layers!r}'
            )


class Hook(FrameworkHook):
    """Saves weights, gradients, losses, and inputs and outputs of layers, while a PyTorch model trains.

        hook = smd.Hook(out_dir, include_collections=["weights", "gradients"])
        hook.register_module(model)
        hook.register_loss(criterion)

    Each forward of the model is a step; `hook.set_mode(modes.EVAL)` sets the mode of the next ones. Once a
    script has written `with hook.step(modes.TRAIN):`, only that begins steps.

    The layers inside a compiled model show their tensors by an operator in its graph, if the model is
    registered before its graph is made. With `compiled_layers="skip"` they are not seen; with "eager" the
    steps at which they are saved run uncompiled, which may change the last bits of results.

    The class is long because all callbacks of PyTorch during a step arrive here.
    """

    adapter = TorchAdapter()
    collection_manager: CollectionManager
    takes_over = True
    if_no_step = "Register the model before it is trained: hook.register_module(model)"
    if_no_loss = "Register its criterion: hook.register_loss(criterion)"
    if_no_optimizer = "Use one of torch.optim, and compile the model instead of the whole step"
    saved_by_default = DEFAULT_INCLUDE_COLLECTIONS
    observes = True
    observes_chosen = measures_updates = True

    @takes(TorchOptions)
    def __init__(self, options: TorchOptions):
        self._models = Models()
        self._structure = KnownStructure(self._models)
        self._losses = Losses(self)
        choice = options.compiled_layers
        self._layers = LayerHooks(self, eager=choice == "eager", from_graphs=choice == "graph")
        self._forward: Any = None  # the handle of the callback that begins steps
        self._labelled: Any = None  # that of the one that takes labels
        self._by_hand = False  # the user begins the steps
        self._shows_all = False  # graphs that are compiled from now on show all layers
        self.is_in_graph = False  # the models run inside a compiled graph
        self._sees_optimizers = True  # which is not so if that contains their steps
        self._flag = TrainingFlag()
        self._optimizers: Any = None  # the handle of the callback before optimizers
        self._stays = False  # that callback stays, wanted or not
        self._output_of: str | None = None  # the layer whose output is recorded
        self._agreement: Agreement | None = None
        self._observer: TorchObserver | None = None
        self._stops_gently = False
        self.stopped: TrainingStopped | None = None
        """Why the training was asked to stop, where a Trainer does that by itself."""
        self._compute_twice = options.compute_twice
        self.gradients = Gradients(self.record_together, self._kept, AfterAccumulation(self))
        self._skipped_steps = SkippedSteps(self)
        script_without_callbacks()
        PASSES.install()
        PROCESS.add(self)
        self.set_up(options)

    def make_collections(self) -> CollectionManager:
        return CollectionManager()

    # What to watch

    def register_module(self, module: nn.Module) -> None:
        """Watch this model: its forward begins a step. Of several models, only the first one's does.

        Wrappers (`DistributedDataParallel`, `torch.compile`) change no names.
        """
        if not isinstance(module, nn.Module):
            raise SMDebugTypeError(f"register_module takes a torch.nn.Module, not {module!r}")
        if not take_over(self, module):
            return
        if self._models.drop_collected():
            self._watch_forward(self._models.first)
        root = self._models.add(module)
        layers = self._models.layers_of(module, root)
        name_layers(layers)
        self.collection_manager.name_modules()
        if self.prepared_collections:
            self._add_activations(layers)
        if len(self._models) == 1:
            self._watch_forward(module)
            self._watch_optimizers()
        self._layers.forget_wishes()
        self.gradients.of(module.parameters())

    register_hook = register_module

    def register_loss(self, loss_module: nn.Module) -> None:
        """Save the outputs of this loss, or of a model that returns its loss, in `losses`."""
        if not isinstance(loss_module, nn.Module):
            raise SMDebugTypeError(
                "register_loss takes a torch.nn.Module, such as nn.CrossEntropyLoss(), not "
                f"{loss_module!r}. Record any other: hook.record_tensor_value('my_loss', loss)"
            )
        if self.has_module(loss_module):
            self._losses.include_outputs(name_of(loss_module) or class_name(loss_module))
            self._layers.forget_wishes()
        elif take_over(self, loss_module):
            self._losses.add(loss_module)
            self._layers.forget_wishes()

    def leave_module(self, module: nn.Module) -> None:
        """Stop watching this model: the next one that is registered may have its place and name."""
        self._leave(module)

    def follow_module(self, module: nn.Module) -> None:
        """Watch this model instead of the one that began the steps, which is no longer trained.

        Each keeps its name, even if it returns.
        """
        if not self.has_module(module):
            self.register_module(module)
        if self._models.first is not module:
            self._leave(self._models.put_first(module))

    def has_module(self, module: nn.Module) -> bool:
        """Return whether the model is registered and was not left."""
        return self._models.has(module)

    def detach(self) -> None:
        """Stop watching everything: models are as they were before they were registered."""
        for module in [*(module for module, _ in self._models), *self._losses.modules]:
            set_watcher(module, None)
        self._watch_forward(None)
        self._models.clear()
        self._losses.clear()
        self._layers.forget_wishes()
        self.gradients.forget()
        self._leave_optimizers()
        self._layers.remove()
        self._layers.hide_in_graphs()

    def _leave(self, module: nn.Module | None) -> None:
        self._models.leave(module)
        if module is not None:
            set_watcher(module, None)
        self._watch_forward(self._models.first)
        self._layers.forget_wishes()
        self._layers.remove()

    def _watch_forward(self, module: nn.Module | None) -> None:
        """Let this model's forward begin steps, and no other's."""
        for handle in (self._forward, self._labelled):
            if handle is not None:
                handle.remove()
        self._forward = self._labelled = None
        if module is None:
            return
        if shifts_labels(module):
            self._labelled = module.register_forward_hook(AfterForward(self), with_kwargs=True)
        if module._compiled_call_impl is not None:
            self._forward = BeforeCompiled(module, BeforeForward(self, module))
            return
        try:
            self._forward = module.register_forward_pre_hook(BeforeForward(self, module), prepend=True)
        except RuntimeError:
            if not isinstance(module, torch.jit.ScriptModule):
                raise
            self.warn_once(
                f"{class_name(module)} is scripted, and its forward cannot begin steps: begin each with "
                "`with hook.step(modes.TRAIN):`"
            )

    # A step

    def begin_step(self, mode: ModeKeys | None = None) -> None:
        """Begin the next step. From now on the forward of the model does not begin steps."""
        self._by_hand = True
        if self._observer is not None:
            self._observer.iterations = None
        try:
            self._next_step(mode, InGraph.MODEL if self.is_in_graph else InGraph.NOTHING)
        except Exception as error:  # noqa: BLE001 - whatever it is, the training continues
            self.contain(error)

    def begin_steps_by_hand(self) -> None:
        """Let no forward begin a step: `begin_step` does, from the first one on."""
        self._by_hand = True

    def stop_gently(self, yes: bool) -> None:
        """Note a request to stop in `stopped` and raise nothing: a Trainer asks, and ends as it does."""
        self._stops_gently = yes

    def contain(self, error: Exception) -> None:
        """Let no error end the training; a request to stop is raised, unless a Trainer asks for it."""
        if isinstance(error, TrainingStopped) and self._stops_gently:
            self.stopped = error
            return
        super().contain(error)

    def end_step(self, *, interrupted: bool = False) -> None:
        """End the step: what was recorded is handed over, marked if the step was interrupted."""
        self._finish_step()
        super().end_step(interrupted=interrupted)

    @kept_out_of_graphs
    def before_forward(self, module: nn.Module, in_graph: InGraph = InGraph.NOTHING) -> None:
        """Begin a step, as the model is about to be called, unless the user begins them."""
        try:
            observer, is_recomputed = self._observer, graph_task() != -1
            if observer is not None and observer.phases is not None and not is_recomputed:
                observer.phases.forward_begins()
            if self._by_hand:
                if observer is not None and self.due and not is_recomputed:
                    observer.forward_begins(module)
                return
            if is_recomputed:  # within a backward pass: activations are recomputed
                self._flag.recomputed(self.mode)
                return
            mode = self._flag.mode_of(module) if self._flag.is_followed else None
            iterations = None if observer is None else observer.iterations
            if mode is ModeKeys.EVAL and self._writes_completions(iterations):
                return
            if iterations is not None and not self._begins_iteration(iterations, mode):
                return
            recorder = self.recorder
            if not recorder.skip(mode) and recorder.state is not State.CLOSED:
                self._next_step(mode, in_graph)
            observer = self._observer
            if observer is not None and observer.epochs.passes_seen != PASSES.count:
                self._note_passes(observer.epochs, self.mode if mode is None else mode)
        except Exception as error:  # noqa: BLE001 - whatever it is, the training continues
            self.contain(error)

    def prepare_graph(self, module: nn.Module, number: torch.Tensor) -> None:
        """Let the graph that is being traced show the layers of the model, which has that number."""
        if not self.prepared_collections:  # its first step begins when the graph runs
            self._add_activations(self._all_layers())
            self.recorder.prepared()
            list_for_readers(self.collection_manager, activation_tensors(self._all_layers()))
            if self.recorder.capture.observer is not None:
                PROCESS.install()
        layers = self._all_layers()
        inside = [layer for layer in layers if layer.module is not module]
        self._layers.unhook(inside)
        # The callbacks of the model itself have been read already.
        self._layers.show_in_graphs(inside if module._forward_hooks else layers, True, number)
        self._shows_all = True

    def before_compile(self, module: nn.Module | None) -> None:
        """Let what is about to be compiled show the layers inside of it; a function may contain the model."""
        if not self.prepared_collections:
            return
        if module is None:
            self._layers.unhook([layer for layer in self._all_layers() if layer.module is self._models.first])
            return
        inside = set(module.modules()) - {module}
        layers = [layer for layer in self._all_layers() if unwrapped(layer.module) in inside]
        self._layers.show_in_graphs(layers, True)

    def has_no_beginning(self) -> None:
        """Say that the model is a part of a graph in which no step can begin."""
        self.is_in_graph = True
        self.warn_once(
            "The model is called within a function that is compiled in one piece, where its forward begins "
            "steps from PyTorch 2.7 on. With smdebug.start each backward pass begins one; with a hook of "
            "your own, `with hook.step(modes.TRAIN):` does"
        )

    def after_forward(self, module: nn.Module, labels: Any, output: Any) -> None:
        """Note the labels that a model was given, and what it has returned, as its loss may be of them."""
        if self._observer is None:
            return
        if torch.is_grad_enabled():
            if self.due:
                self._observer.note_labels(module, labels, output)
        elif self.mode is ModeKeys.EVAL:
            self._observer.evaluated(output)

    def _note_passes(self, epochs: Epochs, mode: ModeKeys) -> None:
        """Note the epoch that begins with a step, if passes over data have begun since the step before."""
        if mode not in (ModeKeys.EVAL, ModeKeys.PREDICT):
            over = epochs.training_step_begins()
            if over is not None:
                self.recorder.carry(EPOCHS, float(over))
        elif self._flag.says_evaluation or not self._flag.is_followed:
            epochs.evaluation_begins()

    def _begins_iteration(self, iterations: Iterations, mode: ModeKeys | None) -> bool:
        """Return whether a forward of the model begins a step of that mode."""
        if mode is ModeKeys.EVAL:  # without gradients, but not to evaluate the model if it is being trained
            return self._flag.says_evaluation or not iterations.is_open
        after_evaluation = self.mode is ModeKeys.EVAL
        if iterations.begins(called_from_an_optimizer, after_evaluation=after_evaluation):
            return True
        if self._layers and not iterations.is_observed:
            self._layers.remove()
        return False

    def _writes_completions(self, iterations: Iterations | None) -> bool:
        """Return whether a forward without gradients belongs to the training, and is no evaluation."""
        if not called_to_generate():
            return False
        if self._layers and (iterations is None or not iterations.is_open):
            self._layers.remove()  # those of the step before, which has ended
        return True

    def follow_training_flag(self) -> None:
        """Count steps as TRAIN while `model.training` is true and gradients are enabled, else as EVAL.

        Under the default plan an iteration of the training is a step, from update to update, and an
        evaluation has the number of the step before it.

        If an optimizer updates parameters in evaluation mode, `model.train()` was forgotten.
        """
        self._flag.is_followed = True
        self.number_training_steps()
        self.if_no_loss = (
            "Call backward on one number, such as loss.mean(), or record it with "
            'smdebug.pytorch.get_hook().record_tensor_value("loss", loss)'
        )

    def begin_at(self, step: int) -> None:
        """Number the first step so, if none has begun: the training goes on from a checkpoint."""
        self.recorder.begin_at(step)

    def before_update(self, optimizer: Any) -> None:
        """Observe parameters that the optimizer is about to update, at a step that is saved."""
        observer = self._observer
        if observer is not None:
            self.guarded(lambda: observer.before_optimizer(optimizer))

    def note_update(self) -> None:
        """Note that an optimizer has updated parameters, in evaluation mode as far as is known."""
        if not self._by_hand and self.mode is ModeKeys.EVAL and self._flag.updated():
            self.warn_once(
                "Parameters are updated while the model is in evaluation mode: from the next step on these "
                "are steps of training. Call model.train() after each evaluation"
            )

    def register_in_graph(self, module: nn.Module, *, with_optimizer: bool) -> None:
        """Watch a model that runs inside a compiled graph, where its forward cannot begin steps.

        Its parameters and updates are seen, and its gradients unless the graph contains the optimizer, too.
        Nothing is added to what was compiled, which would be compiled again. The caller begins the
        steps.
        """
        self._by_hand = self.is_in_graph = True
        self._sees_optimizers = not with_optimizer
        if take_over(self, module):
            root = self._models.add(module)
            name_layers(self._models.layers_of(module, root))
            self.gradients.of(module.parameters())
            self.gradients.has_optimizer = True
            if with_optimizer:
                self.warn_once(
                    f"Gradients of {root} are not saved: its step is compiled as a whole. Compile the model "
                    "instead of the whole step"
                )
            else:
                self._watch_optimizers()
                self.stay_with_optimizers()

    def has_a_loss_besides(self, name: str) -> bool:
        """Return whether a loss of another name was recorded at the current step."""
        return any(other.lower().endswith("loss") and other != name for other in self.names_with_outputs())

    def _next_step(self, mode: ModeKeys | None = None, in_graph: InGraph = InGraph.NOTHING) -> None:
        self._finish_step()
        is_first = not self.prepared_collections
        if is_first:
            self._warn_of_unnamed_modules()
            self._add_activations(self._all_layers())
        super().begin_step(mode)
        if is_first and self.prepared_collections:
            layers = self._all_layers()
            list_for_readers(self.collection_manager, activation_tensors(layers))
            self._layers.show_in_graphs(layers, bool(in_graph))
        elif in_graph and not self._shows_all:  # the model was compiled after its first call
            self._layers.show_in_graphs(self._all_layers(), True)
        self._shows_all = self._shows_all or bool(in_graph)
        if self._observer is None and self.recorder.capture.observer is not None:
            observations = self.recorder.capture.observer.observations
            self._observer = TorchObserver(
                self, observations, self._sees_optimizers, compute_twice=self._compute_twice
            )
            if self.observations is not None:  # steps that somebody chose are not moved
                self.recorder.place_due = self._place_due
                if self._flag.is_followed and not self._by_hand:
                    self._observer.count_iterations(self._models, int(mode is not ModeKeys.EVAL))
            if self.is_in_graph:
                self._observer.measure_from_step_to_step()
        if self.due or self._layers:
            self.guarded(lambda: self._capture(in_graph))

    def _warn_of_unnamed_modules(self) -> None:
        self.collection_manager.name_modules()  # a collection may have been added since
        for collection, kind in self.collection_manager.unnamed_modules():
            self.warn_once(
                f"Collection {collection} has no tensors of a {kind}, which is not part of a registered "
                "model: call hook.register_module(model) before the first step"
            )

    def _capture(self, in_graph: InGraph) -> None:
        """Record what is there when a step begins, and prepare for what comes within it."""
        if not self.due:
            self._layers.remove()
            if not (self.gradients.are_awaited or self._stays):
                self._leave_optimizers()
            return
        structure = self._structure.now()
        values = structure.values()
        if self._observer is not None:
            parameters = list(zip(structure.names, values, strict=True))
            self._observer.begin_step(structure, self._models.first, parameters, in_graph)
        if not self.recorder.observe_group(structure.names, values):
            self._record_parameters(list(zip(structure.names, values, strict=True)))
        self._expect_gradients(structure.gradient_names, values)
        self._layers.hook(structure, self._losses.layers, self.due, in_graph)
        if self._observer is not None and self._sees_optimizers:
            self._watch_optimizers()

    def _all_layers(self) -> list[Layer]:
        return [layer for registered in self._models for layer in self._models.layers_of(*registered)]

    def _add_activations(self, layers: list[Layer]) -> None:
        tensors, included = activation_tensors(layers), self.include_collections
        add_to_collections(self.collection_manager, tensors, included, self.assign)

    def _record_parameters(self, parameters: list[Named]) -> None:
        for name, parameter in self.recorder.observe_together(parameters):
            if is_lazy(parameter):
                self.warn_once(
                    f"{name} is not saved at this step (nor may others be): a lazy module has no values "
                    "before its first forward",
                    "lazy",
                )
            else:
                self.record(name, parameter)

    def _expect_gradients(self, names: tuple[str, ...], values: list[nn.Parameter]) -> None:
        # A forward without gradients is followed by none: what changes them is zero_grad().
        keeps_gradients = self._by_hand or self._flag.recomputes or torch.is_grad_enabled()
        if not keeps_gradients or not self._sees_optimizers:
            return
        pairs = zip(names, values, strict=True)
        expected = [pair for pair in pairs if pair[1].requires_grad]
        if not self.recorder.observes_all(names):
            wanted = self.recorder.wanted
            expected = [pair for pair in expected if wanted(pair[0]) is not None]
        if expected:
            self.gradients.of(values)
            self.gradients.expect(expected)
            self._watch_optimizers()

    def _finish_step(self) -> None:
        if self.gradients:
            self.guarded(self.gradients.finish)
        if self._observer is not None and self.saves_now:
            self.guarded(self._observer.end_step)

    def _place_due(self, due: Members, clock: StepClock, is_next_due: bool) -> Members:
        assert self._observer is not None
        placed = self._observer.place_due(due, clock, is_next_due)
        self.recorder.is_waiting = self._observer.accumulation.is_waiting
        return placed

    def record_together(self, tensors: Sequence[tuple[str, Any]]) -> None:
        """Record tensors, each under its name."""
        for name, tensor in self.recorder.observe_together(tensors):
            self.record(name, tensor)

    def packed(self, names: tuple[str, ...], values: Sequence[Any]) -> Any:
        """Return copies of small tensors, end to end, for `record_changes`; None if some are not small."""
        observer = self.recorder.capture.observer
        return None if observer is None else observer.packed(names, values)

    def record_changes(self, names: tuple[str, ...], values: Sequence[Any], before: Any) -> bool:
        """Observe what has changed since the values were packed; return whether that could be done."""
        return self.recorder.observe_group(names, values, before)

    def _kept(self, gradient: torch.Tensor) -> Any:
        """Return what the gradient is now, however it changes."""
        if gradient.is_cpu and is_plain(gradient):
            return Copied(self.recorder.open_step().copied(as_array(gradient)))
        return gradient.detach().clone()

    def _watch_optimizers(self) -> None:
        if self._optimizers is None:
            self._optimizers = before_steps(BeforeOptimizer(self))

    def stay_with_optimizers(self) -> None:
        """Keep the callback: an optimizer's step was compiled, and is again whenever callbacks change."""
        self._stays = True

    def _leave_optimizers(self) -> None:
        if self._optimizers is not None:
            self._optimizers.remove()
            self._optimizers = None

    # Inputs and outputs of layers and functions

    def record_tensor_value(self, tensor_name: str, tensor_value: Any) -> None:
        """Record the result of a function, as `<name>_output_0`, `_1` and so on. A loss is in `losses`."""
        if self.due:
            self._losses.include_recorded(tensor_name, tensor_value)
        super().record_tensor_value(tensor_name, tensor_value)

    def record_inputs(self, name: str, values: Any) -> None:
        """Record the inputs of a layer: every tensor in them, however nested, as `<name>_input_<i>`."""
        if not self.due:
            return
        tensors = values
        if type(values) is not list or any(type(value) is not torch.Tensor for value in values):
            tensors = list(self.tensors_in(values))
        if self._observer is not None and self._observer.is_model(name):
            self._observer.note_batch(tensors)
        self.record_numbered(f"{name}_input_", tensors)

    def record_outputs(self, name: str, values: Any) -> None:
        """Record the outputs of a layer: every tensor in them, however nested, as `<name>_output_<i>`."""
        if type(values) is torch.Tensor:  # as most are
            if self.recorder.due:
                self.recorder.record(self.numbered(f"{name}_output_"), values)
                if self._observer is not None:
                    self._observer.note_output(name, values)
            return
        self._output_of = name
        super().record_outputs(name, values)
        if self.due and self._observer is not None and self._observer.is_model(name):
            self._observer.note_own_loss(self.tensors_in(values))
        self._output_of = None

    def tensors_in(self, values: Any) -> Iterator[Any]:
        """Find every tensor in values that may be nested, in dataclasses too."""
        if isinstance(values, torch.Tensor):
            yield values
            return
        if dataclasses.is_dataclass(values) and not isinstance(values, type):
            values = [getattr(values, part.name) for part in dataclasses.fields(values)]
        elif self._output_of is not None and not isinstance(values, _KNOWN):
            kind = type(values).__name__
            self.warn_once(
                f"{self._output_of} returns a {kind} (others may too): tensors in it are not saved. "
                "Record them: hook.record_tensor_value('my_name', tensor)",
                f"type {kind}",
            )
        yield from super().tensors_in(values)

    # Several processes, and the end

    def agreement(self) -> Agree | None:
        """Let the ranks of `torch.distributed` stop after the same step."""
        self._agreement = Agreement.among_ranks(self.out_dir)
        return None if self._agreement is None else self._agree

    def _agree(self, last: int | None) -> int | None:
        step = self.last_step
        assert self._agreement is not None
        assert step is not None
        wanted = last is not None and last <= step.step
        is_last = self._agreement.is_last(wanted, step.mode, step.mode_step)
        return step.step if is_last else None

    def end_run(self, *, ended: bool) -> None:
        """End the run, with an end marker if the training `ended` well, and stop watching."""
        self._finish_step()
        if not ended:
            self.mark_interrupted()
        if self._observer is not None and self._observer.phases is not None:
            self._observer.phases.close()  # what follows may wait for other ranks
        if self._observer is not None and (iterations := self._observer.iterations) is not None:
            self.recorder.last_is_unused = iterations.is_unused
        super().end_run(ended=ended)
        if self._observer is not None:
            self._observer.close()
        self.detach()
