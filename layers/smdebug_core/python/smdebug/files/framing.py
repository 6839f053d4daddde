"""Records back to back, as in TFRecord files.

    uint64 length | uint32 masked crc32c of the length | payload | uint32 footer

The footer is the constant of the old library, or the payload's true checksum.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from smdebug.exceptions import SMDebugValueError
from smdebug.files.checksum import CONSTANT_FOOTER, Buffer, extend, masked
from smdebug.files.wire import Malformed

Checksum = Literal["constant", "tfrecord"]

HEADER_SIZE: Final = 12
FOOTER_SIZE: Final = 4
FRAME_SIZE: Final = HEADER_SIZE + FOOTER_SIZE

_uint64 = struct.Struct("<Q").pack
_uint32 = struct.Struct("<I").pack
_read_header = struct.Struct("<QI").unpack_from


class EncodedRecord(NamedTuple):
    """A record as the pieces to write in order, some of them the caller's own memory."""

    pieces: tuple[Buffer, ...]
    length: int
    crc32c: int


@lru_cache(maxsize=4096)
def header(length: int) -> bytes:
    """Return the header of a payload of that length."""
    word = _uint64(length)
    return word + _uint32(masked(extend(word)))


def footer(crc: int, checksum: Checksum) -> bytes:
    """Return the footer of a payload with that checksum."""
    if checksum == "constant":
        return CONSTANT_FOOTER
    if checksum == "tfrecord":
        return _uint32(masked(crc))
    raise SMDebugValueError(f'checksum must be "constant" or "tfrecord", not {checksum!r}')


def frame(payload: bytes, checksum: Checksum) -> EncodedRecord:
    """Return the record of a payload that is in one piece."""
    crc = extend(payload)
    record = header(len(payload)) + payload + footer(crc, checksum)
    return EncodedRecord((record,), len(record), crc)


def payload_end(buffer: Buffer, start: int = 0, *, trust_header: bool = False) -> int:
    """Return where the payload of the record at `start` ends; raise `Malformed` if it is cut off."""
    available = len(buffer) - start
    if available < FRAME_SIZE:
        raise Malformed(f"the last {available} bytes are too few for a record: the file is cut off")
    length, crc = _read_header(buffer, start)
    if not trust_header and crc != masked(extend(bytes(buffer[start : start + 8]))):
        raise Malformed(f"the length at byte {start} does not match its checksum")
    if length > available - FRAME_SIZE:
        raise Malformed(
            f"the record at byte {start} says it has {length} bytes of content, and only "
            f"{available - FRAME_SIZE} are there"
        )
    return start + HEADER_SIZE + int(length)


def check_footer(buffer: Buffer, stop: int, crc: int) -> None:
    """Raise `Malformed` unless a footer follows the payload that ends at `stop` and has checksum `crc`."""
    found = bytes(buffer[stop : stop + FOOTER_SIZE])
    if found != CONSTANT_FOOTER and found != _uint32(masked(crc)):
        raise Malformed(f"the four bytes after the content (byte {stop}) are not a footer")
