"""The protobuf messages inside an event record, checked field by field.

This is the careful way, for records of any writer. `event_reading` takes a shortcut where a record is
like the one before.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from smdebug.files.checksum import Buffer, extend
from smdebug.files.dtypes import BOOL, STRING, dtype_of, stored_size, view_as
from smdebug.files.event_layouts import MODE_PLUGIN, MODE_STEP_PLUGIN, VIEW_FROM
from smdebug.files.framing import FOOTER_SIZE, HEADER_SIZE, check_footer, payload_end
from smdebug.files.wire import DELIMITED, FIXED64, VARINT, Malformed, fields, signed, text
from smdebug.mode_keys import ModeKeys

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MOST_DIMENSIONS: Final = 64  # numpy's limit (32 before numpy 2)

_read_double = struct.Struct("<d").unpack_from


class Event(NamedTuple):
    """One tensor as it was saved at one step."""

    name: str
    step: int
    wall_time: float
    value: NDArray[Any]
    mode: ModeKeys | None
    mode_step: int | None


class Parsed(NamedTuple):
    """A parsed event, its content still in the buffer."""

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
        """Return the event, its value read from `buffer`."""
        value = self._value(buffer)
        return Event(self.name, self.step, self.wall_time, value, self.mode, self.mode_step)

    def _value(self, buffer: Buffer) -> NDArray[Any]:
        try:
            if self.number == STRING:
                return _array_of(self.strings, self.shape)
            if self.size >= VIEW_FROM:
                value = view_as(self.number, self.shape, buffer, self.start)
            else:
                content = bytearray(buffer[self.start : self.start + self.size])
                value = view_as(self.number, self.shape, content)
        except (ValueError, TypeError, OverflowError, MemoryError) as error:
            raise Malformed(f"numpy cannot make an array of shape {self.shape}: {error}") from error
        if self.number == BOOL and self.size and value.view(np.uint8).max() > 1:
            raise Malformed("it has a bool that is neither 0 nor 1")
        return value


def _array_of(strings: list[str], shape: tuple[int, ...]) -> NDArray[Any]:
    """Return a numpy array of text; of objects where text would lose a NUL or take far more memory."""
    longest = max(map(len, strings), default=0)
    padded = 4 * longest * len(strings)
    too_ragged = padded > 1 << 26 and padded > 64 * sum(map(len, strings))
    if too_ragged or any(string.endswith("\0") for string in strings):
        array = np.empty(len(strings), object)
        array[:] = strings
        return array.reshape(shape)
    return np.array(strings, np.str_).reshape(shape)


def parse_record(buffer: Buffer, name: str | None, crc32c: int | None) -> Parsed:
    """Parse one whole record, from its length to its footer, and check everything in it."""
    stop = payload_end(buffer)
    if stop + FOOTER_SIZE != len(buffer):
        raise Malformed(f"the record ends at byte {stop + FOOTER_SIZE} of {len(buffer)}")
    crc = extend(memoryview(buffer)[HEADER_SIZE:stop])
    if crc32c is not None and crc != crc32c:
        raise Malformed(
            f"its checksum is {crc:#010x}, but {crc32c:#010x} in the index file: it has changed since"
        )
    check_footer(buffer, stop, crc)
    parsed = parse_event(buffer, HEADER_SIZE, stop)
    if name is not None and parsed.name != name:
        raise Malformed(f"the record holds tensor {parsed.name!r}, so the index file belongs to another file")
    return parsed


def parse_event(buffer: Buffer, start: int, stop: int) -> Parsed:
    """Parse an Event: 1 wall time, 2 step, 5 summary {1 value}."""
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


def _parse_value(buffer: Buffer, start: int, stop: int, step: int, wall_time: float) -> Parsed:
    """Parse a Value: 1 tag, 8 tensor, 9 metadata."""
    name: str | None = None
    tensor: tuple[int, int] | None = None
    mode: ModeKeys | None = None
    mode_step: int | None = None
    for number, kind, at, end in fields(buffer, start, stop):
        if number == 1:
            _expect(DELIMITED, kind, "the tag")
            if name is not None:
                raise Malformed("it has two tags")
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
        raise Malformed(f"the tag {name!r} contains a NUL")
    if tensor is None:
        raise Malformed(f"the value {name!r} is not a tensor")
    return Parsed(name, step, wall_time, *parse_tensor(buffer, *tensor), mode, mode_step)


def parse_tensor(buffer: Buffer, start: int, stop: int) -> tuple[int, tuple[int, ...], int, int, list[str]]:
    """Parse a TensorProto: 1 dtype, 2 shape, 4 content, 8 strings.

    Return (dtype, shape, start, size, strings).
    """
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
                raise Malformed("it has two shapes")
            shape = _parse_shape(buffer, at, end)
        elif number == 8:
            _expect(DELIMITED, kind, "a string")
            strings.append(text(buffer, at, end))
    shape = shape or ()
    at, end = content or (start, start)
    if dtype in (0, STRING):
        if at != end:
            raise Malformed("it has content but no dtype")
        if len(strings) != math.prod(shape):
            raise Malformed(f"it has {len(strings)} strings and shape {shape}")
        return STRING, shape, start, 0, strings
    try:
        size = stored_size(dtype) * math.prod(shape)
    except KeyError:
        raise Malformed(f"dtype number {dtype} does not exist") from None
    if strings:
        raise Malformed(f"it has strings but dtype {dtype_of(dtype)}")
    if size != end - at:
        raise Malformed(f"shape {shape} of {dtype_of(dtype)} takes {size} bytes, but it has {end - at}")
    return dtype, shape, at, size, strings


def _parse_shape(buffer: Buffer, start: int, stop: int) -> tuple[int, ...]:
    """Parse a TensorShapeProto: 2 dimension {1 size, 2 name}."""
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
    """Parse a Metadata: 1 plugin data {1 name, 2 content}, repeated."""
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
        raise Malformed(f"mode {content[:40]!r} does not exist")
    return mode


_MODES: Final = {str(mode.value): mode for mode in ModeKeys}


def _mode_step(content: str) -> int:
    digits = content.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 20):
        raise Malformed(f"{content[:40]!r} is not a mode step")
    return int(content)


def _expect(wanted: int, kind: int, what: str) -> None:
    if kind != wanted:
        raise Malformed(f"{what} has wire type {kind} instead of {wanted}")


def _first(before: tuple[int, int] | None, start: int, stop: int, what: str) -> tuple[int, int]:
    if before is not None:
        raise Malformed(f"it has two {what}s")
    return start, stop
