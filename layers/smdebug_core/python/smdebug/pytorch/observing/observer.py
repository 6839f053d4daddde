"""What the default plan observes of a PyTorch training besides the tensors of its modules.

The loss of every step, what a loss was computed from, learning rates, updates of parameters, gradients that
were not reset, modes of modules, and what scalers and dropout do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Protocol
from weakref import WeakKeyDictionary, ref

import torch
from torch import nn

from smdebug.files.names import LEARNING_RATES
from smdebug.mode_keys import TRAINING, ModeKeys
from smdebug.numbers.rows import SAMPLE_SIZE
from smdebug.pytorch.graphs.own_targets import own_target
from smdebug.pytorch.listening.callbacks import InGraph, is_compiling, kept_out_of_graphs
from smdebug.pytorch.listening.epochs import Epochs
from smdebug.pytorch.listening.optimizers import after_steps, named_in, optimizers, owned_by
from smdebug.pytorch.listening.process import PROCESS, UNSCALED
from smdebug.pytorch.modules.copies import Copies
from smdebug.pytorch.modules.evaluated_copies import EvaluatedCopies
from smdebug.pytorch.modules.names import name_of
from smdebug.pytorch.observing import facts
from smdebug.pytorch.observing.absolute_errors import AbsoluteErrors
from smdebug.pytorch.observing.accumulation import Accumulation
from smdebug.pytorch.observing.attention import Attention
from smdebug.pytorch.observing.codes import code_facts
from smdebug.pytorch.observing.dropout import Dropout
from smdebug.pytorch.observing.iterations import Iterations
from smdebug.pytorch.observing.labelled import Labelled, labelled, returned, with_labels
from smdebug.pytorch.observing.loss_graph import describe
from smdebug.pytorch.observing.opponents import Opponents
from smdebug.pytorch.observing.optimizer_state import (
    IdleOptimizers,
    LeftGradients,
    OptimizerState,
    closure_of,
    is_clear,
    owners_among,
    rates_of,
    updates_seen,
    witness_of,
)
from smdebug.pytorch.observing.phases import phases_of
from smdebug.pytorch.observing.placements import part_facts
from smdebug.pytorch.observing.sampling import Sampling
from smdebug.pytorch.observing.structure import Structure
from smdebug.pytorch.observing.targets import loss_facts
from smdebug.pytorch.observing.unregistered import MAX_NAMED, Unregistered
from smdebug.pytorch.repeating.twice import ComputedTwice
from smdebug.pytorch.tensors.updates import MIN_BYTES, Updates
from smdebug.saving.observations.step_observations import StepObservations
from smdebug.saving.planning.save_plan import Members
from smdebug.saving.planning.step_clock import StepClock
from smdebug.saving.recording.recorder import Recorder

LOSS = "loss"
_EVAL, _PREDICT = ModeKeys.EVAL, ModeKeys.PREDICT
Named = tuple[str, nn.Parameter]


class ObservedHook(Protocol):
    """What observing needs from the hook."""

    recorder: Recorder
    training_run: int

    @property
    def mode(self) -> ModeKeys: ...
    def record_together(self, tensors: Sequence[tuple[str, Any]]) -> None: ...
    def packed(self, names: tuple[str, ...], values: Sequence[Any]) -> Any: ...
    def record_changes(self, names: tuple[str, ...], values: Sequence[Any], before: Any) -> bool: ...
    def carry(self, name: str, value: Any) -> None: ...
    def tensors_in(self, values: Any) -> Iterator[Any]: ...
    def observe_inputs_of(self, layer: str) -> None: ...
    def observe_parts(self) -> None: ...
    def note_update(self) -> None: ...
    def leave_out(self, error: Exception) -> None: ...
    def warn_once(self, message: str, kind: str = "") -> None: ...


class TorchObserver:
    """Observes one hook's training for as long as the hook keeps it.

    The class is long because what PyTorch calls during a step arrives here.
    """

    def __init__(
        self,
        hook: ObservedHook,
        observations: StepObservations,
        sees_optimizers: bool = True,
        *,
        compute_twice: int | None = None,
    ):
        self._hook = hook
        self._recorder = hook.recorder
        self._observations = observations
        self._structure: Structure | None = None
        self._awaited: ref[nn.Module] | None = None
        self._names: dict[int, str] = {}
        self._roots: frozenset[str] = frozenset()
        self._groups: list[Any] | None = None
        """The parameters of the optimizers' groups, as they were noted last."""
        self._optimizers: WeakKeyDictionary[Any, OptimizerState] = WeakKeyDictionary()
        self._latest: tuple[Callable[[], Any], OptimizerState] = (_no_optimizer, OptimizerState())
        """The optimizer that was met last, with what is known of it."""
        self._known: list[tuple[ref[Any], OptimizerState]] = []
        """The same: to iterate over a dictionary of weak keys takes ten times as long."""
        self._idle = IdleOptimizers()
        self._met = 0
        self._states: list[OptimizerState] = []
        self._left: LeftGradients | None = None
        self._updates = Updates(hook)
        self._spans_steps = False
        """Whether updates are measured from step to step, because no optimizer has the parameters."""
        self.accumulation = Accumulation()
        self.epochs = Epochs()
        self.iterations: Iterations | None = None
        """The iterations of the training, where those are its steps."""
        self._some: list[ref[nn.Parameter]] = []
        """Some parameters, whose gradients show whether all were reset."""
        self._has_described = False
        self._batch: list[torch.Tensor] = []
        """The inputs of the batch, until its loss was described, and what the models returned for them:"""
        self._returned: list[torch.Tensor] = []
        self._labelled: Labelled | None = None
        self._returns_loss = False
        """Whether a model has returned a number beside, or instead of, its predictions: its own loss."""
        self._is_of_labels = False
        """Whether the loss of the training is one that the model computes of its labels."""
        self._criteria = self._criteria_before = 0
        """How many criteria were called without gradients; and before the model was last evaluated."""
        self._absolute = AbsoluteErrors(hook.recorder, hook.leave_out)
        self._attention = Attention()
        self._dropout = Dropout(hook, observations)
        self._copies = Copies(hook.leave_out)
        self._evaluated_copies = EvaluatedCopies(self._copies, _passes_of(self), hook.leave_out)
        self._opponents = Opponents(hook.leave_out)
        self._sampling = Sampling(hook.leave_out)
        self.phases = phases_of(hook.recorder, hook.leave_out)
        self._twice = ComputedTwice(hook, observations, compute_twice) if compute_twice else None
        self._backwards = 0
        self._shares_graph = False
        """Whether a backward pass since the last update has kept its graph for the next one."""
        self._handles: list[Any] = []
        self._sees_calls = sees_optimizers
        if sees_optimizers:  # callbacks would change a graph that contains their steps
            self._handles = [after_steps(_after_step_of(self))]
        PROCESS.add(self)

    def count_iterations(self, models: Iterable[tuple[nn.Module, str]], calls: int) -> None:
        """Count iterations from now on. The model was called that often to be trained."""
        self.iterations = Iterations(lambda: owners_among(optimizers(), models))
        self.iterations.calls = calls

    def before_compile(self, module: nn.Module | None) -> None:
        """Take callbacks off that will not stay: each change is a reason to compile again."""
        self._copies.leave()
        self._evaluated_copies.leave()
        self._opponents.end_step()

    def close(self) -> None:
        """Stop observing."""
        PROCESS.discard(self)
        self._copies.close()
        self._evaluated_copies.close()
        self._opponents.end_step()
        if self._twice is not None:
            self._twice.close()
        for handle in self._handles:
            handle.remove()
        if self._left is not None:
            self._left.close()
        self._updates.forget()

    def begin_step(
        self,
        structure: Structure,
        model: nn.Module | None,
        parameters: Sequence[Named],
        in_graph: InGraph = InGraph.NOTHING,
    ) -> None:
        """Note the facts of a step that is saved. `model` is the one whose forward begins steps."""
        self._has_described = False
        self._dropout.begin_step(structure)
        note = self._observations
        if structure is not self._structure:
            self._structure = structure
            self._roots = structure.roots
            for root in self._roots:
                self._hook.observe_inputs_of(root)
            self._names = {id(parameter): name for name, parameter in parameters}
            self._some = [ref(parameter) for _, parameter in parameters if parameter.requires_grad][:8]
            self._groups = None
            held = part_facts(parameters, model)
            note.note_lasting(modules=structure.modules, **facts.input_facts(model), **held)
            if held:
                self._hook.observe_parts()
            if self._hook.training_run:
                note.note_lasting(attempt=self._hook.training_run)
        note.note_lasting(**facts.parameter_facts(parameters))
        if model is not None:
            device = parameters[0][1].device.type if parameters else "cpu"
            note.note(**facts.mode_facts(model, name_of, structure.mode_dependent))
            self._awaited = ref(model)
            if in_graph is not InGraph.MODEL:  # a graph is compiled for what is set, and runs without it
                note.note(**facts.autocast_facts(device))
        if self._spans_steps:
            self._updates.before_step(parameters)
        self._note_optimizers()
        self._idle.begin_step(parameters, self._optimizers)
        begun = self._recorder.last_begun
        if begun is None or begun.mode not in TRAINING:
            return
        if sampler := self._sampling.facts():
            note.note_lasting(**sampler)
        if self._sees_calls and len(self._known) > 1:
            self._opponents.begin_step(structure.models)
        if self._sees_calls:
            if copy := self._copies.begin_step(parameters, structure.module_ids):
                note.note(copied_model=copy)
            if self._copies.followed is not None:
                note.note(followed=self._copies.followed)
            if self._evaluated_copies.are_sought:
                is_evaluated = self._recorder.clock.in_mode(_EVAL).mode_step > 0
                if evaluated := self._evaluated_copies.begin_step(parameters, is_evaluated=is_evaluated):
                    note.note(evaluated_copy=evaluated)
        if self._twice is not None:
            self._twice.begin_step(structure, model, begun.mode_step, parameters, bool(in_graph))

    def forward_begins(self, model: nn.Module) -> None:
        """Note the mode of the model at its first forward with gradients in a step that was begun by hand.

        A Trainer begins the step, and only then ends the mode of the evaluation before it.
        """
        structure, awaited = self._structure, self._awaited
        if structure is None or awaited is None or awaited() is not model or not torch.is_grad_enabled():
            return
        self._awaited = None
        self._observations.note(**facts.mode_facts(model, name_of, structure.mode_dependent))

    def _note_optimizers(self) -> None:
        """Note which parameters the groups of the optimizers have, if that is not what was noted last."""
        groups = [
            (number, [list(map(id, group["params"])) for group in optimizer.param_groups])
            for optimizer, number in self._numbered()
        ]
        if groups and groups != self._groups:
            self._groups = groups
            self._observations.note_lasting(optimizers=facts.optimizer_facts(self._known, self._names))

    def end_step(self) -> None:
        """Measure what has changed since the step began, if no optimizer was seen to change it."""
        self._batch = self._returned = []
        self._opponents.end_step()
        self._labelled = None
        self._absolute.taken()
        if self._spans_steps and self._updates:
            self._measure_updates()

    def place_due(self, due: Members, clock: StepClock, is_next_due: bool) -> Members:
        """Postpone due steps to the next update, while gradients are accumulated."""
        if clock.mode in (ModeKeys.EVAL, ModeKeys.PREDICT):
            return due
        return self.accumulation.placed(due, clock.mode_step, is_next_due=is_next_due)

    def measure_from_step_to_step(self) -> None:
        """Measure updates from step to step until an optimizer is seen that has parameters of the model."""
        self._spans_steps = True

    def is_model(self, name: str) -> bool:
        """Whether that is the name of a whole model, whose inputs are the batch."""
        return name in self._roots

    def note_batch(self, inputs: Iterable[Any]) -> None:
        """Note the form of the batch."""
        tensors = [tensor for tensor in inputs if isinstance(tensor, torch.Tensor)]
        self._batch = tensors
        self._observations.note(**facts.batch_facts(tensors))

    def note_output(self, name: str, output: torch.Tensor) -> None:
        """Keep what a whole model returned, until the loss was described."""
        if name in self._roots:
            self._returned = [*self._returned[-3:], output]
            self.note_own_loss([output])

    def note_own_loss(self, outputs: Iterable[torch.Tensor]) -> None:
        """Note whether a loss is among what a whole model returned."""
        if any(output.numel() == 1 and output.requires_grad for output in outputs):
            self._returns_loss = True

    def note_labels(self, module: nn.Module, labels: Any, output: Any) -> None:
        """Keep the labels that a model was given, until the loss was described."""
        self._labelled = labelled(module, labels, output) if isinstance(labels, torch.Tensor) else None

    def evaluated(self, output: Any) -> None:
        """Take the loss of an evaluation from what the model has returned.

        Where a criterion has shown one, the model may have divided it: a sum by the number of tokens.
        """
        called, self._criteria_before = self._criteria - self._criteria_before, self._criteria
        loss = returned(output, LOSS)
        if loss is not None and (called or self._is_of_labels):
            self._recorder.carry(LOSS, loss, instead=bool(called))

    def fail(self, error: Exception) -> None:
        """Log what went wrong; that is left out, and the rest is saved."""
        self._hook.leave_out(error)

    # What the process does

    def before_backward(self, tensors: Sequence[Any], is_retained: bool) -> None:
        self._backwards += 1
        if is_retained:
            self._shares_graph = True
        if self.phases is not None:
            self.phases.backward_begins()
        for state in self._states:
            if not state.was_clear:
                # `state.gradient`, and at most steps it is None, without the calls:
                parameter = None if state.witness is None else state.witness()
                gradient = None if parameter is None else parameter.grad
                state.was_clear = gradient is None or is_clear(gradient)
                if not state.was_clear and self._left is None:
                    self._left = LeftGradients(self._states, self._hook.leave_out)
                    self._left.before_backward(tensors, is_retained)
        iterations, recorder = self.iterations, self._recorder
        if recorder.due:
            self._idle.before_backward()
        if iterations is not None:
            iterations.passed(self._are_clear)
        for tensor in tensors:
            if not isinstance(tensor, torch.Tensor):
                continue
            loss = getattr(tensor, UNSCALED, tensor)
            if iterations is None or not iterations.is_repeated:
                recorder.carry(LOSS, loss)
            if recorder.due and len(self._known) > 1:
                self._opponents.before_backward(loss)
            if recorder.due and loss.numel() == 1 and (target := own_target(loss, self._names)) is not None:
                self._observations.note(own_target=target._asdict())
            if recorder.due and not self._has_described and loss.numel() == 1:
                graph = describe(loss, self._absolute.taken(), self._returned)
                self._is_of_labels = graph is not None and not graph.terms
                graph = with_labels(graph, loss, self._labelled)
                self._is_of_labels = self._is_of_labels and graph is not None and bool(graph.terms)
                self._returned, self._labelled = [], None
                if graph is not None:
                    self._has_described = True
                    attention = self._attention.facts(loss, graph, self._batch)
                    codes = None if graph.is_whole else code_facts(loss, bool(graph.terms))
                    padding_id = None if self._structure is None else self._structure.padding_id
                    described = loss_facts(
                        loss, graph, self._batch, attention, codes, padding_id, is_returned=self._returns_loss
                    )
                    self._observations.note(loss=described)
                    self._batch, self._returns_loss = [], False

    def _are_clear(self) -> bool:
        """Return whether some parameters have no gradients, as those of all were reset."""
        known = [parameter() for parameter in self._some]
        return all(parameter is None or is_clear(parameter.grad) for parameter in known)

    def after_criterion(self, name: str, value: Any) -> None:
        """Take a loss without a graph as that of an evaluation.

        While the model is trained it is that of something else, such as a mean of its weights.
        """
        if isinstance(value, torch.Tensor) and value.numel() == 1:
            self._criteria += 1
            begun = self._recorder.last_begun
            if begun is None or begun.mode not in TRAINING:
                self._recorder.carry(LOSS, value)
            elif self._sees_calls:
                self._evaluated_copies.criteria += 1
                if self._evaluated_copies.is_searched:
                    self._evaluated_copies.search()

    def after_scaling(self, scaler: Any) -> None:
        if self._recorder.due:
            scale = getattr(scaler, "_scale", None)  # one that is not enabled has none
            if isinstance(scale, torch.Tensor):
                kept = scale.detach().clone()
                self._observations.note(loss_scale=lambda: float(kept))

    def after_scaled_step(self, optimizer: Any) -> None:
        self._guarded(self._after_scaled_step, optimizer)

    def _after_scaled_step(self, optimizer: Any) -> None:
        if self.iterations is not None:  # it has updated, or would have but for an overflow
            self.iterations.updated(self._state_of(optimizer).number)
        if self._recorder.due and self._state_of(optimizer).stepped_at < self._backwards:
            self._observations.note(update_skipped=True)

    @kept_out_of_graphs
    def _guarded(self, call: Callable[[Any], object], argument: Any) -> None:
        """Observe; the training continues whatever goes wrong."""
        try:
            call(argument)
        except Exception as error:  # noqa: BLE001
            self._hook.leave_out(error)

    # Optimizers

    def before_optimizer(self, optimizer: Any) -> None:
        """Keep parameters as they are, if the step that runs is saved, and note what comes before updates."""
        if not self._recorder.due:
            return
        state = self._state_of(optimizer)
        ours = named_in(optimizer, self._names)
        self._spans_steps = not ours and (self._spans_steps or len(self._optimizers) == 1)
        if ours:
            self._updates.before_step(ours)
        elif any(parameter.grad is not None for parameter in owned_by(optimizer)):
            self._observations.note(other_gradients=True)
        was_clear = state.was_clear or self._backwards == state.stepped_at
        state.stepped_clear = was_clear or state.is_replaced()
        if self._backwards == state.stepped_at and (has_used := state.has_used()) is not False:
            self._observations.note(gradients_were_used=partial(bool, has_used))
        state.use()
        if self._shares_graph:
            self._observations.note(passes_share_graph=True)
        if self.iterations is not None and self.iterations.is_repeated:
            self._observations.note(reset_between_passes=True)
        if labels := self._opponents.stepped(state.number):
            self._observations.note(opponents=[*labels])
        idle = self._idle.facts(self._optimizers)
        if idle is not None:
            self._observations.note(idle_optimizers=idle)
        if self._structure is not None and self._structure.unregistered:
            self._note_unregistered(self._structure.unregistered)
        state.rates = rates_of(optimizer)
        self._carry_rates(state.rates, state)
        if self._twice is not None:
            self._twice.before_update(optimizer, self._names)

    def _note_unregistered(self, unregistered: Unregistered) -> None:
        """Note which parameters outside of the models have gradients and no optimizer."""
        places = unregistered.without_owner(optimizer for optimizer, _ in self._numbered())
        if places:  # one of an optimizer that has not made a step yet
            places = unregistered.without_owner(optimizers())
        if places:
            self._observations.note(unregistered={"places": places[:MAX_NAMED], "count": len(places)})

    @kept_out_of_graphs
    def after_optimizer(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """Note that parameters were updated, and measure by how much if the step is saved.

        This is called at every step, when the training has used the processor's caches: what it does at
        those that are not saved is written out, with few calls and objects.
        """
        try:
            recorder = self._recorder
            system = recorder.system
            if system is not None:  # what `end_step` does, without the call
                system.ended = system.clock()
            known, state = self._latest
            if recorder.due or known() is not optimizer:
                state = self._updated(optimizer)
            stepped_before, state.stepped_at = state.stepped_at, self._backwards
            state.was_clear = state.witness is None
            self._shares_graph = False
            if self.phases is not None:
                self.phases.update_ends()
            if self.iterations is not None:
                self.iterations.updated(state.number)
            groups, rates = optimizer.param_groups, state.rates
            if len(groups) != 1 or not rates or groups[0].get("lr") is not rates[0]:
                self._note_rates(optimizer, state)
            if recorder.last_begun is None:
                return
            mode, mode_step = recorder.last_begun[1:3]
            has_closure = bool(len(args) > 1 or kwargs) and closure_of(args, kwargs) is not None
            if recorder.due:
                are_clear = all(known.stepped_clear for known in self._states)
                self._observations.note(
                    optimizer_steps=True,
                    backward_passes=self._backwards - stepped_before,
                    # A closure may reset the gradients, which it computes within the step.
                    gradients_were_reset=None if has_closure else are_clear,
                )
            if self._twice is not None and mode in TRAINING:
                step = mode_step + recorder.passed
                self._twice.after_update(optimizer, self._names, step, has_closure=has_closure)
            if has_closure or len(self._states) > 1:
                self.accumulation.forget()
            elif mode is not _EVAL and mode is not _PREDICT:
                self.accumulation.updated(mode_step + recorder.passed)
            if mode is _EVAL:
                self._hook.note_update()
        except Exception as error:  # noqa: BLE001
            self._hook.leave_out(error)

    def _updated(self, optimizer: Any) -> OptimizerState:
        """Measure what an optimizer has changed, and return what is known of it."""
        if self._updates.before and not self._spans_steps:
            self._measure_updates()
        state = self._state_of(optimizer)
        if state.witness is None or state.witness() is None:
            state.witness = witness_of(optimizer)
        if self._groups is None and self._recorder.due:
            self._note_optimizers()
        return state

    def _measure_updates(self) -> None:
        self._updates.after_step()
        self._observations.note_lasting(updates_are_sampled=self._updates.are_sampled)
        if self._updates.are_sampled:
            self._hook.warn_once(
                f"Updates are measured of {SAMPLE_SIZE} values of each parameter: copies of all "
                f"parameters would take more than {MIN_BYTES >> 20} MB",
                "sampled updates",
            )

    def _state_of(self, optimizer: Any) -> OptimizerState:
        found = self._optimizers.get(optimizer)
        if found is None:  # it is met at its first step, for which all passes so far may have been
            found = self._optimizers[optimizer] = OptimizerState(self._met)
            found.updates_before = updates_seen(optimizer)
            self._groups = None
            self._met += 1
            self._known = [(ref(each), its) for each, its in self._optimizers.items()]
            self._states[:] = [its for _, its in self._known]  # the list that LeftGradients has
        self._latest = ref(optimizer), found
        return found

    def _numbered(self) -> list[tuple[Any, int]]:
        return [
            (optimizer, state.number) for known, state in self._known if (optimizer := known()) is not None
        ]

    def _note_rates(self, optimizer: Any, state: OptimizerState) -> None:
        """Carry the learning rates if they have changed since a step that was saved, which has them."""
        rates = rates_of(optimizer)
        if rates != state.rates and not self._recorder.due:
            self._carry_rates(rates, state)
        state.rates = rates

    def _carry_rates(self, rates: list[Any], state: OptimizerState) -> None:
        number = [each for known, each in self._known if known() is not None].index(state)
        for group, rate in enumerate(rates):
            if rate is not None:
                self._hook.carry(f"{LEARNING_RATES}{number}/{group}", rate)


def _after_step_of(observer: TorchObserver) -> Callable[..., None]:
    """Return what PyTorch calls after each step of an optimizer: calling an object would take longer."""
    known = ref(observer)

    def after_step(optimizer: Any, args: Any, kwargs: Any) -> None:
        if is_compiling():
            return  # the step is part of a graph, which stays as it is
        observer = known()
        if observer is not None:
            observer.after_optimizer(optimizer, args, kwargs)

    return after_step


def _passes_of(observer: TorchObserver) -> Callable[[], int]:
    """Return what tells how many backward passes there have been, and does not keep the observer."""
    known = ref(observer)

    def passes() -> int:
        observer = known()
        return 0 if observer is None else observer._backwards

    return passes


def _no_optimizer() -> None:
    """Return what no optimizer is."""
