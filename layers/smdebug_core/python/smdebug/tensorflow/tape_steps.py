"""The steps of a loop with a gradient tape: each begins with `with tape:` and is saved by `tape.gradient`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from smdebug.config.keys import CollectionKeys
from smdebug.mode_keys import ModeKeys
from smdebug.tensorflow.capture import Collector, collecting, path_of
from smdebug.tensorflow.step_functions import CapturingHook, layers_of, warn_of_hidden

if TYPE_CHECKING:
    from smdebug.tensorflow.compiled_steps import CompiledSteps, NamedValue
    from smdebug.tensorflow.observer import KerasObserver

Named = list[tuple[str, Any]]


class RecordingHook(CapturingHook, Protocol):
    """What the steps of a tape need from the hook."""

    in_batch: bool

    @property
    def observer(self) -> KerasObserver | None: ...

    @property
    def follows_default_plan(self) -> bool: ...

    def carry(self, name: str, value: Any) -> None: ...

    def wants(self, tensor_name: str) -> bool: ...

    def begin_step(self, mode: ModeKeys | None = None) -> None: ...

    def record(self, tensor_name: str, tensor_value: Any) -> None: ...

    def record_as(self, name: str, value: Any, collection: str) -> None: ...

    def record_variable(self, name: str, variable: Any) -> None: ...

    def record_optimizer(self, optimizer: Any) -> None: ...

    def guarded(self, capture: Callable[[], object]) -> None: ...


class TapeSteps:
    """Records a step whenever a watched tape is entered and asked for gradients."""

    def __init__(self, hook: RecordingHook):
        self.model: Any = None  # whose layers are saved too
        self.optimizer: Any = None  # whose variables are saved too
        self._hook = hook
        self._context: Any = None
        self._collector: Collector | None = None
        self._names: set[str] = set()  # used within this step
        self._compiled: CompiledSteps | None = None

    def entered(self) -> None:
        """Begin a step: the tape was entered."""
        self.left()
        self._names.clear()
        self._hook.begin_step()
        if self._hook.due and self.model is not None and self._hook.looks_inside():
            self._collector = Collector(
                self._hook.wants_as,
                layers_of(self.model),
                self.model,
                observes=self._hook.is_observing,
            )
            self._context = collecting(self._collector)
            self._context.__enter__()

    def left(self) -> None:
        """Stop collecting: the forward of the step is over."""
        context, self._context = self._context, None
        if context is not None:
            context.__exit__(None, None, None)

    def gradients_requested(self, target: Any, sources: Any, gradients: Any) -> None:
        """Record all that is known of the step: the tape was asked for gradients."""
        self.left()
        if self._hook.due:
            self._hook.guarded(lambda: self._record(target, sources, gradients))
        elif self._hook.is_observing:
            self._hook.guarded(lambda: self._carry_losses(target))

    def traced(self) -> bool:
        """Begin a step of a function that is traced; return whether its steps are the tape's."""
        if self._hook.in_batch:
            return False
        self._names.clear()
        self._compiled_steps().entered()
        return True

    def gradients_requested_in_graph(self, target: Any, sources: Any, gradients: Any) -> None:
        """Make the traced function record the step whenever it runs."""
        self._hook.guarded(lambda: self._compiled_steps().add(self._in_graph(target, sources, gradients)))

    def _compiled_steps(self) -> CompiledSteps:
        if self._compiled is None:
            from smdebug.tensorflow.compiled_steps import CompiledSteps

            self._compiled = CompiledSteps(self._hook)
        return self._compiled

    def _in_graph(self, target: Any, sources: Any, gradients: Any) -> list[NamedValue]:
        from smdebug.tensorflow.compiled_steps import NamedValue

        losses, variables, named_gradients = self._named(target, sources, gradients)
        return [
            *(NamedValue(name, CollectionKeys.LOSSES, loss) for name, loss in losses),
            *(NamedValue(name, None, variable) for name, variable in variables),
            *(NamedValue(name, CollectionKeys.GRADIENTS, value) for name, value in named_gradients),
            *(
                NamedValue(f"{path_of(variable)}:0", CollectionKeys.OPTIMIZER_VARIABLES, variable)
                for variable in getattr(self.optimizer, "variables", ())
                if not self._hook.follows_default_plan
            ),
        ]

    def _record(self, target: Any, sources: Any, gradients: Any) -> None:
        import tensorflow as tf

        losses, variables, named_gradients = self._named(target, sources, gradients)
        for name, loss in losses:
            self._hook.record_as(name, loss, CollectionKeys.LOSSES)
        observer = self._hook.observer
        if observer is not None:
            observer.observe_parameters(variables)
            if self.model is not None:
                observer.note_model(self.model, layers_of(self.model))
            if self.optimizer is not None:
                observer.note_optimizer(self.optimizer)
                observer.carry_rate(self.optimizer)
        else:
            for name, variable in variables:
                self._hook.record_variable(name, variable)
        for name, gradient in named_gradients:
            if self._hook.wants_as(name, CollectionKeys.GRADIENTS):
                self._hook.record(name, tf.convert_to_tensor(gradient))
        collector, self._collector = self._collector, None
        if collector is not None:
            warn_of_hidden(self._hook, collector)
            for name, value in collector.tensors.items():
                self._hook.record(name, value)
        if observer is None:
            self._hook.record_optimizer(self.optimizer)

    def _carry_losses(self, target: Any) -> None:
        import tensorflow as tf

        for name, loss in self._named_losses(tf.nest.flatten(target)):
            self._hook.carry(name, loss)

    def _named(self, target: Any, sources: Any, gradients: Any) -> tuple[Named, Named, Named]:
        """Return the losses, variables and gradients of a step, each with its name."""
        import tensorflow as tf

        variables = tf.nest.flatten(sources)
        losses = self._named_losses(tf.nest.flatten(target))
        weights = self._named_variables(variables)
        return losses, weights, self._named_gradients(variables, tf.nest.flatten(gradients))

    def _named_losses(self, targets: list[Any]) -> Named:
        losses = [value for value in targets if value is not None]
        return [
            (self._unused("loss" if len(losses) == 1 else f"loss_{number}"), loss)
            for number, loss in enumerate(losses)
        ]

    def _named_variables(self, variables: list[Any]) -> Named:
        if self.model is not None:
            known = {id(variable) for variable in variables}
            variables = variables + [
                weight
                for weight in self.model.weights
                if id(weight) not in known and id(weight.value) not in known
            ]
        named = []
        for variable in variables:
            path = self._path_of(variable)
            if path is not None and (name := f"weights/{path}:0") not in self._names:
                self._names.add(name)
                named.append((name, variable))
        return named

    def _named_gradients(self, variables: list[Any], gradients: list[Any]) -> Named:
        return [
            (self._unused(f"gradients/{path}Grad"), gradient)
            for variable, gradient in zip(variables, gradients, strict=True)
            if gradient is not None and (path := self._path_of(variable)) is not None
        ]

    def _unused(self, name: str) -> str:
        """Return the name, numbered where a persistent tape is asked for it again within a step."""
        unused, number = name, 0
        while unused in self._names:
            number += 1
            unused = f"{name}_{number}"
        self._names.add(unused)
        return unused

    def _path_of(self, variable: Any) -> str | None:
        """Return a variable's path; None for the other tensors that a tape may be asked about."""
        has_name = isinstance(getattr(variable, "path", None), str) or hasattr(variable, "assign")
        return path_of(variable, self.model) if has_name else None
