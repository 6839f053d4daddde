"""Parameters of a rule, which arrive as text when they come from JSON or a command line.

    self.threshold = number("threshold", threshold, minimum=0)
    self.collection_names = strings("collection_names", collection_names)

Each takes the name, for the error, and the value, as text or as it is.
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


def number(
    name: str, value: Any, *, minimum: float | None = None, maximum: float | None = None
) -> float:
    """A float: `number("threshold", "1e-7")`."""
    try:
        result = float(value)
    except (TypeError, ValueError):
        raise SMDebugValueError(f"{name} has to be a number, not {value!r}") from None
    return _within(name, result, minimum, maximum)


def integer(name: str, value: Any, *, minimum: int | None = None) -> int:
    """An int; `"3"`, `3` and `3.0` are one, `3.5` is not."""
    try:
        result = float(value)
        if not result.is_integer():
            raise ValueError
        result = int(value) if isinstance(value, (int, str)) and _is_int(value) else int(result)
    except (TypeError, ValueError, OverflowError):
        raise SMDebugValueError(f"{name} has to be a whole number, not {value!r}") from None
    return int(_within(name, result, minimum, None))


def boolean(name: str, value: Any) -> bool:
    """True or False, also as text in any case."""
    if value is True or value is False:
        return bool(value)
    known = _BOOLEANS.get(str(value).strip().lower())
    if known is None:
        raise SMDebugValueError(f"{name} has to be True or False, not {value!r}")
    return known


def numbers(name: str, value: Any) -> list[float]:
    """A list of numbers: a list, one number, or text: `"1, 2"`, `"[1, 2]"`, `"(1, 2)"`."""
    if isinstance(value, (int, float)):
        value = [value]
    if isinstance(value, str) and value.strip().startswith("["):
        value = value if (parsed := _json_list(value)) is None else parsed
    if not isinstance(value, (list, tuple)):
        value = strings(name, value.strip("() ") if isinstance(value, str) else value)
    return [number(name, one) for one in value]


def text(name: str, value: Any) -> str:
    """A text that is not empty."""
    if not isinstance(value, str) or not value.strip():
        raise SMDebugValueError(f"{name} has to be a text, not {value!r}")
    return value.strip()


def one_of(name: str, value: Any, choices: Sequence[str]) -> str:
    """One of these words, in any case."""
    found = str(value).strip().lower()
    if found not in choices:
        raise SMDebugValueError(f"{name} has to be {' or '.join(choices)}, not {value!r}")
    return found


def is_given(value: Any) -> bool:
    """Is there a value, or does None, "" or "None" stand for none?"""
    return value is not None and not (isinstance(value, str) and value.strip() in ("", "None"))


def strings(name: str, value: Any) -> list[str]:
    """A list of strings: a list, a JSON list (`'["a{1,2}", "b"]'`), or text with commas between them."""
    if value is None:
        return []
    if isinstance(value, str):
        if value.strip().startswith("[") and (parsed := _json_list(value)) is not None:
            value = parsed
        else:
            value = value.split(",")
    if not isinstance(value, (list, tuple, set, frozenset)) or not all(
        isinstance(one, str) for one in value
    ):
        raise SMDebugValueError(f"{name} has to be a list of strings, not {value!r}")
    return [one.strip() for one in value if one.strip()]


def patterns(name: str, value: Any) -> list[str]:
    """A list of regular expressions, each of which is valid and ends; as text, with commas between them.

    A comma within brackets or braces, as in `a{1,2}`, belongs to the expression.
    """
    found = [one.strip() for one in parsing.patterns(value, name) if one.strip()]
    for pattern in found:
        try:
            compiled(pattern)
        except SMDebugValueError as error:
            has_comma = isinstance(value, str) and "," in value
            hint = " Where a pattern has a comma, write the list as JSON." if has_comma else ""
            raise SMDebugValueError(f"{name}: {error}{hint}") from None
    return found


def _json_list(text: str) -> list[Any] | None:
    """The list, or None where `[` begins a regular expression such as `[Ll]oss`."""
    try:
        parsed = json.loads(text)
    except ValueError:
        return None
    return parsed if isinstance(parsed, list) else None


def _is_int(value: Any) -> bool:
    return isinstance(value, int) or re.fullmatch(r"\s*[-+]?\d+\s*", value) is not None


def _within(name: str, value: float, minimum: float | None, maximum: float | None) -> float:
    if math.isnan(value):
        raise SMDebugValueError(f"{name} has to be a number, not NaN")
    if minimum is not None and value < minimum:
        raise SMDebugValueError(f"{name} has to be at least {minimum:g}, not {value:g}")
    if maximum is not None and value > maximum:
        raise SMDebugValueError(f"{name} has to be at most {maximum:g}, not {value:g}")
    return value
