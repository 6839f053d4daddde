"""The arguments of a training, as a fact of its run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

MAX_ARGUMENTS = 300
MAX_LETTERS = 200
_SECRET = re.compile(r"token|secret|password|passwd|api_?key|credential", re.IGNORECASE)
HIDDEN = "***"


def plain_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that are numbers, texts or None, with those hidden whose names mean secrets."""
    plain: dict[str, Any] = {}
    for name, value in arguments.items():
        if not isinstance(value, bool | int | float | str | None) or len(plain) >= MAX_ARGUMENTS:
            continue
        is_secret = isinstance(value, str) and value and _SECRET.search(str(name))
        plain[str(name)] = HIDDEN if is_secret else value
        if isinstance(value, str) and not is_secret:
            plain[str(name)] = value[:MAX_LETTERS]
    return plain
