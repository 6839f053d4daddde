"""For code written against smdebug: arrays as they are saved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from smdebug.files.event_writing import as_saved_array

__all__ = ["make_numpy_array", "size_and_shape", "validate_custom_tensor_value"]


def size_and_shape(t: Any) -> tuple[int, Any]:
    """Return the size of a value in bytes, and its shape."""
    if isinstance(t, (bytes, str)):
        return len(t), [len(t)]
    return t.nbytes, t.shape


def make_numpy_array(x: Any) -> npt.NDArray[Any]:
    """Return the value as it would be saved: a scalar or a string becomes an array of one element."""
    return np.array(x) if isinstance(x, dict) else as_saved_array(x)


def validate_custom_tensor_value(
    tensor_value: Any, make_numpy_fn: Callable[[Any], npt.NDArray[Any]]
) -> bool:
    """Return whether `make_numpy_fn` can convert the value."""
    try:
        make_numpy_fn(tensor_value)
    except TypeError:
        return False
    return True
