"""What saving needs from a framework: which values are tensors, their content, the rank of this process."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from smdebug.files.event_writing import as_saved_array
from smdebug.numbers.statistics import is_numeric
from smdebug.saving.arrays.measurer import InBatch, Measured, Measurer
from smdebug.saving.process.ranks import ALONE

Array = np.ndarray[Any, Any]


class Caveat(NamedTuple):
    """What is lost when a value is saved; reported once per `kind`."""

    message: str
    kind: str


class FrameworkAdapter:
    """Numpy arrays, and whatever converts to them. Each framework has a subclass."""

    keeps_colon_index = False
    """Whether names end in `:0`, as TensorFlow's, and the names of reductions keep it."""

    def is_tensor(self, value: Any) -> bool:
        """Return whether the value is a tensor of the framework."""
        return hasattr(value, "__array__")

    def to_array(self, value: Any) -> Array:
        """Return the array to save for a value; raise SMDebugTypeError if it has none."""
        if not isinstance(value, np.ndarray | np.generic) and hasattr(value, "__array__"):
            value = np.asarray(value)
        return as_saved_array(value)

    def owns_its_memory(self, value: Any, array: Array) -> bool:
        """Return whether the array made of the value is a copy that only the hook can change."""
        return array is not value and array.base is None and not hasattr(value, "__array__")

    def copy(self, target: Array, source: Array) -> None:
        """Fill `target` with the values of `source`, of the same dtype and shape."""
        np.copyto(target, source)

    def measurer(self) -> Measurer:
        """Return what measures the tensors of one run, step after step."""
        return Measurer()

    def measure(self, value: Any, measurer: Any, *, digest: bool) -> Measured | InBatch | None:
        """Return what is measured of a value that is not saved itself; None if it has no real numbers.

        `measurer` is one that `measurer()` has returned.
        """
        array = self.to_array(value)
        if not is_numeric(array) or array.dtype.kind == "c":
            return None
        found: Measured | InBatch | None = measurer.measure(array, digest=digest)
        return found

    def form(self, value: Any) -> tuple[tuple[int, ...], str]:
        """Return the value's shape and dtype."""
        array = self.to_array(value)
        return array.shape, str(array.dtype)

    def number(self, value: Any) -> Any:
        """Return what `float` converts to one number, now or later; None if the value is not one number."""
        if isinstance(value, bool | int | float | np.number):
            return value
        if getattr(value, "size", None) != 1:
            return None
        array = np.asarray(value)
        return float(array.reshape(-1)[0]) if array.dtype.kind in "biuf" else None

    def caveat(self, name: str, value: Any) -> Caveat | None:
        """Return what the user should know about the saved value, if anything."""
        return None

    def is_whole(self, value: Any) -> bool:
        """Return whether the value is more than this process's part of a tensor sharded over several."""
        return True

    def is_placed(self, value: Any) -> bool:
        """Return whether the value says which part of a tensor this process holds, and on which mesh."""
        return False

    def rank_and_size(self) -> tuple[int, int]:
        """Return this process's rank among those that train together, and their number."""
        return ALONE


class NamedTensors(FrameworkAdapter):
    """Tensors known by the name of their class."""

    def __init__(self, class_name: str):
        self._class_name = class_name

    def is_tensor(self, value: Any) -> bool:
        return any(base.__name__ == self._class_name for base in type(value).__mro__)
