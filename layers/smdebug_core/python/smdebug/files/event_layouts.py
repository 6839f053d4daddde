"""The fixed bytes of an event record, and where its variable parts are.

A record is one protobuf `Event`. Nearly all of its bytes follow from the tensor's name, dtype and shape.
They are computed once per tensor: a `Template` serves writing, a `RecordLayout` reading. Two records of
the same name, dtype and shape differ only in wall time, step, mode, mode step and content.
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from smdebug.exceptions import SMDebugValueError
from smdebug.files.dtypes import dtype_number, stored_size
from smdebug.files.framing import HEADER_SIZE
from smdebug.files.wire import delimited, varint

if TYPE_CHECKING:
    import numpy as np

    from smdebug.mode_keys import ModeKeys

MODE_PLUGIN: Final = "mode"
MODE_STEP_PLUGIN: Final = "mode_step"

VIEW_FROM: Final = 64 * 1024  # bytes of content above which a value is a view of the buffer
STEP_START: Final = HEADER_SIZE + 9  # the wall time before it takes a tag and 8 bytes

_REMEMBERED: Final = 16_384  # tensors, about half a KB each
_LONGEST_REMEMBERED: Final = 4096  # bytes: bounds the memory that a hostile name can take

double = struct.Struct("<d").pack


class Template:
    """The bytes that are the same in every record of one tensor."""

    __slots__ = ("_opening", "size", "tensor")

    def __init__(self, tensor: bytes, size: int):
        self.tensor = tensor  # tag, and the tensor up to its content
        self.size = size  # of the content
        self._opening = (-1, b"")

    def opening(self, metadata: bytes) -> bytes:
        """Return the bytes between step and content, if `metadata` follows the content."""
        after = len(metadata)
        known, opening = self._opening
        if known != after:
            value = varint(len(self.tensor) + self.size + after)
            summary = varint(1 + len(value) + len(self.tensor) + self.size + after)
            opening = b"\x2a" + summary + b"\x0a" + value + self.tensor
            self._opening = (after, opening)  # one assignment: other threads see both or neither
        return opening


templates: dict[tuple[str, np.dtype[Any], tuple[int, ...]], Template] = {}


def template_of(name: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Template:
    """Return the template of a tensor of numbers, remembered where the dtype is native."""
    key = (name, dtype, shape)
    template = templates.get(key)
    if template is None:
        tag = tag_field(name)
        number = dtype_number(dtype)
        size = stored_size(number) * math.prod(shape)
        start = b"\x08" + varint(number) + shape_field(name, shape)
        if size:
            start += b"\x22" + varint(size)
        template = Template(tag + b"\x42" + varint(len(start) + size) + start, size)
        if dtype.isnative:
            remember(templates, key, template, len(template.tensor))
    return template


def tag_field(name: str) -> bytes:
    """Return the field that holds a tensor's name; `SMDebugValueError` if it cannot be one."""
    try:
        if not name or "\0" in name:
            raise ValueError("it is empty or contains a NUL")
        return delimited(b"\x0a", name.encode())
    except ValueError as error:
        raise SMDebugValueError(f"{name!r} cannot be the name of a tensor: {error}") from error


def shape_field(name: str, shape: tuple[int, ...]) -> bytes:
    """Return the field that holds a shape, its dimensions named as the old library names them."""
    dimensions = bytearray()
    for size in shape:
        dimension = b"\x08" + varint(size) if size else b""
        dimensions += delimited(b"\x12", dimension + delimited(b"\x12", f"{name}_{size}".encode()))
    return delimited(b"\x12", bytes(dimensions))


def step_field(step: int) -> bytes:
    """Return the field that holds the step; proto3 leaves out a zero."""
    return b"\x10" + varint(step) if step else b""


def metadata_field(mode: ModeKeys, mode_step: int) -> bytes:
    """Return the field that holds mode and mode step."""
    return delimited(
        b"\x4a",
        _plugin(MODE_STEP_PLUGIN, str(mode_step)) + _plugin(MODE_PLUGIN, str(mode.value)),
    )


def _plugin(name: str, content: str) -> bytes:
    plugin = delimited(b"\x0a", name.encode()) + delimited(b"\x12", content.encode())
    return delimited(b"\x0a", plugin)


class RecordLayout(NamedTuple):
    """The fixed bytes of the records of one name and length, and the positions of the rest.

    The content of a large record is left out of the comparison: `viewed` bytes at `content_start` that
    the later positions do not count.
    """

    head: bytes  # frame header and the tag of the wall time
    step_stop: int
    opening: bytes  # from the step to the content
    content_start: int
    content_stop: int
    before_mode_step: bytes  # from the content to the digits of the mode step
    mode_step_start: int
    mode_step_stop: int
    end: bytes  # from there to the footer
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    viewed: int


record_layouts: dict[tuple[str, int], RecordLayout] = {}


def remember(memory: dict[Any, Any], key: object, value: object, size: int) -> None:
    """Keep `value`, which takes about `size` bytes, unless that is too much."""
    if size <= _LONGEST_REMEMBERED:
        if len(memory) >= _REMEMBERED:
            memory.clear()  # cheaper than keeping an order, and as good: the next step fills it again
        memory[key] = value
