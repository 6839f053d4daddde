"""What a training step changes of parameters that are arrays: kept before the step, subtracted after it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smdebug.numbers.rows import SAMPLE_SIZE, sample_of

Array = NDArray[Any]
MIN_BYTES = 64 << 20
SHARE = 0.05
"""Copies of parameters may take 64 MB, or this share of the parameters, whichever is more. Beyond that the
updates are computed of the sampled values alone."""


class ArrayUpdates:
    """Keeps arrays as they are before a step, and returns the differences after it."""

    def __init__(self) -> None:
        self.are_sampled = False
        """Whether updates are computed of samples to save memory."""
        self._before: dict[str, Array] = {}

    def __bool__(self) -> bool:
        """Whether arrays are kept whose updates were not returned yet."""
        return bool(self._before)

    def before_step(self, parameters: Mapping[str, Array]) -> None:
        """Keep these parameters. The arrays must not change afterwards."""
        floats = {name: array for name, array in parameters.items() if _is_float(array)}
        total = sum(array.nbytes for array in floats.values())
        self.are_sampled = total > max(MIN_BYTES, SHARE * total)
        self._before = {name: self._values_to_keep(array) for name, array in floats.items()}

    def after_step(self, parameters: Mapping[str, Array]) -> Iterator[tuple[str, Array]]:
        """Yield what the step changed of each parameter that was kept, as `update/<name>`."""
        before, self._before = self._before, {}
        for name, kept in before.items():
            array = parameters.get(name)
            now = None if array is None else self._values_to_keep(array)
            if now is not None and now.shape == kept.shape:
                yield f"update/{name}", np.subtract(now, kept)

    def _values_to_keep(self, array: Array) -> Array:
        return sample_of(array, SAMPLE_SIZE) if self.are_sampled else array


def _is_float(array: Array) -> bool:
    # bfloat16 and the like are of kind "V", and can be subtracted too.
    is_float = array.dtype.kind == "f" or array.dtype.name.startswith(("bfloat", "float8"))
    return is_float and array.size > 0
