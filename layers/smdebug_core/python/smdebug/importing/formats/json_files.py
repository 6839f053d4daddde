"""JSON that others wrote: of any size, shape and encoding."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from smdebug.exceptions import DamagedFile

MAX_BYTES = 512 << 20


def parse_json(text: str | bytes) -> Any:
    """Return the JSON value; raise ValueError for anything that is none, however deep."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def read_json(path: Path) -> Any:
    """Return the content of the file; `DamagedFile` if it is not JSON."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise DamagedFile(str(path), f"it has more than {MAX_BYTES >> 20} MB")
        return parse_json(path.read_bytes())
    except (ValueError, OSError) as error:
        raise DamagedFile(str(path), f"its JSON cannot be read: {error}") from error
