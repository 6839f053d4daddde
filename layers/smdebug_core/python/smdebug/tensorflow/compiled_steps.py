"""The steps of a tape inside a tf.function: the compiled function passes its values to the hook.

While the function is traced, two calls of Python are added to it. The first begins a step and returns
whether it is due. The second runs only then, and records the values. It reads the variables, so
TensorFlow runs it before the optimizer assigns to them, as in an eager loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import tensorflow as tf

from smdebug.config.keys import CollectionKeys
from smdebug.mode_keys import ModeKeys

_DUE = "_smdebug_due"  # of a graph: whether its last step is due, once that was recorded


class StepHook(Protocol):
    """What compiled steps need from the hook."""

    in_batch: bool

    @property
    def due(self) -> Any: ...

    @property
    def follows_default_plan(self) -> bool: ...

    def begin_step(self, mode: ModeKeys | None = None) -> None: ...

    def carry(self, name: str, value: Any) -> None: ...

    def wants(self, tensor_name: str) -> bool: ...

    def wants_as(self, name: str, collection: str) -> bool: ...

    def record(self, tensor_name: str, tensor_value: Any) -> None: ...

    def guarded(self, capture: Callable[[], object]) -> None: ...


class NamedValue(NamedTuple):
    """A tensor or variable of a graph, its name, and its collection (None: the name shows it)."""

    name: str
    collection: str | None
    value: Any


class CompiledSteps:
    """Adds calls of the hook to the function that is traced."""

    def __init__(self, hook: StepHook):
        self._hook = hook
        self._has_begun = False  # in the trace: a step was begun since the tape was entered

    def entered(self) -> None:
        """Let the next `add` begin a step."""
        self._has_begun = False

    def add(self, values: Sequence[NamedValue]) -> None:
        """Add the recording of these values to the graph."""
        graph = tf.compat.v1.get_default_graph()
        due = getattr(graph, _DUE, None)  # passed on from call to call, which keeps them in order
        if due is None or not self._has_begun:
            losses = [value for value in values if self._is_carried(value)]
            carried = [name for name, _, _ in losses]

            def begin(_previous: Any, *arrays: Any) -> Any:
                return self._begin(carried, arrays)

            previous = tf.constant(False) if due is None else due
            due = _call(begin, [previous, *(value for _, _, value in losses)])
            self._has_begun = True
        names = [(name, collection) for name, collection, _ in values]  # a closure keeps no tensor

        def save(*arrays: Any) -> Any:
            self._hook.guarded(lambda: self._save(names, arrays))
            return np.True_

        def record() -> Any:
            return _call(save, [tf.convert_to_tensor(value) for _, _, value in values])

        setattr(graph, _DUE, tf.cond(due, record, lambda: tf.constant(False)))

    def _is_carried(self, value: NamedValue) -> bool:
        """Whether this is a loss that the default plan keeps of every step."""
        return value.collection == CollectionKeys.LOSSES and self._hook.follows_default_plan

    # What the compiled function calls

    def _begin(self, losses: Sequence[str], arrays: Sequence[Any]) -> Any:
        if self._hook.in_batch:  # of `fit`, which counts the step itself
            return np.False_
        self._hook.begin_step()
        due = bool(self._hook.due)
        if not due:  # else they are recorded
            for name, array in zip(losses, arrays, strict=True):
                self._hook.carry(name, array)
        return np.bool_(due)

    def _save(self, names: Sequence[tuple[str, str | None]], arrays: Sequence[Any]) -> None:
        for (name, collection), array in zip(names, arrays, strict=True):
            wanted = self._hook.wants(name) if collection is None else self._hook.wants_as(name, collection)
            if wanted:
                self._hook.record(name, array)


def can_call_python() -> bool:
    """Return whether the function that is traced may call Python, and runs once per step in this process."""
    try:
        from tensorflow.python.ops.control_flow_util import GraphOrParentsInXlaContext
        from tensorflow.python.saved_model.save_context import in_save_context
    except ImportError:  # another version of TensorFlow, where XLA cannot be detected
        return False
    graph = tf.compat.v1.get_default_graph()
    return (
        graph.building_function
        and not GraphOrParentsInXlaContext(graph)
        and not in_save_context()
        and not tf.distribute.has_strategy()
    )


def _call(function: Callable[..., Any], tensors: Sequence[Any]) -> Any:
    """Add a call of a function that returns a bool."""
    answer = tf.numpy_function(function, tensors, tf.bool)
    answer.set_shape(())
    return answer
