"""The function of a Keras model's step, replaced while a model trains by one that also returns its inside.

It is compiled once for each set of collections that is due. At steps at which nothing inside is wanted, the
model's own function runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Protocol

import keras

from smdebug.config.keys import CollectionKeys
from smdebug.tensorflow.capture import Collector, collecting

_MADE_BY = "_smdebug_steps"


class CapturingHook(Protocol):
    """What step functions need from the hook."""

    @property
    def due(self) -> int: ...

    @property
    def is_observing(self) -> bool: ...

    def looks_inside(self) -> bool: ...

    def wants_as(self, name: str, collection: str) -> bool: ...

    def warn_once(self, message: str, kind: str = "") -> None: ...


class StepFunctions:
    """Replaces `train_function` and `test_function` of the model that is trained."""

    def __init__(self, hook: CapturingHook):
        self.captured: dict[str, Any] = {}
        self.compiled: dict[tuple[str, int], Callable[[Any], Any]] = {}
        self.is_first = False  # a training has begun, and no batch of it
        self.has_weights = False  # rows of some batch counted more than others
        self._hook = hook
        self._model: Any = None
        self._armed = False  # a batch has begun, and its function has not run yet
        self._own: dict[str, Any] = {}  # the model's function that `compiled` belongs to
        self._replaced: dict[str, tuple[Any, Any]] = {}  # what it was, and what replaces it

    def set_model(self, model: Any) -> None:
        """Work on this model."""
        if model is not self._model:
            self.compiled.clear()
        self._model = model

    def begin_training(self, kind: str) -> None:
        """Replace the function of a training or evaluation that begins."""
        self.is_first = True
        self.replace(kind)

    def arm(self) -> None:
        """Let the next call capture: a batch begins."""
        self._armed = True

    def take_captured(self) -> dict[str, Any]:
        """Return what was captured of the batch, and forget it."""
        captured, self.captured = self.captured, {}
        return captured

    def is_replaced(self, kind: str) -> bool:
        """Return whether the function of this kind of step is replaced."""
        return kind in self._replaced

    def replace(self, kind: str) -> None:
        """Replace the function, also if Keras has made a new one since."""
        function: Any = getattr(self._model, f"{kind}_function", None)
        if function is None or function is self._replaced.get(kind, (None, None))[1]:
            return
        other = getattr(function, _MADE_BY, None)
        if other is not None and other is not self:
            if other.is_first:
                self._hook.warn_once(
                    "Gradients, inputs and outputs are not saved: another hook captures this training"
                )
                return
            other.restore(kind)  # its training was interrupted
            function = getattr(self._model, f"{kind}_function")
        if function is not self._own.get(kind):
            # The model was compiled again: it may have another loss, or frozen layers.
            self._own[kind] = function
            for key in [key for key in self.compiled if key[0] == kind]:
                del self.compiled[key]

        def step(*arguments: Any) -> Any:
            armed, self._armed = self._armed, False
            hook = self._hook
            if armed and (hook.is_observing or (hook.due and hook.looks_inside())):
                return self._capture(kind, function, arguments)
            return function(*arguments)

        setattr(step, _MADE_BY, self)
        self._replaced[kind] = function, step
        setattr(self._model, f"{kind}_function", step)

    def restore(self, kind: str) -> None:
        """Give the model its own function back."""
        function, ours = self._replaced.pop(kind, (None, None))
        if ours is not None and getattr(self._model, f"{kind}_function", None) is ours:
            setattr(self._model, f"{kind}_function", function)

    def restore_all(self) -> None:
        """Give the model all its functions back."""
        for kind in list(self._replaced):
            self.restore(kind)

    def _capture(self, kind: str, function: Callable[..., Any], arguments: Any) -> Any:
        key = (kind, self._hook.due)
        if key not in self.compiled:
            obstacle = _obstacle(self._model, kind)
            if obstacle is not None:
                self._hook.warn_once(f"Gradients, inputs and outputs are not saved: {obstacle}")
                # A loss is then saved as Keras logs it: the mean since the epoch began.
                self.compiled[key] = function
            else:
                self.compiled[key] = self._capturing(kind, function)
        capturing = self.compiled[key]
        if capturing is function:
            return function(*arguments)
        logs, self.captured = capturing(*arguments)
        return logs

    def _capturing(self, kind: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Compile a step that returns its logs and the requested intermediate values.

        Under the default plan that is the batch's loss, also where nothing is due. With PyTorch as Keras's
        backend the model's own step runs, which is not compiled, and is watched.
        """
        model, hook = self._model, self._hook
        plain_step = getattr(model, f"{kind}_step")
        layers = layers_of(model)
        if keras.backend.backend() == "torch":
            return partial(self._watched, function, layers)

        def step(data: Any) -> Any:
            collector = self._collector(layers, data)
            with collecting(collector):
                logs = plain_step(data)
            warn_of_hidden(hook, collector)
            return logs, collector.tensors

        compiled: Callable[..., Any] = model._make_function(step)
        return compiled

    def _watched(
        self, function: Callable[..., Any], layers: dict[int, str], batches: Any
    ) -> tuple[Any, dict[str, Any]]:
        """Run a step that is not compiled; return its logs and the requested intermediate values."""
        collector = self._collector(layers, batches[0])
        with collecting(collector):
            logs = function(batches)
        return logs, collector.tensors

    def _collector(self, layers: dict[int, str], data: Any) -> Collector:
        """Return a collector for a batch, which has its inputs and labels."""
        hook = self._hook
        wants = hook.wants_as if hook.due else _is_a_loss
        collector = Collector(wants, layers, self._model, observes=hook.is_observing)
        x, y, weights = keras.utils.unpack_x_y_sample_weight(data)
        self.has_weights = self.has_weights or weights is not None
        collector.offer("inputs", CollectionKeys.INPUTS, x)
        if y is not None:
            collector.offer("labels", CollectionKeys.OUTPUTS, y)
        return collector


def _is_a_loss(name: str, collection: str) -> bool:
    return collection == CollectionKeys.LOSSES


def warn_of_hidden(hook: CapturingHook, collector: Collector) -> None:
    """Warn of tensors that the collector met inside another graph."""
    if collector.hidden is not None:
        hook.warn_once(
            f"{collector.hidden} is not saved (nor may others be): it is inside a loop, a branch or a "
            "tf.function, and cannot leave it",
            "hidden",
        )


def layers_of(model: Any) -> dict[int, str]:
    """Return the names of a model's layers by id; those inside layers by their path."""
    names: dict[int, str] = {}

    def walk(layers: Iterable[Any], path: str) -> None:
        for layer in layers:
            if id(layer) not in names and not isinstance(layer, keras.layers.InputLayer):
                names[id(layer)] = f"{path}{layer.name}"
                walk(getattr(layer, "_layers", ()), f"{path}{layer.name}/")

    walk(model.layers, "")
    return names


def _obstacle(model: Any, kind: str) -> str | None:
    """Return why the inside of this model's steps cannot be seen."""
    backend = keras.backend.backend()
    if backend not in ("tensorflow", "torch"):
        return f"Keras runs on {backend}; they are seen with TensorFlow and PyTorch only"
    if backend == "torch" and model.jit_compile is True:
        return "torch.compile compiles the step (jit_compile)"
    if model.steps_per_execution != 1:
        return "several steps run as one (steps_per_execution)"
    make = f"make_{kind}_function"
    if getattr(type(model), make) is not getattr(keras.Model, make):
        return f"{type(model).__name__} has its own {make}"
    return None
