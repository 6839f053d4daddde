"""Tensors as the records of an event file, identical to the old library's to the byte.

The array's own memory goes between computed bytes, without a copy.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from smdebug.exceptions import SMDebugTypeError, SMDebugValueError
from smdebug.files.checksum import CONSTANT_FOOTER, Buffer, extend
from smdebug.files.dtypes import STRING, dtype_number
from smdebug.files.event_layouts import (
    Template,
    double,
    metadata_field,
    shape_field,
    step_field,
    tag_field,
    template_of,
    templates,
)
from smdebug.files.framing import FRAME_SIZE, Checksum, EncodedRecord, footer, header
from smdebug.files.wire import delimited

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from smdebug.mode_keys import ModeKeys

_INT64: Final = range(-(1 << 63), 1 << 63)


def as_saved_array(value: Any) -> NDArray[Any]:
    """Return the array that is saved for `value`: numbers and text as one element, sequences as arrays."""
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, (bool, int, float, complex, str, bytes, np.generic)):
        value = [value]
    elif not isinstance(value, (list, tuple)):
        raise SMDebugTypeError(
            f"A value of type {type(value).__name__} cannot be saved as a tensor. "
            "Pass a numpy array, a number, a string, or a list or tuple of them."
        )
    try:
        array = np.asarray(value)
    except (ValueError, OverflowError, Warning) as error:  # ragged lists: numpy < 1.24 only warns
        raise SMDebugTypeError(f"This {type(value).__name__} cannot become an array: {error}") from error
    if dtype_number(array.dtype) == STRING and array.dtype.kind != "U":
        _as_strings(array)  # refuses what is neither str nor UTF-8
    return array


def encode_event(
    name: str,
    array: NDArray[Any],
    *,
    step: int,
    wall_time: float,
    mode: ModeKeys,
    mode_step: int,
    checksum: Checksum = "constant",
) -> EncodedRecord:
    """Return the record of one tensor, as pieces to write; one of them is the array's own memory.

    Strings are saved from arrays of str, of bytes (which must be UTF-8) and of objects (all str or such
    bytes). Big-endian and non-contiguous arrays are copied first.
    """
    template = templates.get((name, array.dtype, array.shape))
    if template is None:
        array = _storable(array)
        if array.dtype.kind in "UO":
            return _frame_event(_string_template(name, array), (), step, wall_time, mode, mode_step, checksum)
        template = template_of(name, array.dtype, array.shape)
    content: tuple[Buffer, ...] = ()
    if template.size:
        try:
            content = (memoryview(array).cast("B"),)  # type: ignore[arg-type]
        except (TypeError, ValueError):  # not contiguous, or a dtype that is not numpy's own
            array = np.ascontiguousarray(array)
            content = (memoryview(array.reshape(-1).view(np.uint8)),)  # type: ignore[arg-type]
    return _frame_event(template, content, step, wall_time, mode, mode_step, checksum)


def _frame_event(
    template: Template,
    content: tuple[Buffer, ...],
    step: int,
    wall_time: float,
    mode: ModeKeys,
    mode_step: int,
    checksum: Checksum,
) -> EncodedRecord:
    moment = _latest_moment
    if moment.mode is not mode or moment.step != step or moment.mode_step != mode_step:
        moment = _moment(step, mode, mode_step)
    metadata = moment.metadata
    front = b"\x09" + double(wall_time) + moment.step_field + template.opening(metadata)
    length = len(front) + template.size + len(metadata)
    crc = extend(front)
    if content:
        crc = extend(content[0], crc)
    crc = extend(metadata, crc)
    back = metadata + (CONSTANT_FOOTER if checksum == "constant" else footer(crc, checksum))
    return EncodedRecord((header(length) + front, *content, back), length + FRAME_SIZE, crc)


class _Moment(NamedTuple):
    """What all tensors of a step have in common."""

    step: int
    mode: ModeKeys | None
    mode_step: int
    step_field: bytes
    metadata: bytes


_latest_moment = _Moment(0, None, 0, b"", b"")


def _moment(step: int, mode: ModeKeys, mode_step: int) -> _Moment:
    global _latest_moment
    step, mode_step = operator.index(step), operator.index(mode_step)
    if step not in _INT64 or mode_step not in _INT64:
        raise SMDebugValueError(f"Step {step} or mode step {mode_step} has more than 64 bits")
    _latest_moment = _Moment(step, mode, mode_step, step_field(step), metadata_field(mode, mode_step))
    return _latest_moment


def _storable(array: NDArray[Any]) -> NDArray[Any]:
    """Return the same values, little-endian, in C order; strings as str."""
    if dtype_number(array.dtype) == STRING:
        return array if array.dtype.kind == "U" else _as_strings(array)
    if array.dtype.isnative or array.dtype.itemsize == 1:
        return array
    return array.astype(array.dtype.newbyteorder("<"))


def _as_strings(array: NDArray[Any]) -> NDArray[Any]:
    strings = np.empty(array.shape, object)
    for at, element in enumerate(array.flat):
        if isinstance(element, bytes):
            try:
                element = element.decode()
            except UnicodeDecodeError as error:
                raise SMDebugTypeError(
                    f"Bytes are saved as text, and {element[:40]!r} is not valid UTF-8. "
                    "Save other bytes as an array of uint8."
                ) from error
        elif not isinstance(element, str):
            raise SMDebugTypeError(
                "An array of objects can be saved only if all are str; this one holds "
                f"{type(element).__name__}. Convert it to numbers or to strings."
            )
        strings.flat[at] = element
    return strings


def _string_template(name: str, array: NDArray[Any]) -> Template:
    """Return the template of strings: no dtype and no content, and a field for each string."""
    tag = tag_field(name)
    tensor = bytearray(shape_field(name, array.shape))
    try:
        for string in array.flat:
            tensor += delimited(b"\x42", string.encode())
    except UnicodeEncodeError as error:
        raise SMDebugValueError(f"Tensor {name} holds text that is not Unicode: {error}") from error
    return Template(tag + delimited(b"\x42", bytes(tensor)), 0)
