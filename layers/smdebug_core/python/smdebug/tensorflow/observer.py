"""What the default plan observes of a Keras training: losses and metrics of every batch, and at steps that
are saved the parameters, their updates, what the compiled step returns of its inside, and facts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import keras
import numpy as np

from smdebug.config.keys import CollectionKeys
from smdebug.files.names import FIRST_LEARNING_RATE
from smdebug.mode_keys import ModeKeys
from smdebug.numbers.batches import batch_facts
from smdebug.saving.arrays.array_updates import ArrayUpdates
from smdebug.saving.observations.step_observations import StepObservations
from smdebug.tensorflow import facts

Variables = Iterable[tuple[str, Any]]


class ObservedHook(Protocol):
    """What observing needs from the hook."""

    @property
    def due(self) -> int: ...
    @property
    def mode(self) -> ModeKeys: ...
    def record(self, tensor_name: str, tensor_value: Any) -> None: ...
    def record_as(self, name: str, value: Any, collection: str) -> None: ...
    def carry(self, name: str, value: Any) -> None: ...


class KerasObserver:
    """Observes one hook's training."""

    def __init__(self, hook: ObservedHook, observations: StepObservations):
        self._hook = hook
        self._observations = observations
        self._updates = ArrayUpdates()
        self._kept: list[tuple[str, Any]] = []  # the variables whose updates are awaited
        self._names: dict[int, str] = {}
        self._rate: float | None = None

    def observe_parameters(self, variables: Variables) -> None:
        """Measure variables as they are before the step, and keep them until it has changed them."""
        named = list(variables)
        arrays = {name: array_of(variable) for name, variable in named}
        self._names = {id(variable): name for name, variable in named}
        for name, array in arrays.items():
            self._hook.record(name, array)
        if self._hook.mode is not ModeKeys.TRAIN and self._hook.mode is not ModeKeys.GLOBAL:
            return
        self._kept = [(name, variable) for name, variable in named if _is_trained(variable)]
        self._updates.before_step({name: arrays[name] for name, _ in self._kept})

    def observe_updates(self) -> None:
        """Measure what the step has changed of the variables that were kept."""
        if not self._updates:
            return
        kept, self._kept = self._kept, []
        now = {name: array_of(variable) for name, variable in kept}
        for name, update in self._updates.after_step(now):
            self._hook.record(name, update)
        self._observations.note_lasting(updates_are_sampled=self._updates.are_sampled)

    def note_model(self, model: Any, layers: Mapping[int, str]) -> None:
        """Note the facts of the model and its optimizer."""
        in_training = self._hook.mode is ModeKeys.TRAIN
        self._observations.note(training=in_training, gradients=in_training, other_mode=[])
        self._observations.note_lasting(**facts.model_facts(model, layers, self._names))

    def note_optimizer(self, optimizer: Any) -> None:
        """Note the facts of an optimizer that makes a step."""
        self._observations.note_lasting(optimizers=facts.optimizer_facts(optimizer, self._names))
        self._observations.note(
            optimizer_steps=True,
            backward_passes=getattr(optimizer, "gradient_accumulation_steps", None) or 1,
            gradients_were_reset=True,
            **facts.scale_facts(optimizer),
        )

    def carry_rate(self, optimizer: Any) -> None:
        """Carry the learning rate, where it has changed or the step is saved."""
        rate = facts.learning_rate(optimizer)
        if rate is not None and (self._hook.due or rate != self._rate):
            self._rate = rate
            self._hook.carry(FIRST_LEARNING_RATE, rate)

    def end_batch(
        self,
        model: Any,
        logs: Mapping[str, Any] | None,
        captured: Mapping[str, Any],
        *,
        is_weighted: bool = False,
    ) -> None:
        """Carry the scalars of a batch of `fit`, and at a step that is saved record what it has."""
        if logs:
            losses = {name: value for name, value in captured.items() if is_loss(name)}
            if not losses and self._hook.due:
                self._observations.note_lasting(loss_is_mean_of_epoch=True)
            self._record_scalars({**logs, **losses})
        if not self._hook.due:
            return
        for name, value in captured.items():
            if not is_loss(name):
                self._hook.record(name, value)
        self._note_batch(model, captured, is_weighted=is_weighted)
        self.observe_updates()

    def _record_scalars(self, scalars: Mapping[str, Any]) -> None:
        for name, value in scalars.items():
            if self._hook.due:
                self._hook.record_as(name, value, of_log(name))
            else:
                self._hook.carry(name, value)

    def _note_batch(self, model: Any, captured: Mapping[str, Any], *, is_weighted: bool) -> None:
        inputs = [array_of(captured[name]) for name in captured if _is_of(name, "inputs")]
        self._observations.note(**batch_facts(inputs))
        labels, predictions = captured.get("labels"), captured.get("predictions")
        if labels is not None and predictions is not None:
            value = None if is_weighted or "loss" not in captured else float(array_of(captured["loss"]))
            loss = facts.loss_facts(model, inputs, array_of(labels), tuple(predictions.shape), value)
            if loss is not None:
                self._observations.note(loss=loss)


def array_of(value: Any) -> np.ndarray[Any, Any]:
    """Return a copy of a tensor's or variable's values, or values that nothing changes."""
    array = np.asarray(keras.ops.convert_to_numpy(value))
    return array if array.flags.owndata or not array.flags.writeable else np.array(array)


def of_log(name: str) -> str:
    """Return the collection of something that Keras logs."""
    return CollectionKeys.LOSSES if is_loss(name) else CollectionKeys.METRICS


def is_loss(name: str) -> bool:
    """Return whether Keras logs a loss under that name."""
    return name == "loss" or name.endswith("_loss")


def _is_of(name: str, kind: str) -> bool:
    return name == kind or (name.startswith(f"{kind}_") and name[len(kind) + 1 :].isdigit())


def _is_trained(variable: Any) -> bool:
    return bool(getattr(variable, "trainable", True))
