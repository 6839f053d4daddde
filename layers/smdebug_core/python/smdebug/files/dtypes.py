"""The kinds of numbers a tensor can hold, and what the file format calls them.

The numbers are TensorFlow's `DataType`. bfloat16 is a numpy type only where `ml_dtypes` is installed
(extra `bfloat16`); without it bfloat16 tensors are read as float32, which holds each of their values
exactly.
"""

from __future__ import annotations

from functools import cache, lru_cache
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from smdebug.exceptions import SMDebugTypeError

if TYPE_CHECKING:
    from numpy.typing import NDArray

STRING: Final = 7
BOOL: Final = 10
BFLOAT16: Final = 14

_NUMPY_NAMES: Final = {
    1: "float32",
    2: "float64",
    3: "int32",
    4: "uint8",
    5: "int16",
    6: "int8",
    8: "complex64",
    9: "int64",
    10: "bool",
    17: "uint16",
    18: "complex128",
    19: "float16",
    22: "uint32",
    23: "uint64",
}
_STORED: Final = {number: np.dtype(name).newbyteorder("<") for number, name in _NUMPY_NAMES.items()}
_NUMBERS: Final = {dtype: number for number, dtype in _STORED.items()}

_SIZES: Final = {"bfloat16": 2, **{name: np.dtype(name).itemsize for name in _NUMPY_NAMES.values()}}
SAVABLE: Final = (*sorted(_NUMPY_NAMES.values()), "bfloat16", "str")


def dtype_number(dtype: np.dtype[Any]) -> int:
    """What the format calls `dtype`, in either byte order; strings (and arrays of str objects) are 7."""
    number = _NUMBERS.get(dtype)
    if number is None:
        number = _NUMBERS.get(dtype.newbyteorder("<"))
    if number is not None:
        return number
    if dtype.kind in "USO":
        return STRING
    if dtype.name == "bfloat16":
        return BFLOAT16
    raise SMDebugTypeError(f"Arrays of {dtype} cannot be saved. Convert it to one of: {', '.join(SAVABLE)}.")


def dtype_of(number: int) -> np.dtype[Any]:
    """The dtype in which values of that number are read; `KeyError` if the format has no such number."""
    if number == BFLOAT16:
        return _bfloat16() or np.dtype(np.float32)
    if number == STRING:
        return np.dtype(np.str_)
    return _STORED[number]


def stored_size(number: int) -> int:
    """How many bytes one value of that number takes in a file; `KeyError` if there is no such number."""
    return 2 if number == BFLOAT16 else _STORED[number].itemsize


@lru_cache(maxsize=4096)
def least_bytes(dtype: str | None, shape: tuple[int, ...]) -> int:
    """The fewest bytes for a value of that dtype and shape: one each for strings and unknown dtypes."""
    return prod(shape) * _SIZES.get(dtype or "", 1)


def view_as(number: int, shape: tuple[int, ...], buffer: Any, offset: int = 0) -> NDArray[Any]:
    """The array in `buffer` from `offset` on, without copying (a bfloat16 may have to be widened)."""
    if number != BFLOAT16:
        return np.ndarray(shape, _STORED[number], buffer, offset)
    bfloat16 = _bfloat16()
    if bfloat16 is not None:
        return np.ndarray(shape, bfloat16, buffer, offset)
    # The upper half of a float32 is a bfloat16.
    widened = np.ndarray(shape, "<u2", buffer, offset).astype("<u4")
    widened <<= 16
    return widened.view("<f4")


@cache
def _bfloat16() -> np.dtype[Any] | None:
    try:
        import ml_dtypes
    except ImportError:
        return None
    bfloat16: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
    return bfloat16
