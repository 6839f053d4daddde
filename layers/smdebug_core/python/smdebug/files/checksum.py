"""CRC32C, the checksum of TFRecord files and of our index entries."""

from __future__ import annotations

import struct
from importlib import util
from importlib.machinery import PathFinder
from typing import Protocol

Buffer = bytes | bytearray | memoryview

_MASK_DELTA = 0xA282EAD8


class _Extend(Protocol):
    def __call__(self, data: Buffer, value: int = 0, /) -> int: ...


def _load() -> _Extend:
    """The function of the `crc32c` package, without the package.

    Its `__init__` asks `importlib.metadata` for a version number, which takes half as long as importing
    numpy, and every cold start would pay for it.
    """
    package = util.find_spec("crc32c")
    if package is not None and package.submodule_search_locations:
        spec = PathFinder.find_spec("crc32c._crc32c", package.submodule_search_locations)
        if spec is not None and spec.loader is not None:
            module = util.module_from_spec(spec)
            spec.loader.exec_module(module)
            extend: _Extend = module.crc32c
            return extend
    import crc32c  # laid out differently, or missing: then this raises the error

    return crc32c.crc32c


extend = _load()  # extend(piece, crc so far): loops and hot paths call it directly


def crc32c(*pieces: Buffer) -> int:
    """Return the CRC32C of the concatenated pieces."""
    crc = 0
    for piece in pieces:
        crc = extend(piece, crc)
    return crc


def masked(crc: int) -> int:
    """`crc` as TFRecord files store it, so that a checksum of checksums stays meaningful."""
    return (((crc >> 15) | (crc << 17)) + _MASK_DELTA) & 0xFFFFFFFF


# The old library ends every record of an event file with the checksum of this text, and its reader requires
# it. It does not depend on the payload: the index entry's crc32c does.
CHECKSUM_MAGIC_BYTES = b"0x12345678"
CONSTANT_FOOTER = struct.pack("<I", masked(crc32c(CHECKSUM_MAGIC_BYTES)))
