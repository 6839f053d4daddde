"""Tensors as the records of an event file, to the byte the old library's, and back.

A record is one protobuf `Event`. Nearly all of its bytes follow from the tensor's name, dtype and shape;
they are computed once per tensor. Writing puts the array's own memory between them, and reading a record
like the last one of its tensor is comparing them and taking what is between.

Two tensors of the same name, dtype and shape differ only in wall time, step, mode, mode step and content.
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Iterator
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from smdebug.exceptions import DamagedFile, SMDebugTypeError, SMDebugValueError
from smdebug.files.checksum import CONSTANT_FOOTER, Buffer, extend
from smdebug.files.dtypes import BOOL, STRING, dtype_number, dtype_of, stored_size, view_as
from smdebug.files.framing import (
    FOOTER_SIZE,
    FRAME_SIZE,
    HEADER_SIZE,
    Checksum,
    EncodedRecord,
    check_footer,
    footer,
    header,
    payload_end,
)
from smdebug.files.wire import (
    DELIMITED,
    FIXED64,
    VARINT,
    Malformed,
    delimited,
    fields,
    signed,
    text,
    varint,
)
from smdebug.mode_keys import ModeKeys

__all__ = [
    "EncodedRecord",
    "Event",
    "as_saved_array",
    "decode_event",
    "encode_event",
    "iterate_records",
    "read_record",
    "read_value",
]

MODE_PLUGIN: Final = "mode"
MODE_STEP_PLUGIN: Final = "mode_step"

_VIEW_FROM: Final = 64 * 1024  # bytes of content above which a value is a view of the buffer
_REMEMBERED: Final = 16_384  # tensors, times about half a KB
_LONGEST_REMEMBERED: Final = 4096  # bytes: what a hostile name can make us keep
_MOST_DIMENSIONS: Final = 64  # numpy's limit (32 before numpy 2)
_INT64: Final = range(-(1 << 63), 1 << 63)

_double = struct.Struct("<d").pack
_read_double = struct.Struct("<d").unpack_from

Check = Literal["minimal", "full", "none"]


class Event(NamedTuple):
    """One tensor as it was saved at one step."""

    name: str
    step: int
    wall_time: float
    value: npt.NDArray[Any]
    mode: ModeKeys | None
    mode_step: int | None


def as_saved_array(value: Any) -> npt.NDArray[Any]:
    """The array that is saved for `value`: numbers and text as one element, sequences as arrays."""
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, (bool, int, float, complex, str, bytes, np.generic)):
        value = [value]
    elif not isinstance(value, (list, tuple)):
        raise SMDebugTypeError(
            f"A {type(value).__name__} cannot be saved as a tensor. "
            "Give a numpy array, a number, a string, or a list or tuple of them."
        )
    try:
        array = np.asarray(value)
    except (ValueError, OverflowError, Warning) as error:  # ragged lists: numpy < 1.24 only warns
        raise SMDebugTypeError(f"This {type(value).__name__} is no array: {error}") from error
    if dtype_number(array.dtype) == STRING and array.dtype.kind != "U":
        _as_strings(array)  # refuses what is neither str nor UTF-8
    return array


# Writing -------------------------------------------------------------------------------------------


class _Template:
    """The bytes of a record that are the same whenever this tensor is saved."""

    __slots__ = ("_opening", "size", "tensor")

    def __init__(self, tensor: bytes, size: int):
        self.tensor = tensor  # tag, and the tensor up to its content
        self.size = size  # of the content
        self._opening = (-1, b"")

    def opening(self, metadata: bytes) -> bytes:
        """What stands between step and content if that metadata follows the content."""
        after = len(metadata)
        known, opening = self._opening
        if known != after:
            value = varint(len(self.tensor) + self.size + after)
            summary = varint(1 + len(value) + len(self.tensor) + self.size + after)
            opening = b"\x2a" + summary + b"\x0a" + value + self.tensor
            self._opening = (after, opening)  # one assignment: other threads see both or neither
        return opening


def encode_event(
    name: str,
    array: npt.NDArray[Any],
    *,
    step: int,
    wall_time: float,
    mode: ModeKeys,
    mode_step: int,
    checksum: Checksum = "constant",
) -> EncodedRecord:
    """The record of one tensor, as pieces to write; the array's own memory is one of them, not a copy.

    Strings are saved from arrays of str, of bytes (which must be UTF-8) and of objects (all str or such
    bytes). Big-endian and non-contiguous arrays are copied first.
    """
    template = _templates.get((name, array.dtype, array.shape))
    if template is None:
        array = _storable(array)
        if array.dtype.kind in "UO":
            return _frame_event(
                _string_template(name, array), (), step, wall_time, mode, mode_step, checksum
            )
        template = _template(name, array.dtype, array.shape)
    content: tuple[Buffer, ...] = ()
    if template.size:
        try:
            content = (memoryview(array).cast("B"),)  # type: ignore[arg-type]
        except (
            TypeError,
            ValueError,
        ):  # not contiguous, or a dtype that numpy itself has not heard of
            array = np.ascontiguousarray(array)
            content = (memoryview(array.reshape(-1).view(np.uint8)),)  # type: ignore[arg-type]
    return _frame_event(template, content, step, wall_time, mode, mode_step, checksum)


def _frame_event(
    template: _Template,
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
    front = b"\x09" + _double(wall_time) + moment.step_field + template.opening(metadata)
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
    step_field = b"\x10" + varint(step) if step else b""
    _latest_moment = _Moment(step, mode, mode_step, step_field, _metadata(mode, mode_step))
    return _latest_moment


def _metadata(mode: ModeKeys, mode_step: int) -> bytes:
    return delimited(
        b"\x4a",
        _plugin(MODE_STEP_PLUGIN, str(mode_step)) + _plugin(MODE_PLUGIN, str(mode.value)),
    )


def _plugin(name: str, content: str) -> bytes:
    plugin = delimited(b"\x0a", name.encode()) + delimited(b"\x12", content.encode())
    return delimited(b"\x0a", plugin)


def _storable(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same values, little-endian, in C order; strings as str."""
    if dtype_number(array.dtype) == STRING:
        return array if array.dtype.kind == "U" else _as_strings(array)
    if array.dtype.isnative or array.dtype.itemsize == 1:
        return array
    return array.astype(array.dtype.newbyteorder("<"))


def _as_strings(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
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
                f"An array of objects is saved if all are str, and one is {type(element).__name__}. "
                "Convert it to numbers or to strings."
            )
        strings.flat[at] = element
    return strings


_templates: dict[tuple[str, np.dtype[Any], tuple[int, ...]], _Template] = {}


def _template(name: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> _Template:
    key = (name, dtype, shape)
    template = _templates.get(key)
    if template is None:
        tag = _tag(name)
        number = dtype_number(dtype)
        size = stored_size(number) * math.prod(shape)
        start = b"\x08" + varint(number) + _shape(name, shape)
        if size:
            start += b"\x22" + varint(size)
        template = _Template(tag + b"\x42" + varint(len(start) + size) + start, size)
        if dtype.isnative:
            _remember(_templates, key, template, len(template.tensor))
    return template


def _string_template(name: str, array: npt.NDArray[Any]) -> _Template:
    """Strings have no dtype and no content: each is a field of its own."""
    tag = _tag(name)
    tensor = bytearray(_shape(name, array.shape))
    try:
        for string in array.flat:
            tensor += delimited(b"\x42", string.encode())
    except UnicodeEncodeError as error:
        raise SMDebugValueError(f"Tensor {name} holds text that is not Unicode: {error}") from error
    return _Template(tag + delimited(b"\x42", bytes(tensor)), 0)


def _tag(name: str) -> bytes:
    try:
        if not name or "\0" in name:
            raise ValueError("it is empty or holds a NUL")
        return delimited(b"\x0a", name.encode())
    except ValueError as error:
        raise SMDebugValueError(f"{name!r} cannot be the name of a tensor: {error}") from error


def _shape(name: str, shape: tuple[int, ...]) -> bytes:
    dimensions = bytearray()
    for size in shape:
        dimension = b"\x08" + varint(size) if size else b""
        dimensions += delimited(b"\x12", dimension + delimited(b"\x12", f"{name}_{size}".encode()))
    return delimited(b"\x12", bytes(dimensions))


def _remember(memory: dict[Any, Any], key: object, thing: object, size: int) -> None:
    if size <= _LONGEST_REMEMBERED:
        if len(memory) >= _REMEMBERED:
            memory.clear()  # cheaper than keeping an order, and as good: the next step fills it again
        memory[key] = thing


# Reading -------------------------------------------------------------------------------------------


def decode_event(
    payload: Buffer, *, file: str, tensor: str | None = None, step: int | None = None
) -> Event:
    """The tensor in the payload of a record; `DamagedFile` if that is not what it holds."""
    try:
        return _parse(payload, 0, len(payload)).event(payload)
    except Malformed as error:
        raise DamagedFile(file, str(error), tensor, step) from error


def read_record(
    buffer: Buffer,
    *,
    file: str,
    name: str | None = None,
    step: int | None = None,
    crc32c: int | None = None,
) -> Event:
    """The tensor in one whole record, from its length to its footer.

    `crc32c` is what the index file says, and then always checked; so is `name`.
    """
    try:
        return _parse_record(buffer, name, crc32c).event(buffer)
    except Malformed as error:
        raise DamagedFile(file, str(error), name, step) from error


def decode_tensor(message: Buffer, *, file: str) -> npt.NDArray[Any]:
    """The array in a `TensorProto` message; `DamagedFile` if that is not what it is."""
    try:
        tensor = _parse_tensor(message, 0, len(message))
        return _Parsed("", 0, 0.0, *tensor, None, None).event(message).value
    except Malformed as error:
        raise DamagedFile(file, str(error)) from error


def iterate_records(
    buffer: Buffer, *, file: str, check: Check | bool = "minimal"
) -> Iterator[Event]:
    """The tensors of a whole event file, in its order.

    `check` says how much is compared: "minimal" the checksum of each length and the footer; "full" also
    wants footers to be true checksums, which event files have only if they were written with
    `checksum="tfrecord"`; "none" nothing.
    """
    for start, stop in record_spans(buffer, file=file, check=check):
        try:
            event = _parse(buffer, start, stop).event(buffer)
        except Malformed as error:
            raise DamagedFile(
                file, f"in the record at byte {start - HEADER_SIZE}: {error}"
            ) from error
        yield event


def record_spans(
    buffer: Buffer, *, file: str, check: Check | bool = "minimal"
) -> Iterator[tuple[int, int]]:
    """Where each payload of a file of records begins and ends. `check` as for `iterate_records`."""
    at = 0
    while at < len(buffer):
        try:
            stop = payload_end(buffer, at, trust_header=check in ("none", False))
            if check not in ("none", False):
                crc = extend(memoryview(buffer)[at + HEADER_SIZE : stop])
                found = bytes(buffer[stop : stop + FOOTER_SIZE])
                if check == "full" and found != footer(crc, "tfrecord"):
                    raise Malformed(f"the record at byte {at} does not match its checksum")
                check_footer(buffer, stop, crc)
        except Malformed as error:
            raise DamagedFile(file, str(error)) from error
        yield at + HEADER_SIZE, stop
        at = stop + FOOTER_SIZE


class _Layout(NamedTuple):
    """Where in a record of one name and length everything is, and the bytes that must be there.

    Of a large record its content is left out: `viewed` bytes at `content_start` that are not counted.
    """

    head: bytes
    step_stop: int
    opening: bytes
    content_start: int
    content_stop: int
    before_mode_step: bytes
    mode_step_start: int
    mode_step_stop: int
    end: bytes
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    viewed: int


_layouts: dict[tuple[str, int], _Layout] = {}


def read_value(
    buffer: Buffer, *, file: str, name: str, step: int, crc32c: int | None = None
) -> npt.NDArray[Any]:
    """The value of tensor `name` in one whole record, checked as by `read_record`.

    Values of 64 KB and more are views of `buffer`, and writable if it is; smaller ones are your own.
    """
    length = len(buffer)
    layout = _layouts.get((name, length))
    if layout is not None:
        (
            head,
            step_stop,
            opening,
            content_start,
            content_stop,
            before_mode_step,
            mode_step_start,
            mode_step_stop,
            end,
            dtype,
            shape,
            viewed,
        ) = layout
        if viewed:
            data = bytes(buffer[:content_start]) + bytes(buffer[content_start + viewed :])
        else:
            buffer = data = buffer if type(buffer) is bytes else bytes(buffer)
        moment = _latest_step
        if moment[0] != step:
            moment = _step_field(step)
        # Wall time and content may be anything; all the rest is as in the record parsed before.
        if (
            data.startswith(head)
            and data.startswith(moment[1], 21)
            and len(moment[1]) + 21 == step_stop
            and data.startswith(opening, step_stop)
            and data.startswith(before_mode_step, content_stop)
            and data[mode_step_start:mode_step_stop].isdigit()
            and data.startswith(end, mode_step_stop)
            and _checks_hold(buffer, data, crc32c)
        ):
            if viewed:
                return np.ndarray(shape, dtype, buffer, content_start)
            return np.ndarray(shape, dtype, bytearray(data[content_start:content_stop]))
    try:
        parsed = _parse_record(buffer, name, crc32c)
        value = parsed.event(buffer).value
    except Malformed as error:
        raise DamagedFile(file, str(error), name, step) from error
    _remember_layout(buffer, parsed, value)
    return value


def _checks_hold(buffer: Buffer, ending: bytes, crc32c: int | None) -> bool:
    constant = ending.endswith(CONSTANT_FOOTER)
    if crc32c is None and constant:
        return True
    crc = extend(memoryview(buffer)[HEADER_SIZE:-FOOTER_SIZE])
    return (crc32c is None or crc == crc32c) and (
        constant or ending.endswith(footer(crc, "tfrecord"))
    )


_latest_step = (0, b"")


def _step_field(step: int) -> tuple[int, bytes]:
    global _latest_step
    _latest_step = (step, b"\x10" + varint(step) if step else b"")
    return _latest_step


def _remember_layout(buffer: Buffer, parsed: _Parsed, value: npt.NDArray[Any]) -> None:
    """Remember what is constant in a record, if it is the very one that we would have written."""
    if parsed.mode is None or parsed.mode_step is None or parsed.number in (STRING, BOOL):
        return
    start, size = parsed.start, parsed.size
    is_large = size >= _VIEW_FROM
    template = _template(parsed.name, value.dtype, value.shape)
    step_field = _step_field(parsed.step)[1]
    metadata = _metadata(parsed.mode, parsed.mode_step)
    opening = template.opening(metadata)
    front = b"\x09" + _double(parsed.wall_time) + step_field + opening
    front = header(len(front) + size + len(metadata)) + front
    as_written = bytes(buffer[:start]) == front and buffer[start + size : -FOOTER_SIZE] == metadata
    if not as_written or template.size != size:
        return
    mode_step = str(parsed.mode_step).encode()
    before = metadata.index(mode_step + b"\x0a")
    content_stop = start if is_large else start + size
    layout = _Layout(
        head=front[: HEADER_SIZE + 1],
        step_stop=21 + len(step_field),
        opening=opening,
        content_start=start,
        content_stop=content_stop,
        before_mode_step=metadata[:before],
        mode_step_start=content_stop + before,
        mode_step_stop=content_stop + before + len(mode_step),
        end=metadata[before + len(mode_step) :],
        dtype=value.dtype,
        shape=value.shape,
        viewed=size if is_large else 0,
    )
    _remember(_layouts, (parsed.name, len(buffer)), layout, len(buffer) - size)


class _Parsed(NamedTuple):
    """What an event says, with its content still where it was found."""

    name: str
    step: int
    wall_time: float
    number: int
    shape: tuple[int, ...]
    start: int
    size: int
    strings: list[str]
    mode: ModeKeys | None
    mode_step: int | None

    def event(self, buffer: Buffer) -> Event:
        value = self._value(buffer)
        return Event(self.name, self.step, self.wall_time, value, self.mode, self.mode_step)

    def _value(self, buffer: Buffer) -> npt.NDArray[Any]:
        try:
            if self.number == STRING:
                return _array_of(self.strings, self.shape)
            if self.size >= _VIEW_FROM:
                value = view_as(self.number, self.shape, buffer, self.start)
            else:
                content = bytearray(buffer[self.start : self.start + self.size])
                value = view_as(self.number, self.shape, content)
        except (ValueError, TypeError, OverflowError, MemoryError) as error:
            raise Malformed(f"numpy has no array of shape {self.shape}: {error}") from error
        if self.number == BOOL and self.size and value.view(np.uint8).max() > 1:
            raise Malformed("a bool in it is neither 0 nor 1")
        return value


def _array_of(strings: list[str], shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """The strings as numpy holds text, unless that would lose something or take far more memory."""
    longest = max(map(len, strings), default=0)
    padded = 4 * longest * len(strings)
    too_ragged = padded > 1 << 26 and padded > 64 * sum(map(len, strings))
    if too_ragged or any(string.endswith("\0") for string in strings):
        array = np.empty(len(strings), object)
        array[:] = strings
        return array.reshape(shape)
    return np.array(strings, np.str_).reshape(shape)


def _parse_record(buffer: Buffer, name: str | None, crc32c: int | None) -> _Parsed:
    """One whole record, with everything checked that can be."""
    stop = payload_end(buffer)
    if stop + FOOTER_SIZE != len(buffer):
        raise Malformed(f"the record ends at byte {stop + FOOTER_SIZE} of {len(buffer)}")
    crc = extend(memoryview(buffer)[HEADER_SIZE:stop])
    if crc32c is not None and crc != crc32c:
        raise Malformed(
            f"its checksum is {crc:#010x}, and the index file says {crc32c:#010x}: it has changed since"
        )
    check_footer(buffer, stop, crc)
    parsed = _parse(buffer, HEADER_SIZE, stop)
    if name is not None and parsed.name != name:
        raise Malformed(
            f"the record holds tensor {parsed.name!r}, so the index file is not of this file"
        )
    return parsed


def _parse(buffer: Buffer, start: int, stop: int) -> _Parsed:
    """An Event: 1 wall time, 2 step, 5 summary {1 value}."""
    wall_time, step = 0.0, 0
    value: tuple[int, int] | None = None
    for number, kind, at, end in fields(buffer, start, stop):
        if number == 1:
            _expect(FIXED64, kind, "the wall time")
            (wall_time,) = _read_double(buffer, at)
        elif number == 2:
            _expect(VARINT, kind, "the step")
            step = signed(at)
        elif number == 5:
            _expect(DELIMITED, kind, "the summary")
            for inner, inner_kind, inner_at, inner_end in fields(buffer, at, end):
                if inner == 1:
                    _expect(DELIMITED, inner_kind, "the value")
                    value = _first(value, inner_at, inner_end, "value")
    if value is None:
        raise Malformed("the event has no summary value")
    return _parse_value(buffer, *value, step, wall_time)


def _parse_value(buffer: Buffer, start: int, stop: int, step: int, wall_time: float) -> _Parsed:
    """A Value: 1 tag, 8 tensor, 9 metadata."""
    name: str | None = None
    tensor: tuple[int, int] | None = None
    mode: ModeKeys | None = None
    mode_step: int | None = None
    for number, kind, at, end in fields(buffer, start, stop):
        if number == 1:
            _expect(DELIMITED, kind, "the tag")
            if name is not None:
                raise Malformed("there are two tags where there can be one")
            name = text(buffer, at, end)
        elif number == 8:
            _expect(DELIMITED, kind, "the tensor")
            tensor = _first(tensor, at, end, "tensor")
        elif number == 9:
            _expect(DELIMITED, kind, "the metadata")
            for plugin, content in _plugins(buffer, at, end):
                if plugin == MODE_PLUGIN:
                    mode = _mode(content)
                elif plugin == MODE_STEP_PLUGIN:
                    mode_step = _mode_step(content)
    if not name:
        raise Malformed("the value has no tag")
    if "\0" in name:
        raise Malformed(f"the tag {name!r} holds a NUL")
    if tensor is None:
        raise Malformed(f"the value {name!r} is no tensor")
    return _Parsed(name, step, wall_time, *_parse_tensor(buffer, *tensor), mode, mode_step)


def _parse_tensor(
    buffer: Buffer, start: int, stop: int
) -> tuple[int, tuple[int, ...], int, int, list[str]]:
    """A TensorProto: 1 dtype, 2 shape, 4 content, 8 strings. (dtype, shape, start, size, strings)"""
    dtype = 0
    shape: tuple[int, ...] | None = None
    content: tuple[int, int] | None = None
    strings: list[str] = []
    for number, kind, at, end in fields(buffer, start, stop):
        if number == 4:
            _expect(DELIMITED, kind, "the content")
            content = _first(content, at, end, "content")
        elif number == 1:
            _expect(VARINT, kind, "the dtype")
            dtype = at
        elif number == 2:
            _expect(DELIMITED, kind, "the shape")
            if shape is not None:
                raise Malformed("there are two shapes where there can be one")
            shape = _parse_shape(buffer, at, end)
        elif number == 8:
            _expect(DELIMITED, kind, "a string")
            strings.append(text(buffer, at, end))
    shape = shape or ()
    at, end = content or (start, start)
    if dtype in (0, STRING):
        if at != end:
            raise Malformed("it has content, but no dtype to say of what")
        if len(strings) != math.prod(shape):
            raise Malformed(f"it has {len(strings)} strings and shape {shape}")
        return STRING, shape, start, 0, strings
    try:
        size = stored_size(dtype) * math.prod(shape)
    except KeyError:
        raise Malformed(f"there is no dtype number {dtype}") from None
    if strings:
        raise Malformed(f"it has strings, and dtype {dtype_of(dtype)}")
    if size != end - at:
        raise Malformed(
            f"shape {shape} of {dtype_of(dtype)} takes {size} bytes, and there are {end - at}"
        )
    return dtype, shape, at, size, strings


def _parse_shape(buffer: Buffer, start: int, stop: int) -> tuple[int, ...]:
    """A TensorShapeProto: 2 dimension {1 size, 2 name}."""
    shape = []
    for number, kind, at, end in fields(buffer, start, stop):
        if number == 2:
            _expect(DELIMITED, kind, "a dimension")
            size = 0
            for inner, inner_kind, inner_at, inner_end in fields(buffer, at, end):
                if inner == 1:
                    _expect(VARINT, inner_kind, "the size of a dimension")
                    size = signed(inner_at)
                elif inner == 2:
                    _expect(DELIMITED, inner_kind, "the name of a dimension")
                    text(buffer, inner_at, inner_end)
            if size < 0:
                raise Malformed(f"a dimension has the size {size}")
            shape.append(size)
            if len(shape) > _MOST_DIMENSIONS:
                raise Malformed(f"it has more than {_MOST_DIMENSIONS} dimensions")
    return tuple(shape)


def _plugins(buffer: Buffer, start: int, stop: int) -> Iterator[tuple[str, str]]:
    """A Metadata: 1 plugin data {1 name, 2 content}, repeated."""
    for number, kind, at, end in fields(buffer, start, stop):
        if number == 1:
            _expect(DELIMITED, kind, "plugin data")
            name = content = ""
            for inner, inner_kind, inner_at, inner_end in fields(buffer, at, end):
                if inner in (1, 2):
                    _expect(DELIMITED, inner_kind, "a part of the plugin data")
                    if inner == 1:
                        name = text(buffer, inner_at, inner_end)
                    else:
                        content = text(buffer, inner_at, inner_end)
            yield name, content


def _mode(content: str) -> ModeKeys:
    mode = _MODES.get(content)
    if mode is None:
        raise Malformed(f"there is no mode {content[:40]!r}")
    return mode


_MODES: Final = {str(mode.value): mode for mode in ModeKeys}


def _mode_step(content: str) -> int:
    digits = content.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 20):
        raise Malformed(f"{content[:40]!r} is no mode step")
    return int(content)


def _expect(wanted: int, kind: int, what: str) -> None:
    if kind != wanted:
        raise Malformed(f"{what} has wire type {kind} instead of {wanted}")


def _first(before: tuple[int, int] | None, start: int, stop: int, what: str) -> tuple[int, int]:
    if before is not None:
        raise Malformed(f"there are two {what}s where there can be one")
    return start, stop
