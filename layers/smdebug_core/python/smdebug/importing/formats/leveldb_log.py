"""The log format of LevelDB, as W&B writes it: blocks of 32 KiB with the pieces of records.

https://github.com/google/leveldb/blob/main/doc/log_format.md
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

from smdebug.files.checksum import crc32c, masked
from smdebug.importing.records import Details

_BLOCK = 32 * 1024
_MAGIC = b":W&B"
_HEADER = struct.Struct("<IHB")
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4
_MAX_RECORD = 256 << 20
CUT_OFF = "the end of the file, which is cut off"
DAMAGED_RECORDS = "records that are damaged"


class NotALog(ValueError):
    """The file does not begin as such a log."""


def records_in(path: Path, details: Details) -> Iterator[bytes]:
    """Yield the records of the file; note those that are damaged, and an end that is cut off."""
    with path.open("rb") as file:
        block = file.read(_BLOCK)
        if len(block) < _HEADER.size or not block.startswith(_MAGIC):
            raise NotALog("it does not begin with :W&B")
        at = _HEADER.size
        gathered: list[bytes] | None = None
        while block:
            for kind, content in _pieces(block, at, details):
                if kind == _FULL:
                    if gathered is not None:
                        details.leave_out(DAMAGED_RECORDS)
                    gathered = None
                    yield content
                elif kind == _FIRST:
                    gathered = [content]
                elif gathered is None or sum(map(len, gathered)) > _MAX_RECORD:
                    gathered = None
                    if kind == _LAST:
                        details.leave_out(DAMAGED_RECORDS)
                else:
                    gathered.append(content)
                    if kind == _LAST:
                        yield b"".join(gathered)
                        gathered = None
            block, at = file.read(_BLOCK), 0
        if gathered is not None:
            details.leave_out(CUT_OFF)


def _pieces(block: bytes, at: int, details: Details) -> Iterator[tuple[int, bytes]]:
    """Yield the type and the content of each piece in a block. After a damaged one, the block is left."""
    while len(block) - at >= _HEADER.size:
        checksum, length, kind = _HEADER.unpack_from(block, at)
        if not kind:  # zeros fill a block, or a file that was allocated and not written
            return
        content = block[at + _HEADER.size : at + _HEADER.size + length]
        if len(content) < length:
            details.leave_out(CUT_OFF if len(block) < _BLOCK else DAMAGED_RECORDS)
            return
        checked = bytes((kind,)) + content
        # W&B computes another checksum than LevelDB does.
        if checksum not in (zlib.crc32(checked), masked(crc32c(checked))) or kind > _LAST:
            details.leave_out(DAMAGED_RECORDS)
            return
        yield kind, content
        at += _HEADER.size + length
    if 0 < len(block) - at < _HEADER.size and len(block) < _BLOCK and any(block[at:]):
        details.leave_out(CUT_OFF)
