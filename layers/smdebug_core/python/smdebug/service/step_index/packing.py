"""Plain data as the bytes of an item's body."""

from __future__ import annotations

import json
import zlib
from typing import Any

from smdebug.exceptions import SMDebugRuntimeError

_LARGEST_BODY = 64 << 20


class DamagedRecord(SMDebugRuntimeError):
    """An item of the step index is damaged, or was not written by this application."""


def packed(value: Any) -> bytes:
    """Plain data in few bytes."""
    return zlib.compress(json.dumps(value, separators=(",", ":"), default=list).encode(), 9)


def unpacked(data: bytes) -> Any:
    """The inverse of `packed`."""
    opened = zlib.decompressobj()
    try:
        text = opened.decompress(bytes(data), _LARGEST_BODY)
        if opened.unconsumed_tail:
            raise DamagedRecord(f"A record of the step index is larger than {_LARGEST_BODY} bytes")
        return json.loads(text)
    except (zlib.error, ValueError) as error:
        raise DamagedRecord(f"A record of the step index is damaged: {error}") from error
