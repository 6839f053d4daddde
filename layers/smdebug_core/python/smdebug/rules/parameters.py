"""Parse a rule's parameters, which are text when they come from JSON or a command line.

    self.threshold = number("threshold", threshold, minimum=0)
    self.collection_names = strings("collection_names", collection_names)

Each function takes the name, for its error, and the value, which may already have its type.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any

from smdebug.config import parsing
from smdebug.config.patterns import compiled
from smdebug.exceptions import SMDebugValueError

_BOOLEANS = {"true": True, "false": False, "1": True, "0": False}


def number(name: str, value: Any, *, minimum: float | None = None, maximum: float | None = None) -> float:
    """Return a float: `number("threshold", "1e-7")`."""
    try:
        result = float(value)
    except (TypeError, ValueError):
        raise SMDebugValueError(f"{name} must be a number, not {value!r}") from None
    return _within(name, result, minimum, maximum)


def integer(name: str, value: Any, *, minimum: int | None = None) -> int:
    """Return an int; `"3"`, `3` and `3.0` are accepted, `3.5` is not."""
    try:
        result = float(value)
        if not result.is_integer():
            raise ValueError
        result = int(value) if isinstance(value, (int, str)) and _is_int(value) else int(result)
    except (TypeError, ValueError, OverflowError):
        raise SMDebugValueError(f"{name} must be a whole number, not {value!r}") from None
    return int(_within(name, result, minimum, None))


def boolean(name: str, value: Any) -> bool:
    """Return True or False; text is accepted in any case."""
    if value is True or value is False:
        return bool(value)
    known = _BOOLEANS.get(str(value).strip().lower())
    if known is None:
        raise SMDebugValueError(f"{name} must be True or False, not {value!r}")
    return known


def numbers(name: str, value: Any) -> list[float]:
    """Return a list of numbers, from a list, one number, or text: `"1, 2"`, `"[1, 2]"`, `"(1, 2)"`."""
    if isinstance(value, (int, float)):
        value = [value]
    if isinstance(value, str) and value.strip().startswith("["):
        value = value if (parsed := _json_list(value)) is None else parsed
    if not isinstance(value, (list, tuple)):
        value = strings(name, value.strip("() ") if isinstance(value, str) else value)
    return [number(name, item) for item in value]


def text(name: str, value: Any) -> str:
    """Return text that is not empty."""
    if not isinstance(value, str) or not value.strip():
        raise SMDebugValueError(f"{name} must be a text, not {value!r}")
    return value.strip()


def one_of(name: str, value: Any, choices: Sequence[str]) -> str:
    """Return one of the choices; any case is accepted."""
    found = str(value).strip().lower()
    if found not in choices:
        raise SMDebugValueError(f"{name} must be {' or '.join(choices)}, not {value!r}")
    return found


def is_given(value: Any) -> bool:
    """Return False for None, "" and "None", which all mean that no value was given."""
    return value is not None and not (isinstance(value, str) and value.strip() in ("", "None"))


def strings(name: str, value: Any) -> list[str]:
    """Return a list of strings, from a list, a JSON list (`'["a{1,2}", "b"]'`), or comma-separated text."""
    if value is None:
        return []
    if isinstance(value, str):
        if value.strip().startswith("[") and (parsed := _json_list(value)) is not None:
            value = parsed
        else:
            value = value.split(",")
    if not isinstance(value, (list, tuple, set, frozenset)) or not all(
        isinstance(item, str) for item in value
    ):
        raise SMDebugValueError(f"{name} must be a list of strings, not {value!r}")
    return [item.strip() for item in value if item.strip()]


def patterns(name: str, value: Any) -> list[str]:
    """Return a list of valid, safe regular expressions, from a list or comma-separated text.

    A comma within brackets or braces, as in `a{1,2}`, belongs to the expression.
    """
    found = [item.strip() for item in parsing.patterns(value, name) if item.strip()]
    for pattern in found:
        try:
            compiled(pattern)
        except SMDebugValueError as error:
            has_comma = isinstance(value, str) and "," in value
            hint = " If a pattern contains a comma, write the list as JSON." if has_comma else ""
            raise SMDebugValueError(f"{name}: {error}{hint}") from None
    return found


def _json_list(text: str) -> list[Any] | None:
    """Return the list, or None where `[` begins a regular expression such as `[Ll]oss`."""
    try:
        parsed = json.loads(text)
    except ValueError:
        return None
    return parsed if isinstance(parsed, list) else None


def _is_int(value: Any) -> bool:
    return isinstance(value, int) or re.fullmatch(r"\s*[-+]?\d+\s*", value) is not None


def _within(name: str, value: float, minimum: float | None, maximum: float | None) -> float:
    if math.isnan(value):
        raise SMDebugValueError(f"{name} must be a number, not NaN")
    if minimum is not None and value < minimum:
        raise SMDebugValueError(f"{name} must be at least {minimum:g}, not {value:g}")
    if maximum is not None and value > maximum:
        raise SMDebugValueError(f"{name} must be at most {maximum:g}, not {value:g}")
    return value
