"""The arguments of a training, as a fact of its run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from smdebug.secrets.data import without_secret

MAX_ARGUMENTS = 300
MAX_LETTERS = 200
_LONGEST_CHECKED = 20 * MAX_LETTERS


def plain_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that are numbers, texts or None; secrets are left out."""
    plain: dict[str, Any] = {}
    for name, value in arguments.items():
        if not isinstance(value, bool | int | float | str | None) or len(plain) >= MAX_ARGUMENTS:
            continue
        value = without_secret(str(name), value[:_LONGEST_CHECKED] if isinstance(value, str) else value)
        plain[str(name)] = value[:MAX_LETTERS] if isinstance(value, str) else value
    return plain
