"""The checksum that an index file or a collections file carries of itself.

    {"meta": {"mode": "TRAIN", …, "file_crc32c": 3735928559}, "tensor_payload": […]}

It is the last key of the file's metadata, and covers the file without this key. So a bit that flips in a
name of a run, a mode step or a number of workers is damage, and not another attempt, step or worker. Files of
the old library have none.
"""

from __future__ import annotations

import re
from typing import Final

from smdebug.files.checksum import crc32c

CHECKSUM_KEY: Final = "file_crc32c"
# A JSON string contains no unescaped quote, so this is always a key and its number.
_KEY: Final = re.compile(rb', "file_crc32c": *([0-9]{1,10}) *(?=\})')


class ChangedFile(ValueError):
    """The file has changed since it was written: restore it."""


def with_checksum(head: bytes, tail: bytes) -> bytes:
    """Return the file `head + tail`, with its checksum between them: `head` ends inside of the metadata."""
    return b'%b, "file_crc32c": %d%b' % (head, crc32c(head, tail), tail)


def without_checksum(data: bytes) -> bytes:
    """Return the file without its checksum, if it has any; raise `ChangedFile` if the checksum is wrong."""
    key = _KEY.search(data)
    if key is None:
        return data
    rest = data[: key.start()] + data[key.end() :]
    expected, actual = int(key[1]), crc32c(rest)
    if actual != expected:
        raise ChangedFile(
            f"it has changed since it was written: its checksum is {actual:#010x}, "
            f"and it says {expected:#010x}"
        )
    return rest
