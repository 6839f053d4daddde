"""Parsing the similar index files of one run quickly.

From step to step a worker's files differ in the mode step, the event file's name and the checksums. So what
follows `tensor_payload` is compared, checksums aside, with the files before; where it is the same,
only the head is parsed. That halves the time of opening a long run.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from smdebug.exceptions import IndexReaderException
from smdebug.files.file_checksum import ChangedFile, without_checksum
from smdebug.files.index import IndexFile, parse_index, parse_meta

_PAYLOAD: Final = b', "tensor_payload": ['
# A JSON string contains no unescaped quote, so this is always a key and its number.
_CHECKSUM: Final = re.compile(rb'"crc32c": (0|[1-9][0-9]{0,9})')
_LARGEST_CRC: Final = (1 << 32) - 1
_SOME_HEAD: Final = b'{"meta": {"mode": "GLOBAL", "mode_step": 0, "event_file_name": "e"}'
_REMEMBERED: Final = 8


class _Tail(NamedTuple):
    """What follows the head of an index file, and its parsed content."""

    pieces: list[bytes]
    says: IndexFile


class AlikeIndexFiles:
    """`parse_index` with a cache: the same results, faster. Safe to share between threads."""

    def __init__(self) -> None:
        self._tails: tuple[_Tail, ...] = ()
        self._in_vain = 0

    def parse(self, data: bytes, *, file: str) -> IndexFile:
        """Return the checked content of an index file; raise `IndexReaderException` like `parse_index`."""
        try:
            data = without_checksum(data)
        except ChangedFile:
            return parse_index(data, file=file)  # its error says what is wrong
        at = data.find(_PAYLOAD)
        if at < 0 or self._in_vain > 4 * _REMEMBERED:
            return parse_index(data, file=file)
        parts = _CHECKSUM.split(data[at:])
        pieces, checksums = parts[::2], parts[1::2]
        for tail in self._tails:
            if tail.pieces == pieces:
                self._in_vain = 0
                return _with_head(data[:at], tail.says, checksums, file) or parse_index(data, file=file)
        says = parse_index(data, file=file)
        self._in_vain += 1
        if _is_independent(data[at:], says, checksums):
            self._tails = (_Tail(pieces, says), *self._tails[: _REMEMBERED - 1])
        return says


def _with_head(head: bytes, says: IndexFile, checksums: list[bytes], file: str) -> IndexFile | None:
    """Return the file with that head and a known tail; None if it has to be parsed."""
    crcs = tuple(map(int, checksums)) or None
    if crcs and max(crcs) > _LARGEST_CRC:
        return None
    meta = parse_meta(head + b"}", file=file)
    if meta is None:
        return None
    # As `_replace`, which takes as long as parsing the head.
    return IndexFile(
        meta,
        says.names,
        says.starts,
        says.lengths,
        crcs,
        says.dtypes,
        says.shapes,
        says.shape_records,
        says.beside,
    )


def _is_independent(tail: bytes, says: IndexFile, checksums: list[bytes]) -> bool:
    """Whether the tail means the same after any head, with a checksum for each tensor or for none."""
    if (tuple(map(int, checksums)) or None) != says.crcs:
        return False  # some have none, or a match belongs to no tensor
    try:
        alone = parse_index(_SOME_HEAD + tail, file="e")
    except IndexReaderException:
        return False
    return alone.meta.event_file_name == "e" and alone._replace(meta=says.meta) == says
