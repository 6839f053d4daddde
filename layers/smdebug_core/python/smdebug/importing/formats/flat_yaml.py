"""`name: value` lines of YAML, such as `hparams.yaml` and `meta.yaml`, without a parser of YAML."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from smdebug.importing.records import Details

_MAX_BYTES = 1 << 20
_LINE = re.compile(r"^(?P<name>[^\s#:][^:]*):(?:\s+(?P<value>.*))?$")
_TRUTHS = {"true": True, "false": False, "null": None, "~": None, "": None}


def read_flat_yaml(path: Path, details: Details) -> dict[str, Any]:
    """Return the values of the outermost level that are written on one line; note the others."""
    try:
        with path.open("rb") as file:
            lines = file.read(_MAX_BYTES).decode(errors="replace").splitlines()
    except OSError as error:
        details.leave_out(f"{path.name}: {error.strerror}")
        return {}
    values: dict[str, Any] = {}
    for line in lines:
        match = _LINE.match(line)
        if match is not None:
            values[match["name"].strip().strip("'\"")] = _value(match["value"] or "")
        elif line.strip() and not line.lstrip().startswith(("#", "---", "...")):
            details.leave_out(f"lines of {path.name} that are not of the form name: value")
    return values


def _value(text: str) -> Any:
    text = text.strip()
    if text.lower() in _TRUTHS:
        return _TRUTHS[text.lower()]
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        try:
            return float(text)  # 1e-4, which JSON's grammar allows, and YAML's does not
        except ValueError:
            return text
    return value
