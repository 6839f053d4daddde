"""The JSON object in a file in which a run says something of itself."""

from __future__ import annotations

import json
from typing import Any

from smdebug.exceptions import DamagedFile


def object_in(data: bytes, place: str, most: int) -> dict[str, Any]:
    """Return the object; `DamagedFile` if there is none, or if the file has more than `most` bytes."""
    if len(data) > most:
        raise DamagedFile(place, f"it has {len(data)} bytes, and more than {most} are not read")
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise DamagedFile(place, f"its JSON cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise DamagedFile(place, f"its JSON is not an object but {type(content).__name__}")
    return content
