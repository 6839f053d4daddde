"""What the default plan observes of a JAX loop besides the recorded trees: updates and facts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np

from smdebug.jax.updates import Array, TreeUpdates, is_float
from smdebug.mode_keys import ModeKeys
from smdebug.saving.observations.step_observations import StepObservations
from smdebug.saving.planning.default_plan import UPDATES

Leaves = Mapping[str, Any]


class ObservedHook(Protocol):
    """The part of the hook that the observer uses."""

    @property
    def due(self) -> int: ...
    @property
    def mode(self) -> ModeKeys: ...
    @property
    def mode_steps(self) -> dict[ModeKeys, int]: ...
    @property
    def next_is_due(self) -> bool: ...
    def record(self, tensor_name: str, tensor_value: Any) -> None: ...
    def observe_as(self, tensor_name: str, kind: str) -> None: ...


class TreeObserver:
    """Observes one hook's training."""

    def __init__(self, hook: ObservedHook, observations: StepObservations, to_array: Callable[[Any], Array]):
        self._hook = hook
        self._observations = observations
        self._to_array = to_array
        self._updates = TreeUpdates(to_array)
        self._parameters: dict[str, None] = {}
        self._not_updated: set[str] = set()
        self._changes: dict[str, Array] = {}
        self._seen = False  # parameters of the step, which is saved
        self._given = False  # the loop has recorded the updates of this step itself
        self._is_updated = False

    @property
    def wants_parameters(self) -> bool:
        """Whether the parameters of this step are needed, saved or not."""
        return self._trains and bool(self._hook.due or self._hook.next_is_due)

    @property
    def _trains(self) -> bool:
        return self._hook.mode in (ModeKeys.TRAIN, ModeKeys.GLOBAL)

    def observe_parameters(self, leaves: Leaves) -> None:
        """Take the parameters of the current step."""
        if not self._trains:
            return
        step = self._hook.mode_steps[self._hook.mode]
        if self._hook.due:
            self._seen = True
            self._parameters.update((name, None) for name, leaf in leaves.items() if is_float(leaf))
            self._changes.update(self._updates.changes(step, leaves))
        if self._hook.next_is_due:
            self._updates.keep(step, leaves)

    def given(self, leaves: Leaves) -> dict[str, Any]:
        """Return the updates of this step as the loop records them, by the names of parameters.

        An update that did not change its parameter since the previous step is returned as zero. A parameter
        whose update is zero while others have one is left unchanged on purpose.
        """
        arrays = {name: self._to_array(leaf) for name, leaf in leaves.items() if is_float(leaf)}
        moves = {name: bool(np.any(array)) for name, array in arrays.items()}
        self._given = True
        if any(moves.values()):
            self._is_updated = True
            self._not_updated -= {name for name, is_moved in moves.items() if is_moved}
            self._not_updated |= {name for name, is_moved in moves.items() if not is_moved}
        if not any(np.any(change) for change in self._changes.values()):
            return dict(leaves)
        return {
            name: self._changes[name]
            if moves.get(name) and name in self._changes and not np.any(self._changes[name])
            else leaf
            for name, leaf in leaves.items()
        }

    def end_step(self) -> None:
        """Record the updates of a saved step of the training, and note its facts."""
        changes, self._changes = self._changes, {}
        given, self._given = self._given, False
        seen, self._seen = self._seen, False
        if not seen:
            return
        if not given:
            for name, change in changes.items():
                self._hook.observe_as(f"update/{name}", UPDATES)
                self._hook.record(f"update/{name}", change)
            self._is_updated = any(bool(np.any(change)) for change in changes.values())
        group = {"parameters": list(self._parameters), "others": 0}
        self._observations.note_lasting(
            optimizers=[{"class": "", "groups": [group]}],
            frozen=sorted(self._not_updated),
            updates_are_differences=not given,
            updates_are_sampled=self._updates.are_sampled and not given,
        )
        self._observations.note(training=self._hook.mode is ModeKeys.TRAIN, optimizer_steps=self._is_updated)
        self._is_updated = False
