"""The hook for Keras: a callback of `fit`, `evaluate` and `predict`, and a watcher of gradient tapes.

    hook = smd.KerasHook("s3://bucket/run", include_collections=["weights", "gradients"])
    model.fit(x, y, callbacks=[hook])

It works with each backend of Keras; the inside of a step (gradients, inputs and outputs of layers) is seen
with TensorFlow and PyTorch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from smdebug.config.keys import CollectionKeys
from smdebug.exceptions import SMDebugTypeError, TrainingStopped
from smdebug.mode_keys import ModeKeys
from smdebug.saving.hooks.framework import require
from smdebug.saving.hooks.options import HookOptions
from smdebug.tensorflow.base_hook import TensorflowBaseHook
from smdebug.tensorflow.legacy import refuse_legacy_keras, refuse_legacy_model

require("Keras", "keras", "tensorflow")
refuse_legacy_keras()

import keras  # noqa: E402

from smdebug.tensorflow.capture import gradient_names, path_of  # noqa: E402
from smdebug.tensorflow.observer import KerasObserver  # noqa: E402
from smdebug.tensorflow.step_functions import StepFunctions, layers_of  # noqa: E402
from smdebug.tensorflow.tape_steps import TapeSteps  # noqa: E402

_KINDS = {ModeKeys.TRAIN: "train", ModeKeys.EVAL: "test"}
_INSIDE = frozenset(
    {
        CollectionKeys.GRADIENTS,
        CollectionKeys.LAYERS,
        CollectionKeys.INPUTS,
        CollectionKeys.OUTPUTS,
        CollectionKeys.ALL,
        CollectionKeys.DEFAULT,
    }
)


class KerasHook(TensorflowBaseHook, keras.callbacks.Callback):  # type: ignore[misc]
    """Saves losses, metrics, weights, gradients, and inputs and outputs of layers, of a Keras model.

        hook = smd.KerasHook(out_dir, include_collections=["weights", "gradients"])
        model.fit(x, y, callbacks=[hook])

    A batch is a step; modes set themselves. In a loop of your own: `with hook.wrap_tape(tf.GradientTape())
    as tape:`. When a stop is requested, `fit` ends after the batch, as with `model.stop_training`;
    `hook.stopped` has the reason.
    """

    observes = True

    def set_up(self, options: HookOptions) -> None:
        keras.callbacks.Callback.__init__(self)
        self.stopped: TrainingStopped | None = None
        self.trained_model: Any = None
        self.functions = StepFunctions(self)
        self.tape_steps = TapeSteps(self)
        self.in_batch = False  # a batch has begun, and not ended
        self.observer: KerasObserver | None = None
        """Observes the training under the default plan; None if that is not active."""
        self._logged: set[tuple[int, str]] = set()
        super().set_up(options)

    # What Keras calls

    def set_model(self, model: Any) -> None:
        """Watch this model."""
        refuse_legacy_model(model)
        self.trained_model = model
        self.functions.set_model(model)
        keras.callbacks.Callback.set_model(self, model)

    def on_train_begin(self, logs: Any = None) -> None:
        self.functions.begin_training("train")

    def on_train_end(self, logs: Any = None) -> None:
        self.functions.restore("train")
        self.flush(self.write_patience)

    def on_test_begin(self, logs: Any = None) -> None:
        self.functions.begin_training("test")

    def on_test_end(self, logs: Any = None) -> None:
        self.functions.restore("test")
        if self.observer is not None and self._has_totals:
            for name, value in (logs or {}).items():
                self.carry(name, value)
                if self.recorder.open is not None:
                    self.save_tensor(name, value, [_of_log(name)])

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
        if self.due and logs:
            for name, value in _numbered("predictions", logs.get("outputs")):
                self.record_as(name, value, CollectionKeys.OUTPUTS)
        self._end(batch, None)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Save the epoch's totals, and its validation, with the last step, whatever is due."""
        step = self.last_step
        if self.observer is not None:
            logs = {name: value for name, value in (logs or {}).items() if name.startswith("val_")}
        for name, value in (logs or {}).items():
            if self.observer is not None:
                self.carry(name, value)
            if step is None or (step.step, name) in self._logged:
                continue
            if self.mode is ModeKeys.EVAL and not name.startswith("val_"):
                continue  # saved with the last batch of the training
            self.save_tensor(name, value, [_of_log(name)])

    def _begin(self, mode: ModeKeys) -> None:
        self.functions.arm()
        if self.in_batch and self.mode is mode:
            return  # the previous batch was empty: the data had ended
        try:
            self.begin_step(mode)
        except TrainingStopped as stopped:
            self.stopped = stopped
            self.trained_model.stop_training = True
            return
        self.in_batch = True
        self.functions.is_first = False
        if self.due and self.functions.is_replaced(kind := _KINDS.get(mode, "")):
            self.functions.replace(kind)
        if self.due and self.observer is not None:
            self.guarded(self._observe_model)

    def _end(self, batch: int, logs: Mapping[str, Any] | None) -> None:
        self.in_batch = False
        captured = self.functions.take_captured()
        if self.observer is not None:
            self.guarded(lambda: self._observe_batch(batch, logs, captured))
        elif self.due:
            self.guarded(lambda: self._record_step(batch, logs, captured))

    def _record_step(self, batch: int, logs: Mapping[str, Any] | None, captured: Mapping[str, Any]) -> None:
        self._logged.clear()
        step = self.last_step
        if logs is not None and step is not None:
            for name, value in {**logs, "batch": batch}.items():
                self.record_as(name, value, _of_log(name))
                self._logged.add((step.step, name))
        self.record_all(captured)
        if self._any_variable_due():
            self._record_variables(self.model)  # with JAX, asking for it fetches the values
        own = getattr(self.trained_model, "optimizer", None)
        self.record_optimizer(own or self.tape_steps.optimizer)

    # The default plan

    @property
    def _has_totals(self) -> bool:
        """Whether the step is an evaluation as a whole, of which Keras knows the exact totals at its end."""
        return self.recorder.clock.by_training and self.mode is ModeKeys.EVAL

    @property
    def is_observing(self) -> bool:
        """Whether the default plan is active."""
        return self.observer is not None

    def begin_step(self, mode: ModeKeys | None = None) -> None:
        """Begin the next step, of `mode` or else the mode that is set. The previous step ends."""
        if self.observer is not None:
            self.guarded(self.observer.observe_updates)
        super().begin_step(mode)
        if self.observer is None and self.observations is not None:
            self.observer = KerasObserver(self, self.observations)

    def _observe_model(self) -> None:
        assert self.observer is not None
        model = self.model  # with JAX, asking for it fetches the values
        self.observer.observe_parameters(self._variables_of(model))
        self.observer.note_model(model, layers_of(model))

    def _observe_batch(self, batch: int, logs: Mapping[str, Any] | None, captured: Mapping[str, Any]) -> None:
        assert self.observer is not None
        # With JAX, asking for the model fetches the values; without, its variables have none.
        asks = self.due or (self.mode is ModeKeys.TRAIN and batch == 0)
        model = self.model if asks else self.trained_model
        optimizer = getattr(model, "optimizer", None)
        if self.mode is ModeKeys.TRAIN and optimizer is not None and asks:
            self.observer.carry_rate(optimizer)
            if self.due:
                self.observer.note_optimizer(optimizer)
        logs = None if self._has_totals else logs
        self.observer.end_batch(model, logs, captured, is_weighted=self.functions.has_weights)

    # Variables

    def _any_variable_due(self) -> bool:
        """Return whether a variable could be wanted, so that it is worth asking for each."""
        due = {collection.name for collection in self.collections_due()}
        return bool(due - {"losses", "metrics", "sm_metrics", "gradients"})

    def _record_variables(self, model: Any) -> None:
        for name, variable in self._variables_of(model):
            self.record_variable(name, variable)

    def _variables_of(self, model: Any) -> Iterator[tuple[str, Any]]:
        of_layers = set()
        for layer in model.layers:
            for variable in layer.weights:
                of_layers.add(id(variable))
                yield f"{layer.name}/weights/{path_of(variable, model)}:0", variable
        for variable in model.weights:
            if id(variable) not in of_layers:
                yield f"{model.name}/weights/{path_of(variable, model)}:0", variable

    def record_variable(self, name: str, variable: Any) -> None:
        """Record the value of a variable."""
        if self.wants(name):
            self.record(name, keras.ops.convert_to_numpy(variable))

    def record_optimizer(self, optimizer: Any) -> None:
        """Record the variables of an optimizer."""
        if optimizer is None:
            return
        for variable in optimizer.variables:
            name = f"{path_of(variable)}:0"
            if self.wants_as(name, CollectionKeys.OPTIMIZER_VARIABLES):
                self.record(name, keras.ops.convert_to_numpy(variable))

    def looks_inside(self) -> bool:
        """Return whether something is due that only the inside of a step has."""
        known = self.collection_manager.default_collections
        return any(
            collection.name in _INSIDE or collection.name not in known
            for collection in self.collections_due()
        )

    # Loops with a tape

    def register_model(self, model: Any) -> None:
        """Save the inputs and outputs of this model's layers, in a loop with a tape."""
        if not isinstance(model, keras.Model):
            raise SMDebugTypeError(f"register_model takes a keras.Model, not {model!r}")
        self.tape_steps.model = model

    def wrap_optimizer(self, optimizer: Any) -> Any:
        """Save the variables of this optimizer too. It is returned unchanged."""
        self.tape_steps.optimizer = optimizer
        return optimizer

    def wrap_tape(self, tape: Any) -> Any:
        """Watch this tape: `with tape:` begins a step, and `tape.gradient` saves it."""
        from smdebug.tensorflow.tape import watched

        return watched(tape, self.tape_steps, self.warn_once)

    def set_gradients(self, gradients: Any = None, gradients_and_variables: Any = None) -> None:
        """Save these gradients with the current step; as pairs, under the names of their variables."""
        if gradients_and_variables is not None:
            pairs = [(g, v) for g, v in gradients_and_variables if g is not None]
            names = gradient_names([variable for _, variable in pairs])
            named = dict(zip(names, (gradient for gradient, _ in pairs), strict=True))
        else:
            named = {f"gradients/gradient_{i}": g for i, g in enumerate(gradients or ())}
        for name, value in named.items():
            self.record_as(name, value, CollectionKeys.GRADIENTS)

    def save_tape_logs(self, model_inputs: Any = None, outputs: Any = None) -> None:
        """Save the model's inputs and outputs of this step, as `inputs` and `predictions`."""
        for name, value in _numbered("inputs", model_inputs):
            self.record_as(name, value, CollectionKeys.INPUTS)
        for name, value in _numbered("predictions", outputs):
            self.record_as(name, value, CollectionKeys.OUTPUTS)

    def should_save_layer(self, layer_name: str) -> bool:
        """Return whether something of this layer is saved at the current step."""
        return any(
            self.wants_as(f"{layer_name}/{side}", CollectionKeys.LAYERS) for side in ("inputs", "outputs")
        )

    def end_run(self, *, ended: bool) -> None:
        """End the run, with an end marker if the training `ended` well, and stop watching."""
        self.functions.restore_all()
        self.tape_steps.left()
        if self.observer is not None:
            self.guarded(self.observer.observe_updates)
        super().end_run(ended=ended)


def _of_log(name: str) -> str:
    return CollectionKeys.LOSSES if name in ("loss", "val_loss") else CollectionKeys.METRICS


def _numbered(name: str, values: Any) -> Iterator[tuple[str, Any]]:
    """Yield each tensor in the values under that name, numbered if there are several."""
    found = [value for value in keras.tree.flatten(values) if value is not None]
    for number, value in enumerate(found):
        yield name if len(found) == 1 else f"{name}_{number}", value
