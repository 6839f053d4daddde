"""The updates of parameters in a JAX loop, from one step to the next.

The update of a step is known once the parameters of the next step are recorded. So the parameters of the step
before a saved one are kept, on their device, and the difference is that step's update.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from smdebug.numbers.rows import SAMPLE_SIZE, sampled_places
from smdebug.saving.arrays.array_updates import MIN_BYTES

Array = NDArray[Any]


class TreeUpdates:
    """Keeps the leaves of one step, and returns their changes at the next."""

    def __init__(self, to_array: Callable[[Any], Array]):
        self.are_sampled = False
        """Whether updates are computed from sampled values, to save memory."""
        self._to_array = to_array
        self._step = -2
        self._kept: dict[str, Any] = {}

    def keep(self, step: int, leaves: Mapping[str, Any]) -> None:
        """Keep copies of these leaves: a training may donate their buffers."""
        if step != self._step:
            self._kept, self._step = {}, step
        floats = {name: _local_part(leaf) for name, leaf in leaves.items() if is_float(leaf)}
        self.are_sampled = sum(leaf.nbytes for leaf in floats.values()) > MIN_BYTES
        self._kept.update({name: self._copy(leaf) for name, leaf in floats.items()})

    def changes(self, step: int, leaves: Mapping[str, Any]) -> dict[str, Array]:
        """Return the change of each leaf that was kept at the step before this one."""
        if step != self._step + 1:
            return {}
        found = {}
        for name, leaf in leaves.items():
            kept = self._kept.get(name)
            if kept is None or not is_float(leaf):
                continue
            here = _local_part(leaf)
            now = self._to_array(_sample(here) if self.are_sampled else here)
            before = self._to_array(kept)
            if now.shape == before.shape:
                found[name] = np.subtract(now, before)
        return found

    def _copy(self, leaf: Any) -> Any:
        if self.are_sampled:
            return _sample(leaf)
        return jnp.copy(leaf) if isinstance(leaf, jax.Array) else np.array(leaf)


def is_float(leaf: Any) -> bool:
    """Return whether this is an array of real numbers, which an optimizer can change."""
    if isinstance(leaf, jax.core.Tracer) or not isinstance(leaf, jax.Array | np.ndarray):
        return False
    if isinstance(leaf, jax.Array) and leaf.is_deleted():
        return False
    return leaf.size > 0 and bool(jax.dtypes.issubdtype(leaf.dtype, np.floating))


def _local_part(leaf: Any) -> Any:
    """Return the first part of an array that this process holds."""
    if isinstance(leaf, jax.Array) and not leaf.is_fully_addressable:
        return leaf.addressable_shards[0].data
    return leaf


def _sample(leaf: Any) -> Any:
    return leaf.reshape(-1)[sampled_places(leaf.size, SAMPLE_SIZE)]
