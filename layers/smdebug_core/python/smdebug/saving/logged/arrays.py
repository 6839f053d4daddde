"""Arrays, tensors of any framework and images of PIL, as arrays of pixels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from smdebug.amounts import counted
from smdebug.exceptions import SMDebugTypeError

_CHANNELS = (1, 3, 4)
Array = NDArray[Any]


def array_of(value: Any) -> Array:
    """Return the value as an array in the memory of this process."""
    if hasattr(value, "detach"):  # a tensor of PyTorch: on any device, of any of its types
        value = value.detach().cpu()
        value = value.float() if str(value.dtype) == "torch.bfloat16" else value
    elif hasattr(value, "numpy") and not isinstance(value, np.ndarray):  # of TensorFlow
        value = value.numpy()
    try:
        array = np.asarray(value)
    except (TypeError, ValueError) as error:
        raise SMDebugTypeError(f"A {type(value).__name__} is no array that can be logged: {error}") from error
    if array.dtype.kind not in "biuf" and str(array.dtype) == "bfloat16":
        array = array.astype(np.float32)
    return array


def is_picture(value: Any) -> bool:
    """Return whether it is an image of PIL."""
    module = type(value).__module__ or ""
    return module.partition(".")[0] == "PIL" and hasattr(value, "convert") and hasattr(value, "mode")


def is_image_array(value: Any) -> bool:
    """Return whether it is an array of two or more dimensions, which can only be meant as an image."""
    shape = getattr(value, "shape", None)
    try:
        return shape is not None and hasattr(value, "dtype") and len(shape) > 1 and np.prod(tuple(shape)) != 1
    except (TypeError, ValueError):
        return False


def image_of(value: Any, channels: str | None) -> tuple[NDArray[np.uint8], str]:
    """Return pixels of shape (height, width, channels), and a note of what was changed."""
    if channels not in (None, "first", "last"):
        raise SMDebugTypeError(f'channels is "first" or "last", not {channels!r}')
    if is_picture(value):
        known = {"L", "LA", "RGB", "RGBA"}
        mode = value.mode if value.mode in known else "RGBA" if "transparency" in value.info else "RGB"
        pixels = np.array(value if value.mode == mode else value.convert(mode), np.uint8)
        return pixels.reshape(*pixels.shape[:2], -1), ""
    array = array_of(value)
    if array.dtype != np.uint8 and array.dtype.kind not in "bf":
        raise SMDebugTypeError(
            f"An image has numbers of uint8, or floats from 0 to 1, not {array.dtype}. "
            "For a confusion matrix or a distribution: smdebug.ConfusionMatrix, smdebug.Histogram"
        )
    return _pixels_of(_channels_last(array, channels, is_tensor=hasattr(value, "detach")))


def _channels_last(array: Array, channels: str | None, *, is_tensor: bool) -> Array:
    if array.ndim == 2:
        return array[:, :, None]
    can_be_first = array.ndim == 3 and array.shape[0] in _CHANNELS
    can_be_last = array.ndim == 3 and array.shape[2] in _CHANNELS
    if channels is None and can_be_first and can_be_last and is_tensor:
        raise SMDebugTypeError(
            f"A tensor of shape {array.shape} may have its channels first or last: "
            'log smdebug.Image(tensor, channels="first")'
        )
    is_first = channels == "first" or (channels is None and not can_be_last)
    if not (can_be_first if is_first else can_be_last):
        raise SMDebugTypeError(
            f"An image has the shape (height, width), or 1, 3 or 4 channels, not {array.shape}. "
            "Of several images log each: images[0]"
        )
    return np.moveaxis(array, 0, 2) if is_first else array


def _pixels_of(array: Array) -> tuple[NDArray[np.uint8], str]:
    if array.dtype == np.uint8:
        return np.array(array, order="C"), ""
    numbers = array.astype(np.float32)
    odd = int((~((numbers >= 0) & (numbers <= 1))).sum())
    note = f"{counted(odd, 'value')} outside of 0 to 1, clipped" if odd else ""
    clipped = np.clip(np.nan_to_num(numbers, nan=0.0), 0, 1)
    return np.ascontiguousarray((clipped * 255).round().astype(np.uint8)), note
