"""CRC32C, the checksum of TFRecord files and of our index entries."""

from __future__ import annotations

import struct

import crc32c as _crc32c

Buffer = bytes | bytearray | memoryview

_MASK_DELTA = 0xA282EAD8

extend = _crc32c.crc32c  # extend(piece, crc so far): the loops and hot paths call it directly


def crc32c(*pieces: Buffer) -> int:
    """The CRC32C of the pieces, one behind the other."""
    crc = 0
    for piece in pieces:
        crc = extend(piece, crc)
    return crc


def masked(crc: int) -> int:
    """`crc` as TFRecord files store it, so that a checksum of checksums stays meaningful."""
    return (((crc >> 15) | (crc << 17)) + _MASK_DELTA) & 0xFFFFFFFF


# The old library closes every record of an event file with the checksum of this text, and its reader
# insists on it. It says nothing about the payload: that is what the index entry's crc32c is for.
CHECKSUM_MAGIC_BYTES = b"0x12345678"
CONSTANT_FOOTER = struct.pack("<I", masked(crc32c(CHECKSUM_MAGIC_BYTES)))
