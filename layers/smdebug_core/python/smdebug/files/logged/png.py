"""PNG images of 8 bits, written and read with zlib alone.

Written are gray, gray with alpha, RGB and RGBA, each row as differences to the pixel on its left. Read are
images of these forms that this module has written.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smdebug.exceptions import DamagedFile

SIGNATURE = b"\x89PNG\r\n\x1a\n"
MOST_PIXELS = 16 << 20
_COLORS = {1: 0, 2: 4, 3: 2, 4: 6}
_CHANNELS = {color: channels for channels, color in _COLORS.items()}
_LEFT = 1  # the filter of a row: the difference to the pixel on the left
_HEADER = struct.Struct(">IIBBBBB")

Pixels = NDArray[np.uint8]


def encode_png(pixels: Pixels) -> bytes:
    """Return an image of height, width and 1 to 4 channels as a file."""
    height, width, channels = pixels.shape
    rows = np.empty((height, 1 + width * channels), np.uint8)
    rows[:, 0] = _LEFT
    shifted = rows[:, 1:].reshape(height, width, channels)
    shifted[:, 0] = pixels[:, 0]
    np.subtract(pixels[:, 1:], pixels[:, :-1], out=shifted[:, 1:])
    header = _HEADER.pack(width, height, 8, _COLORS[channels], 0, 0, 0)
    pieces = [(b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 6)), (b"IEND", b"")]
    return SIGNATURE + b"".join(_chunk(kind, data) for kind, data in pieces)


def decode_png(data: bytes, place: str) -> Pixels:
    """Return the pixels: height, width, channels; `DamagedFile` for other forms than those written here."""
    try:
        return _decoded(data)
    except (ValueError, struct.error, zlib.error, KeyError) as error:
        raise DamagedFile(place, f"it is no image that can be read: {error}") from error


def _decoded(data: bytes) -> Pixels:
    if not data.startswith(SIGNATURE):
        raise ValueError("it does not begin as a PNG file")
    packed = b""
    header: tuple[Any, ...] = ()
    at = len(SIGNATURE)
    while at < len(data):
        (length,) = struct.unpack_from(">I", data, at)
        kind, content = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        (checksum,) = struct.unpack_from(">I", data, at + 8 + length)
        if zlib.crc32(kind + content) != checksum:
            raise ValueError("a checksum is wrong")
        header = _HEADER.unpack(content) if kind == b"IHDR" else header
        packed += content if kind == b"IDAT" else b""
        at += 12 + length
    if not header:
        raise ValueError("it has no header")
    width, height, depth, color, *rest = header
    channels = _CHANNELS[color]
    if depth != 8 or any(rest) or not 0 < width * height <= MOST_PIXELS:
        raise ValueError("its form is not one that is written here")
    expected = height * (1 + width * channels)
    unpacked = zlib.decompressobj().decompress(packed, expected + 1)
    if len(unpacked) != expected:
        raise ValueError("it has another number of pixels than its header says")
    rows = np.frombuffer(unpacked, np.uint8).reshape(height, -1)
    if (rows[:, 0] != _LEFT).any():
        raise ValueError("its rows have a form that is not written here")
    differences = rows[:, 1:].reshape(height, width, channels)
    return np.cumsum(differences, axis=1, dtype=np.uint8)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
