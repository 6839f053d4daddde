"""Values from JSON, where SageMaker's API allows only strings."""

from __future__ import annotations

import json
import operator
from collections.abc import Iterable, Mapping
from typing import Any

from smdebug.exceptions import SMDebugValueError


class Default(str):
    """The default of a text option, which differs from the same text given by the user."""

    __slots__ = ()


_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0", ""})


def whole_number(value: Any, what: str) -> int:
    """Return 3 for `3`, `"3"` or `3.0`; raise an error that names `what` for any other value."""
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
    """Return a list of whole numbers, written as `[1, 2]`, `"1,2"`, `"[1, 2]"`, `""`, None."""
    if value is None:
        return []
    if isinstance(value, str):
        listed = _json_list(value)
        value = [part for part in split(value) if part] if listed is None else listed
    if isinstance(value, Mapping | bytes) or not isinstance(value, Iterable):
        raise SMDebugValueError(f"{what} must be a list of whole numbers, not {value!r}")
    each = f"each of {what}"
    return [item if type(item) is int else whole_number(item, each) for item in value]


def truth(value: object, what: str) -> bool:
    """Return True for `True`, `"True"`, `"true"` or `1`, False for their opposites; raise otherwise."""
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if isinstance(value, str | int) and word in _TRUE | _FALSE:
        return word in _TRUE
    raise SMDebugValueError(f"{what} must be True or False, not {value!r}")


def patterns(value: object, what: str) -> list[str]:
    r"""Return regexes from a list, a JSON list or a comma-separated string.

    A comma that belongs to a regex is not a separator: one inside brackets or braces (`a{1,2}`,
    `[a,b]`, `(a,b)`) or after a backslash stays.
    """
    if value is None:
        return []
    if isinstance(value, str):
        listed = _json_list(value)
        if listed is not None and all(isinstance(item, str) for item in listed):
            return listed  # any other list, such as `[1]`, is a regex
        return [part for part in _split_outside_brackets(value) if part]
    if isinstance(value, Mapping | bytes) or not isinstance(value, Iterable):
        raise SMDebugValueError(f"{what} must be one regex or a list of them, not {value!r}")
    found = list(value)
    for pattern in found:
        if not isinstance(pattern, str):
            raise SMDebugValueError(f"each of {what} must be a string, not {pattern!r}")
    return found


def words(value: object, what: str) -> list[str]:
    """Return words from a list, a JSON list or a comma-separated string."""
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
    """Return the parts between commas, stripped: `split("a, b") == ["a", "b"]`, `split("") == [""]`."""
    return [part.strip() for part in comma_separated_string.split(",")]


def json_object(text: str | bytes, what: str) -> dict[str, Any]:
    """Return the JSON object in `text`; raise an error that names `what` for anything else."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SMDebugValueError(f"{what} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise SMDebugValueError(f"{what} must hold a JSON object, not {type(value).__name__}")
    return value


def quoted_json(text: str) -> Any:
    """Return the value of JSON text, also if it is in a JSON string, or has a backslash before each quote.

    SageMaker's SDK writes lists in both ways. Raise `ValueError` if it is not JSON.
    """
    try:
        value = json.loads(text)
    except ValueError:
        value = json.loads(text.replace('\\"', '"'))
    return json.loads(value) if isinstance(value, str) else value


def _json_list(text: str) -> list[Any] | None:
    """Return the list in `text` if it is a JSON list, unlike the regex `[a-z]+`."""
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
