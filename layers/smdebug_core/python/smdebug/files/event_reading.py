"""The tensors in event records: one value, one record, or a whole file.

`read_value` remembers what is constant in the records of a tensor. A record like the last one is compared
with that instead of being parsed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from smdebug.exceptions import DamagedFile
from smdebug.files.checksum import CONSTANT_FOOTER, Buffer, extend
from smdebug.files.dtypes import BOOL, STRING
from smdebug.files.event_layouts import (
    STEP_START,
    VIEW_FROM,
    RecordLayout,
    double,
    metadata_field,
    record_layouts,
    remember,
    step_field,
    template_of,
)
from smdebug.files.event_parsing import Event, Parsed, parse_event, parse_record, parse_tensor
from smdebug.files.framing import (
    FOOTER_SIZE,
    HEADER_SIZE,
    check_footer,
    footer,
    header,
    payload_end,
)
from smdebug.files.wire import Malformed

if TYPE_CHECKING:
    from numpy.typing import NDArray

Check = Literal["minimal", "full", "none"]


def decode_event(payload: Buffer, *, file: str, tensor: str | None = None, step: int | None = None) -> Event:
    """Return the tensor in the payload of a record; `DamagedFile` if it holds none."""
    try:
        return parse_event(payload, 0, len(payload)).event(payload)
    except Malformed as error:
        raise DamagedFile(file, str(error), tensor, step) from error


def decode_tensor(message: Buffer, *, file: str) -> NDArray[Any]:
    """Return the array in a `TensorProto` message; `DamagedFile` if it is not one."""
    try:
        tensor = parse_tensor(message, 0, len(message))
        return Parsed("", 0, 0.0, *tensor, None, None).event(message).value
    except Malformed as error:
        raise DamagedFile(file, str(error)) from error


def read_record(
    buffer: Buffer,
    *,
    file: str,
    name: str | None = None,
    step: int | None = None,
    crc32c: int | None = None,
) -> Event:
    """Return the tensor in one whole record, from its length to its footer.

    The checksum is compared with `crc32c`, the index file's, and the tensor's name with `name`.
    """
    try:
        return parse_record(buffer, name, crc32c).event(buffer)
    except Malformed as error:
        raise DamagedFile(file, str(error), name, step) from error


def iterate_records(buffer: Buffer, *, file: str, check: Check | bool = "minimal") -> Iterator[Event]:
    """Yield the tensors of a whole event file, in its order.

    `check` is how much to verify. "minimal": the checksum of each length, and the footer. "full": also
    that each footer is a true checksum, as only `checksum="tfrecord"` writes them. "none": nothing.
    """
    for start, stop in record_spans(buffer, file=file, check=check):
        try:
            event = parse_event(buffer, start, stop).event(buffer)
        except Malformed as error:
            raise DamagedFile(file, f"in the record at byte {start - HEADER_SIZE}: {error}") from error
        yield event


def record_spans(buffer: Buffer, *, file: str, check: Check | bool = "minimal") -> Iterator[tuple[int, int]]:
    """Yield start and stop of each payload in a file of records. `check` as for `iterate_records`."""
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


def read_value(buffer: Buffer, *, file: str, name: str, step: int, crc32c: int | None = None) -> NDArray[Any]:
    """Return the value of tensor `name` in one whole record, checked as by `read_record`.

    Values of 64 KB and more are views of `buffer`, and writable if it is; smaller ones are copies.
    """
    layout = record_layouts.get((name, len(buffer)))
    if layout is not None:
        (
            head,
            step_stop,
            opening,
            start,
            stop,
            before,
            digits,
            digits_stop,
            end,
            dtype,
            shape,
            viewed,
        ) = layout
        if viewed:
            data = bytes(buffer[:start]) + bytes(buffer[start + viewed :])
        else:
            buffer = data = buffer if type(buffer) is bytes else bytes(buffer)
        moment = _latest_step
        if moment[0] != step:
            moment = _moment(step)
        # Wall time and content may be anything. The rest must equal the record parsed before.
        if (
            data.startswith(head)
            and data.startswith(moment[1], STEP_START)
            and len(moment[1]) + STEP_START == step_stop
            and data.startswith(opening, step_stop)
            and data.startswith(before, stop)
            and data[digits:digits_stop].isdigit()
            and data.startswith(end, digits_stop)
            and _checksums_match(buffer, data, crc32c)
        ):
            if viewed:
                return np.ndarray(shape, dtype, buffer, start)
            return np.ndarray(shape, dtype, bytearray(data[start:stop]))
    try:
        parsed = parse_record(buffer, name, crc32c)
        value = parsed.event(buffer).value
    except Malformed as error:
        raise DamagedFile(file, str(error), name, step) from error
    _remember_layout(buffer, parsed, value)
    return value


def _checksums_match(buffer: Buffer, ending: bytes, crc32c: int | None) -> bool:
    constant = ending.endswith(CONSTANT_FOOTER)
    if crc32c is None and constant:
        return True
    crc = extend(memoryview(buffer)[HEADER_SIZE:-FOOTER_SIZE])
    return (crc32c is None or crc == crc32c) and (constant or ending.endswith(footer(crc, "tfrecord")))


_latest_step = (0, b"")


def _moment(step: int) -> tuple[int, bytes]:
    """Return the step with its field, and remember it: mostly all tensors of a step are read together."""
    global _latest_step
    _latest_step = (step, step_field(step))
    return _latest_step


def _remember_layout(buffer: Buffer, parsed: Parsed, value: NDArray[Any]) -> None:
    """Remember the layout of a record, if it is exactly the one that we would have written."""
    if parsed.mode is None or parsed.mode_step is None or parsed.number in (STRING, BOOL):
        return
    start, size = parsed.start, parsed.size
    template = template_of(parsed.name, value.dtype, value.shape)
    step = step_field(parsed.step)
    metadata = metadata_field(parsed.mode, parsed.mode_step)
    opening = template.opening(metadata)
    front = b"\x09" + double(parsed.wall_time) + step + opening
    front = header(len(front) + size + len(metadata)) + front
    as_written = bytes(buffer[:start]) == front and buffer[start + size : -FOOTER_SIZE] == metadata
    if not as_written or template.size != size:
        return
    mode_step = str(parsed.mode_step).encode()
    before = metadata.index(mode_step + b"\x0a")
    is_large = size >= VIEW_FROM
    content_stop = start if is_large else start + size
    layout = RecordLayout(
        head=front[: HEADER_SIZE + 1],
        step_stop=STEP_START + len(step),
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
    remember(record_layouts, (parsed.name, len(buffer)), layout, len(buffer) - size)
