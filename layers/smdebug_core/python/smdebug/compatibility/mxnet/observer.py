"""What the default plan observes of a Gluon training: losses of every step, and at steps that are saved the
parameters before their update, the update, the batch, and facts of blocks, trainer and loss.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

from mxnet import autograd, gluon

from smdebug.files.names import FIRST_LEARNING_RATE
from smdebug.mode_keys import TRAINING, ModeKeys
from smdebug.numbers.batches import batch_facts
from smdebug.numbers.loss_terms import BINARY, criterion_name
from smdebug.saving.arrays.adapter import Array, FrameworkAdapter
from smdebug.saving.arrays.array_updates import ArrayUpdates
from smdebug.saving.observations.loss_facts import LossTerms
from smdebug.saving.observations.step_observations import StepObservations
from smdebug.saving.planning.step_clock import StepClock

MODE_DEPENDENT = (gluon.nn.Dropout, gluon.nn.BatchNorm)


class ObservedHook(Protocol):
    """The part of the hook that the observer uses."""

    @property
    def adapter(self) -> FrameworkAdapter: ...
    @property
    def due(self) -> int: ...
    @property
    def mode(self) -> ModeKeys: ...
    @property
    def last_step(self) -> StepClock | None: ...
    def record(self, tensor_name: str, tensor_value: Any) -> None: ...
    def carry(self, name: str, value: Any) -> None: ...
    def observe_inputs_of(self, layer: str) -> None: ...
    def tensors_in(self, values: Any) -> Iterator[Any]: ...


class GluonObserver:
    """Observes one hook's training."""

    def __init__(self, hook: ObservedHook, observations: StepObservations):
        self._hook = hook
        self._observations = observations
        self._updates = ArrayUpdates()
        self._terms = LossTerms()
        self._late: list[LateMean] = []

    def begin_step(self, blocks: Iterable[Any]) -> None:
        """Measure the parameters as they are before a step that is saved."""
        if not self._hook.due:
            return
        known = _parameters(blocks)
        values = dict(_values(known))
        for name, value in values.items():
            self._hook.record(name, value)
        if self._hook.mode in TRAINING:
            trained = {n: value for n, value in values.items() if known[n].grad_req != "null"}
            self._updates.before_step(trained)

    def end_step(self, blocks: Iterable[Any]) -> None:
        """Measure gradients and updates of a step that is saved, and note its facts."""
        for late in self._late:  # here, because another thread must not call MXNet
            late.fetch()
        self._late.clear()
        if not self._hook.due or not self._updates:
            return
        known = _parameters(blocks)
        is_updated = False
        for name, update in self._updates.after_step(dict(_values(known))):
            is_updated = is_updated or bool(update.any())
            self._hook.record(name, update)
        for name, parameter in known.items():
            if parameter.grad_req != "null" and parameter._grad is not None:
                self._hook.record(f"gradient/{name}", parameter.list_grad()[0])
        self._observations.note(optimizer_steps=is_updated)
        self._observations.note_lasting(
            optimizers=list(_optimizers(known)),
            frozen=[name for name, parameter in known.items() if parameter.grad_req == "null"],
            updates_are_sampled=self._updates.are_sampled,
        )
        for rate in _rates(known):
            self._hook.carry(FIRST_LEARNING_RATE, rate)

    def net_called(self, net: Any, inputs: Any) -> None:
        """Note the batch, and the mode of the net that is called with it."""
        if not self._hook.due:
            return
        self._hook.observe_inputs_of(net.name)
        arrays = [self._hook.adapter.to_array(tensor) for tensor in self._hook.tensors_in(inputs)]
        self._observations.note(
            training=bool(autograd.is_training()),
            gradients=bool(autograd.is_recording()),
            **batch_facts(arrays),
        )
        self._observations.note_lasting(modules=list(_modules(net)))

    def loss_called(self, loss: Any, given: Any, output: Any) -> None:
        """Carry the mean of a loss, and note what it was computed from."""
        (value,) = list(self._hook.tensors_in(output))[:1] or (None,)
        if value is None:
            return
        with autograd.pause():
            mean = LateMean(value.mean())
        self._late.append(mean)
        self._hook.carry("loss", mean)
        tensors = list(self._hook.tensors_in(given))
        step = self._hook.last_step
        if self._hook.due and tensors and step is not None:
            labels = tensors[1] if len(tensors) > 1 else None
            values = (mean.fetch(), tensors[0], labels)
            at = (self._observations, step)
            self._terms.add(at, self._hook.adapter, values, _criterion(loss))


class LateMean:
    """The mean of a loss, which MXNet computes while the training continues."""

    def __init__(self, value: Any):
        self._value = value
        self._number = math.nan

    def fetch(self) -> float:
        if self._value is not None:
            self._number, self._value = float(self._value.asscalar()), None
        return self._number

    def __float__(self) -> float:
        return self._number


def _criterion(loss: Any) -> str:
    if getattr(loss, "_from_sigmoid", False):
        return BINARY
    return criterion_name(type(loss).__name__)


def _parameters(blocks: Iterable[Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for block in blocks:
        found.update(block.collect_params().items())
    return found


def _values(parameters: Mapping[str, Any]) -> Iterator[tuple[str, Array]]:
    """Yield copies of the values of those parameters that have one: shapes may be unknown yet."""
    for name, parameter in parameters.items():
        if parameter._data is not None:
            yield name, parameter.list_data()[0].asnumpy()


def _trainers(parameters: Mapping[str, Any]) -> dict[int, tuple[Any, list[str]]]:
    """Return each trainer with the parameters that it updates."""
    found: dict[int, tuple[Any, list[str]]] = {}
    for name, parameter in parameters.items():
        trainer = getattr(parameter, "_trainer", None)
        if trainer is not None and parameter.grad_req != "null":
            found.setdefault(id(trainer), (trainer, []))[1].append(name)
    return found


def _optimizers(parameters: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for trainer, names in _trainers(parameters).values():
        others = sum(p.grad_req != "null" for p in trainer._params) - len(names)
        group = {"parameters": names, "others": max(0, others)}
        yield {"class": type(trainer.optimizer).__name__, "groups": [group]}


def _rates(parameters: Mapping[str, Any]) -> Iterator[float]:
    """Yield the learning rate of the first trainer, if there is one."""
    for trainer, _ in list(_trainers(parameters).values())[:1]:
        yield float(trainer.learning_rate)


def _modules(net: Any) -> Iterator[list[Any]]:
    """Yield name, class and dependence on the mode of each block, the net first."""
    seen = set()
    waiting = [net]
    while waiting:
        block = waiting.pop(0)
        if id(block) not in seen:
            seen.add(id(block))
            depends = isinstance(block, MODE_DEPENDENT) and getattr(block, "_rate", 1) != 0
            kind = type(block).__name__
            if isinstance(block, gluon.nn.Activation):
                kind = _ACTIVATIONS.get(block._act_type, kind)
            yield [block.name, kind, depends]
            waiting += block._children.values()


_ACTIVATIONS = {"relu": "ReLU", "sigmoid": "Sigmoid", "tanh": "Tanh", "softrelu": "Softplus"}
"""Rules know activations by the names of their classes in PyTorch."""
