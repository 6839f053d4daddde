"""The protobuf wire format, as much of it as a run's files use.

Written out here because a tensor's bytes must not be copied on their way in or out, which no protobuf
runtime offers, and so that reading does not have to import one.
https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from smdebug.files.checksum import Buffer

VARINT: Final = 0
FIXED64: Final = 1
DELIMITED: Final = 2
FIXED32: Final = 5

_TWO_TO_THE_63: Final = 1 << 63
_TWO_TO_THE_64: Final = 1 << 64


class Malformed(ValueError):
    """The bytes are not such a message. Callers that know the file raise `DamagedFile` from it."""


def varint(number: int) -> bytes:
    """`number` in base 128, least significant digits first; negative ones as 64-bit two's complement."""
    if 0 <= number < 0x80:
        return bytes((number,))
    if number < 0:
        number += _TWO_TO_THE_64
    digits = bytearray()
    while number >= 0x80:
        digits.append(number & 0x7F | 0x80)
        number >>= 7
    digits.append(number)
    return bytes(digits)


def delimited(tag: bytes, content: bytes) -> bytes:
    """A field of that tag, holding text, bytes or a message."""
    return tag + varint(len(content)) + content


def signed(number: int) -> int:
    """An int64 field's varint as the number it means."""
    return number - _TWO_TO_THE_64 if number >= _TWO_TO_THE_63 else number


def text(buffer: Buffer, start: int, stop: int) -> str:
    """The UTF-8 text between two positions."""
    try:
        return str(buffer[start:stop], "utf-8")
    except UnicodeDecodeError as error:
        raise Malformed(f"there is no valid UTF-8 text at byte {start}") from error


def fields(buffer: Buffer, start: int, stop: int) -> Iterator[tuple[int, int, int, int]]:
    """The fields of the message between two positions: (number, wire type, value or start, stop)."""
    at = start
    while at < stop:
        key, at = _varint_at(buffer, at, stop)
        kind = key & 7
        if key < 8:
            raise Malformed(f"there is no field number 0 (byte {at - 1})")
        if kind == DELIMITED:
            length, at = _varint_at(buffer, at, stop)
            end = at + length
        elif kind == VARINT:
            value, at = _varint_at(buffer, at, stop)
            yield key >> 3, kind, value, at
            continue
        elif kind == FIXED64:
            end = at + 8
        elif kind == FIXED32:
            end = at + 4
        else:
            raise Malformed(f"there is no wire type {kind} (byte {at - 1})")
        if end > stop:
            raise Malformed(f"a field of {end - at} bytes at byte {at} reaches past its message")
        yield key >> 3, kind, at, end
        at = end


def _varint_at(buffer: Buffer, at: int, stop: int) -> tuple[int, int]:
    if at >= stop:
        raise Malformed(f"a message ends in the middle of a field (byte {at})")
    digit = buffer[at]
    if digit < 0x80:
        return digit, at + 1
    number = 0
    for shift in range(0, 70, 7):
        if at >= stop:
            raise Malformed(f"a message ends in the middle of a number (byte {at})")
        digit = buffer[at]
        at += 1
        number |= (digit & 0x7F) << shift
        if digit < 0x80:
            if number >= _TWO_TO_THE_64:
                break
            return number, at
    raise Malformed(f"a number before byte {at} has more than 64 bits")
