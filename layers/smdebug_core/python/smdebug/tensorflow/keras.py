"""The hook for Keras: a callback of `fit`, `evaluate` and `predict`, and a watcher of gradient tapes.

    hook = smd.KerasHook("s3://bucket/run", include_collections=["weights", "gradients"])
    model.fit(x, y, callbacks=[hook])

It works with each backend of Keras; what is inside of a step (gradients, inputs and outputs of layers) is
seen with TensorFlow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from smdebug.config.keys import CollectionKeys
from smdebug.exceptions import SMDebugTypeError, TrainingStopped
from smdebug.mode_keys import ModeKeys
from smdebug.saving.framework import require
from smdebug.tensorflow.base_hook import TensorflowBaseHook

require("Keras", "keras", "tensorflow")

import keras  # noqa: E402

from smdebug.tensorflow.capture import (  # noqa: E402
    Collector,
    collecting,
    gradient_names,
    path_of,
)

_MADE_BY = "_smdebug_hook"
_KINDS = {ModeKeys.TRAIN: "train", ModeKeys.EVAL: "test"}
_INSIDE = frozenset(
    {
        *(CollectionKeys.GRADIENTS, CollectionKeys.LAYERS, CollectionKeys.INPUTS),
        *(CollectionKeys.OUTPUTS, CollectionKeys.ALL, CollectionKeys.DEFAULT),
    }
)


class KerasHook(TensorflowBaseHook, keras.callbacks.Callback):  # type: ignore[misc]
    """Saves losses, metrics, weights, gradients, and what layers are given and give, of a Keras model.

        hook = smd.KerasHook(out_dir, include_collections=["weights", "gradients"])
        model.fit(x, y, callbacks=[hook])

    A batch is a step; modes set themselves. In a loop of your own: `with hook.wrap_tape(tf.GradientTape())
    as tape:`. When the training is asked to stop, `fit` ends after the batch, as `model.stop_training` does
    it; `hook.stopped` tells why.
    """

    def _make_ready(self) -> None:
        super()._make_ready()
        keras.callbacks.Callback.__init__(self)
        self.stopped: TrainingStopped | None = None
        self._runs = False  # a batch has begun, and not ended
        self._looks = False  # that batch's function has not run yet
        self._is_first = False  # a training has begun, and no batch of it
        self._captured: dict[str, Any] = {}
        self._functions: dict[tuple[str, int], Callable[[Any], Any]] = {}
        self._own: dict[str, Any] = {}  # the function of the model that those belong to
        self._replaced: dict[str, tuple[Any, Any]] = {}  # what it was, and what we have made of it
        self._logged: set[tuple[int, str]] = set()
        self._wrapped_optimizer: Any = None
        self._given_gradients: dict[str, Any] = {}
        self._registered: Any = None  # the model of a loop with a tape
        self._tape_context: Any = None
        self._tape_collector: Collector | None = None
        self._taped: set[str] = set()  # what this step's tape has told already

    # What Keras calls

    def set_model(self, model: Any) -> None:
        """The model that is trained, or looked at."""
        if model is not getattr(self, "_model", None):
            self._functions.clear()
        keras.callbacks.Callback.set_model(self, model)

    def on_train_begin(self, logs: Any = None) -> None:
        self._is_first = True
        self._replace("train")

    def on_train_end(self, logs: Any = None) -> None:
        self._restore("train")
        self.flush(self._patience)

    def on_test_begin(self, logs: Any = None) -> None:
        self._is_first = True
        self._replace("test")

    def on_test_end(self, logs: Any = None) -> None:
        self._restore("test")

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        self._begin(ModeKeys.TRAIN)

    def on_test_batch_begin(self, batch: int, logs: Any = None) -> None:
        self._begin(ModeKeys.EVAL)

    def on_predict_batch_begin(self, batch: int, logs: Any = None) -> None:
        self._begin(ModeKeys.PREDICT)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self._end(batch, logs)

    def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
        self._end(batch, logs)

    def on_predict_batch_end(self, batch: int, logs: Any = None) -> None:
        if self._due and logs:
            for name, value in _numbered("predictions", logs.get("outputs")):
                self.record_as(name, value, CollectionKeys.OUTPUTS)
        self._end(batch, None)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """What an epoch gave in all, and its validation, is saved with the last step, whatever is due."""
        for name, value in (logs or {}).items():
            if self._ran is None or (self._ran.step, name) in self._logged:
                continue
            if self.mode is ModeKeys.EVAL and not name.startswith("val_"):
                continue  # the last batch of the training has told it
            self.save_tensor(name, value, [_of_log(name)])

    def _begin(self, mode: ModeKeys) -> None:
        self._looks = True
        if self._runs and self.mode is mode:
            return  # the batch before turned out to be none: the data had ended
        try:
            self.begin_step(mode)
        except TrainingStopped as stopped:
            self.stopped = stopped
            self._model.stop_training = True
            return
        self._runs = True
        self._is_first = False
        if self._due and (kind := _KINDS.get(mode, "")) in self._replaced:
            self._replace(kind)

    def _end(self, batch: int, logs: Mapping[str, Any] | None) -> None:
        self._runs = False
        captured, self._captured = self._captured, {}
        if not self._due:
            return
        self.guarded(lambda: self._record_step(batch, logs, captured))

    def _record_step(
        self, batch: int, logs: Mapping[str, Any] | None, captured: Mapping[str, Any]
    ) -> None:
        self._logged.clear()
        if logs is not None and self._ran is not None:
            for name, value in {**logs, "batch": batch}.items():
                self.record_as(name, value, _of_log(name))
                self._logged.add((self._ran.step, name))
        for name, value in captured.items():
            self.record(name, value)
        for name, value in self._given_gradients.items():
            self.record_as(name, value, CollectionKeys.GRADIENTS)
        if self._any_variable_due():
            self._record_variables(self.model)  # with JAX, asking for it fetches the values
        optimizer = getattr(self._model, "optimizer", None) or self._wrapped_optimizer
        self._record_optimizer(optimizer)

    # Variables

    def _any_variable_due(self) -> bool:
        """Could a variable be wanted? Then it is worth asking of each."""
        assert self._plan is not None
        due = {collection.name for collection in self._plan.collections(self._due or 0)}
        return bool(due - {"losses", "metrics", "sm_metrics", "gradients"})

    def _record_variables(self, model: Any) -> None:
        of_layers = set()
        for layer in model.layers:
            for variable in layer.weights:
                of_layers.add(id(variable))
                path = path_of(variable, model)
                self._record_variable(f"{layer.name}/weights/{path}:0", variable)
        for variable in model.weights:
            if id(variable) not in of_layers:
                path = path_of(variable, model)
                self._record_variable(f"{model.name}/weights/{path}:0", variable)

    def _record_variable(self, name: str, variable: Any) -> None:
        if self.wants(name):
            self.record(name, keras.ops.convert_to_numpy(variable))

    def _record_optimizer(self, optimizer: Any) -> None:
        if optimizer is None:
            return
        for variable in optimizer.variables:
            name = f"{path_of(variable)}:0"
            if self.wants_as(name, CollectionKeys.OPTIMIZER_VARIABLES):
                self.record(name, keras.ops.convert_to_numpy(variable))

    # What is inside of a step

    def _replace(self, kind: str) -> None:
        """Let the function of a step be one that captures, at steps at which that is wanted."""
        function: Any = getattr(self._model, f"{kind}_function", None)
        if function is None:
            return
        if function is self._replaced.get(kind, (None, None))[1]:
            return
        other = getattr(function, _MADE_BY, None)
        if other is not None and other is not self:
            if other._is_first:
                self.say_once(
                    "Gradients, inputs and outputs are not saved: another hook looks into this training"
                )
                return
            other._restore(kind)  # its training was interrupted
            function = getattr(self._model, f"{kind}_function")
        if function is not self._own.get(kind):
            # Compiled anew, it may have another loss, or layers that are frozen.
            self._own[kind] = function
            for key in [key for key in self._functions if key[0] == kind]:
                del self._functions[key]

        def step(*arguments: Any) -> Any:
            looks, self._looks = self._looks, False
            if not looks or not self._due or not self._looks_inside():
                return function(*arguments)
            return self._capture(kind, function, arguments)

        setattr(step, _MADE_BY, self)
        self._replaced[kind] = function, step
        setattr(self._model, f"{kind}_function", step)

    def _restore(self, kind: str) -> None:
        function, ours = self._replaced.pop(kind, (None, None))
        if ours is not None and getattr(self._model, f"{kind}_function", None) is ours:
            setattr(self._model, f"{kind}_function", function)

    def _looks_inside(self) -> bool:
        """Is something due that only the inside of a step has?"""
        assert self._plan is not None
        due = self._plan.collections(self._due or 0)
        known = self.collection_manager.default_collections
        return any(c.name in _INSIDE or c.name not in known for c in due)

    def _capture(self, kind: str, function: Callable[..., Any], arguments: Any) -> Any:
        model, key = self._model, (kind, self._due or 0)
        if key not in self._functions:
            why_not = _why_not(model, kind)
            if why_not is not None:
                self.say_once(f"Gradients, inputs and outputs are not saved: {why_not}")
                self._functions[key] = function
            else:
                self._functions[key] = self._capturing(kind)
        capturing = self._functions[key]
        if capturing is function:
            return function(*arguments)
        logs, self._captured = capturing(*arguments)
        return logs

    def _capturing(self, kind: str) -> Callable[..., Any]:
        """The function of a step that returns its logs, and all that is wanted of its inside."""
        model = self._model
        plain_step = getattr(model, f"{kind}_step")
        layers = _layers_of(model)

        def step(data: Any) -> Any:
            collector = Collector(self.wants_as, layers, model)
            x, y, _ = keras.utils.unpack_x_y_sample_weight(data)
            collector.offer("inputs", CollectionKeys.INPUTS, x)
            if y is not None:
                collector.offer("labels", CollectionKeys.OUTPUTS, y)
            with collecting(collector):
                logs = plain_step(data)
            self._say_what_is_hidden(collector)
            return logs, collector.tensors

        function: Callable[..., Any] = model._make_function(step)
        return function

    def _say_what_is_hidden(self, collector: Collector) -> None:
        if collector.hidden is not None:
            self.say_once(
                f"{collector.hidden} is not saved, nor are others like it: it is inside of a loop, a "
                "branch or a tf.function, and cannot leave it",
                "hidden",
            )

    # Loops with a tape

    def register_model(self, model: Any) -> None:
        """Save what the layers of this model are given and give, in a loop with a tape."""
        if not isinstance(model, keras.Model):
            raise SMDebugTypeError(f"register_model takes a keras.Model, not {model!r}")
        self._registered = model

    def wrap_optimizer(self, optimizer: Any) -> Any:
        """Save the variables of this optimizer too. It is given back as it was."""
        self._wrapped_optimizer = optimizer
        return optimizer

    def wrap_tape(self, tape: Any) -> Any:
        """Let this tape tell of each step: it begins with `with`, and is saved by `tape.gradient`."""
        from smdebug.tensorflow.tape import watched

        return watched(tape, self)

    def set_gradients(self, gradients: Any = None, gradients_and_variables: Any = None) -> None:
        """Save these gradients with the step that runs; as pairs, under the names of their variables."""
        if gradients_and_variables is not None:
            pairs = [(g, v) for g, v in gradients_and_variables if g is not None]
            names = gradient_names([variable for _, variable in pairs])
            told = dict(zip(names, (gradient for gradient, _ in pairs), strict=True))
        else:
            told = {f"gradients/gradient_{i}": g for i, g in enumerate(gradients or ())}
        for name, value in told.items():
            self.record_as(name, value, CollectionKeys.GRADIENTS)

    def save_tape_logs(self, model_inputs: Any = None, outputs: Any = None) -> None:
        """Save what the model was given and gave at this step, as `inputs` and `predictions`."""
        for name, value in _numbered("inputs", model_inputs):
            self.record_as(name, value, CollectionKeys.INPUTS)
        for name, value in _numbered("predictions", outputs):
            self.record_as(name, value, CollectionKeys.OUTPUTS)

    def should_save_layer(self, layer_name: str) -> bool:
        """Is something of this layer saved at the step that runs?"""
        return any(
            self.wants_as(f"{layer_name}/{what}", CollectionKeys.LAYERS)
            for what in ("inputs", "outputs")
        )

    def tape_entered(self) -> None:
        """A `with tape:` begins a step."""
        self.tape_left()
        self._taped.clear()
        self.begin_step()
        if self._due and self._registered is not None and self._looks_inside():
            model = self._registered
            self._tape_collector = Collector(self.wants_as, _layers_of(model), model)
            self._tape_context = collecting(self._tape_collector)
            self._tape_context.__enter__()

    def tape_left(self) -> None:
        """The forward of the step is over."""
        context, self._tape_context = self._tape_context, None
        if context is not None:
            context.__exit__(None, None, None)

    def tape_asked(self, target: Any, sources: Any, gradients: Any) -> None:
        """The tape was asked for gradients: all that is known of the step is saved."""
        self.tape_left()
        if self._due:
            self.guarded(lambda: self._record_tape(target, sources, gradients))

    def _record_tape(self, target: Any, sources: Any, gradients: Any) -> None:
        import tensorflow as tf

        losses = [value for value in tf.nest.flatten(target) if value is not None]
        for number, loss in enumerate(losses):
            name = "loss" if len(losses) == 1 else f"loss_{number}"
            self.record_as(self._told_anew(name), loss, CollectionKeys.LOSSES)
        variables = tf.nest.flatten(sources)
        if self._registered is not None:
            known = {id(variable) for variable in variables}
            variables = [
                *variables,
                *(
                    v
                    for v in self._registered.weights
                    if id(v) not in known and id(v.value) not in known
                ),
            ]
        for variable in variables:
            path = self._path_of_source(variable)
            if path is not None and (name := f"weights/{path}:0") not in self._taped:
                self._taped.add(name)
                self._record_variable(name, variable)
        for variable, gradient in zip(
            tf.nest.flatten(sources), tf.nest.flatten(gradients), strict=True
        ):
            if gradient is not None and (path := self._path_of_source(variable)) is not None:
                name = self._told_anew(f"gradients/{path}Grad")
                if self.wants_as(name, CollectionKeys.GRADIENTS):
                    self.record(name, tf.convert_to_tensor(gradient))
        collector, self._tape_collector = self._tape_collector, None
        if collector is not None:
            self._say_what_is_hidden(collector)
            for name, value in collector.tensors.items():
                self.record(name, value)
        self._record_optimizer(self._wrapped_optimizer)

    def _told_anew(self, name: str) -> str:
        """The name; of what a persistent tape is asked for again in a step, a name of its own."""
        free, number = name, 0
        while free in self._taped:
            number += 1
            free = f"{name}_{number}"
        self._taped.add(free)
        return free

    def _path_of_source(self, variable: Any) -> str | None:
        """A tape may be asked for the gradient of something that is no variable, and has no name."""
        has_name = isinstance(getattr(variable, "path", None), str) or hasattr(variable, "assign")
        return path_of(variable, self._registered) if has_name else None

    def _close(self, *, ended: bool) -> None:
        for kind in list(self._replaced):
            self._restore(kind)
        self.tape_left()
        super()._close(ended=ended)


def _of_log(name: str) -> str:
    return CollectionKeys.LOSSES if name in ("loss", "val_loss") else CollectionKeys.METRICS


def _numbered(name: str, values: Any) -> Iterator[tuple[str, Any]]:
    """Each tensor in it under that name, numbered if there are several."""
    found = [value for value in keras.tree.flatten(values) if value is not None]
    for number, value in enumerate(found):
        yield name if len(found) == 1 else f"{name}_{number}", value


def _layers_of(model: Any) -> dict[int, str]:
    """The layers of a model, by id: also those inside of layers, by the path that leads to them."""
    names: dict[int, str] = {}

    def walk(layers: Iterable[Any], path: str) -> None:
        for layer in layers:
            if id(layer) not in names and not isinstance(layer, keras.layers.InputLayer):
                names[id(layer)] = f"{path}{layer.name}"
                walk(getattr(layer, "_layers", ()), f"{path}{layer.name}/")

    walk(model.layers, "")
    return names


def _why_not(model: Any, kind: str) -> str | None:
    """What keeps this model from being looked into."""
    if keras.backend.backend() != "tensorflow":
        return f"Keras runs on {keras.backend.backend()}, and they are seen with TensorFlow alone"
    if model.steps_per_execution != 1:
        return "several steps run as one (steps_per_execution)"
    make = f"make_{kind}_function"
    if getattr(type(model), make) is not getattr(keras.Model, make):
        return f"{type(model).__name__} has a {make} of its own"
    return None
