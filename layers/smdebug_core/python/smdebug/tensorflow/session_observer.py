"""What the default plan observes of a session: the losses of every step, and at steps that are saved trained
variables, their updates, gradients and facts.

A loss is fetched if it follows from what the step computes anyway. In a graph, computing anything else could
draw more random numbers, take another batch, or read a variable at another moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

import numpy as np
import tensorflow as tf

from smdebug.saving.arrays.array_updates import ArrayUpdates
from smdebug.saving.observations.step_observations import StepObservations

MAX_KNOWN = 64


class ObservedHook(Protocol):
    """The part of the hook that the observer uses."""

    @property
    def due(self) -> int: ...
    def record(self, tensor_name: str, tensor_value: Any) -> None: ...
    def carry(self, name: str, value: Any) -> None: ...


class SessionObserver:
    """Observes one hook's session."""

    def __init__(self, hook: ObservedHook, observations: StepObservations):
        self._hook = hook
        self._observations = observations
        self._updates = ArrayUpdates()
        self._fetched: dict[tuple[Any, ...], dict[str, Any]] = {}

    def fetched(self, fetches: Any, losses: Iterable[Any], gradients: Iterable[Any]) -> dict[str, Any]:
        """Return what to fetch in addition: losses, and gradients of a step that is saved."""
        operations = list(_operations(fetches))
        key = (bool(self._hook.due), *(operation.name for operation in operations))
        if key not in self._fetched:
            if len(self._fetched) >= MAX_KNOWN:
                self._fetched.clear()
            computed = _behind(operations)
            wanted = [*losses, *(gradients if self._hook.due else ())]
            self._fetched[key] = {
                tensor.name: tensor for tensor in wanted if _follows_from(computed, tensor.op)
            }
        return self._fetched[key]

    def begin_step(self, variables: Mapping[str, Any]) -> None:
        """Measure the values of variables before a step that is saved."""
        for name, value in variables.items():
            self._hook.record(name, value)
        self._updates.before_step(variables)

    def end_step(
        self,
        results: Mapping[str, Any],
        losses: Iterable[str],
        read: Any,
        lasting: Mapping[str, Any],
    ) -> None:
        """Carry the loss, and measure what a saved step has computed and changed."""
        found = [results[name] for name in losses if name in results]
        parts = [float(np.reshape(loss, ())) for loss in found if np.size(loss) == 1]
        if parts:
            self._hook.carry("loss", sum(parts))
        if not self._hook.due:
            return
        for name, value in results.items():
            self._hook.record(name, value)
        updates = dict(self._updates.after_step(read()))
        for name, update in updates.items():
            self._hook.record(name, update)
        is_updated = any(bool(np.any(update)) for update in updates.values())
        self._observations.note(optimizer_steps=is_updated)
        self._observations.note_lasting(updates_are_sampled=self._updates.are_sampled, **lasting)


def _operations(fetches: Any) -> Iterator[Any]:
    graph = tf.compat.v1.get_default_graph()
    for fetch in tf.nest.flatten(fetches):
        element = graph.as_graph_element(fetch)
        yield element.op if isinstance(element, tf.Tensor) else element


def _behind(operations: Iterable[Any]) -> frozenset[str]:
    found: set[str] = set()
    waiting = list(operations)
    while waiting:
        operation = waiting.pop()
        if operation.name not in found:
            found.add(operation.name)
            waiting += _before(operation)
    return frozenset(found)


def _follows_from(computed: frozenset[str], operation: Any) -> bool:
    """Return whether the operation needs no more than pure functions of what is computed, and constants."""
    seen: set[str] = set()
    waiting = [operation]
    while waiting:
        each = waiting.pop()
        if each.name in computed or each.name in seen:
            continue
        if each.type.startswith("Placeholder") or each.op_def.is_stateful:
            return False
        seen.add(each.name)
        waiting += _before(each)
    return True


def _before(operation: Any) -> list[Any]:
    return [source.op for source in operation.inputs] + list(operation.control_inputs)
