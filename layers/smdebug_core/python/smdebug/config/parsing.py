"""Values as people write them in JSON, where SageMaker's API can carry nothing but strings."""

from __future__ import annotations

import json
import operator
from collections.abc import Iterable, Mapping
from typing import Any

from smdebug.exceptions import SMDebugValueError

_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0", ""})


def whole_number(value: Any, what: str) -> int:
    """`3`, `"3"` or `3.0` as 3; anything that is not a whole number is refused, by name."""
    if not isinstance(value, bool):
        try:
            if isinstance(value, str):
                return int(value.strip())
            if isinstance(value, float) and value.is_integer():
                return int(value)
            return operator.index(value)
        except (ValueError, TypeError):
            pass
    raise SMDebugValueError(f"{what} must be a whole number, not {value!r}")


def whole_numbers(value: object, what: str) -> list[int]:
    """A list of whole numbers, however it is written: `[1, 2]`, `"1,2"`, `"[1, 2]"`, `""`, None."""
    if value is None:
        return []
    if isinstance(value, str):
        listed = _json_list(value)
        value = [part for part in split(value) if part] if listed is None else listed
    if isinstance(value, Mapping | bytes) or not isinstance(value, Iterable):
        raise SMDebugValueError(f"{what} must be a list of whole numbers, not {value!r}")
    return [whole_number(item, f"each of {what}") for item in value]


def truth(value: object, what: str) -> bool:
    """`True`, `"True"`, `"true"`, `1` as True, and their opposites; anything else is refused."""
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if isinstance(value, str | int) and word in _TRUE | _FALSE:
        return word in _TRUE
    raise SMDebugValueError(f"{what} must be True or False, not {value!r}")


def patterns(value: object, what: str) -> list[str]:
    r"""Regexes from a list, a JSON list or a comma-separated string.

    A comma that belongs to a regex is not a separator: one inside brackets or braces (`a{1,2}`,
    `[a,b]`, `(a,b)`) or after a backslash stays.
    """
    if value is None:
        return []
    if isinstance(value, str):
        listed = _json_list(value)
        if listed is not None and all(isinstance(item, str) for item in listed):
            return listed  # and `[1]`, a list of something else, is a regex
        return [part for part in _split_outside_brackets(value) if part]
    if isinstance(value, Mapping | bytes) or not isinstance(value, Iterable):
        raise SMDebugValueError(f"{what} must be one regex or a list of them, not {value!r}")
    found = list(value)
    for pattern in found:
        if not isinstance(pattern, str):
            raise SMDebugValueError(f"each of {what} must be a string, not {pattern!r}")
    return found


def words(value: object, what: str) -> list[str]:
    """Words from a list, a JSON list or a comma-separated string."""
    if value is None:
        return []
    if isinstance(value, str):
        listed = _json_list(value)
        value = split(value) if listed is None else listed
    if isinstance(value, Mapping | bytes) or not isinstance(value, Iterable):
        raise SMDebugValueError(f"{what} must be a list of words, not {value!r}")
    found = list(value)
    for word in found:
        if not isinstance(word, str):
            raise SMDebugValueError(f"each of {what} must be a string, not {word!r}")
    return [word.strip() for word in found if word.strip()]


def split(comma_separated_string: str) -> list[str]:
    """The parts between commas, stripped: `split("a, b") == ["a", "b"]`, `split("") == [""]`."""
    return [part.strip() for part in comma_separated_string.split(",")]


def json_object(text: str | bytes, what: str) -> dict[str, Any]:
    """The JSON object in `text`; anything else is refused, by name."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SMDebugValueError(f"{what} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise SMDebugValueError(f"{what} must hold a JSON object, not {type(value).__name__}")
    return value


def _json_list(text: str) -> list[Any] | None:
    """The list in `text` when it is one in JSON. `[a-z]+` is not: it stays a regex."""
    if not text.lstrip().startswith("["):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, list) else None


def _split_outside_brackets(text: str) -> list[str]:
    parts, start, at = [], 0, 0
    open_brackets: list[str] = []
    while at < len(text):
        letter = text[at]
        if letter == "\\":
            at += 1
        elif open_brackets and letter == open_brackets[-1]:
            open_brackets.pop()
        elif open_brackets[-1:] != ["]"] and letter in _CLOSES:
            open_brackets.append(_CLOSES[letter])
        elif letter == "," and not open_brackets:
            parts.append(text[start:at].strip())
            start = at + 1
        at += 1
    if open_brackets:  # not balanced, so the brackets mean nothing
        return split(text)
    return [*parts, text[start:].strip()]


_CLOSES = {"(": ")", "[": "]", "{": "}"}
