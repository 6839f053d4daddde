"""For code written against smdebug: lists, dictionaries and patterns."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

from smdebug.config.patterns import matches_any
from smdebug.exceptions import SMDebugValueError

__all__ = [
    "flatten",
    "index",
    "load_json_as_dict",
    "match_inc",
    "merge_two_dicts",
    "split",
    "step_in_range",
]


def match_inc(tname: str, include: Sequence[str]) -> bool:
    """Return whether any pattern occurs in the name; an empty list matches nothing."""
    return matches_any(tname, include)


def flatten(lis: list[Any]) -> list[Any]:
    """Return the members of nested lists in order; tuples stay whole."""
    flat: list[Any] = []
    for item in lis:
        flat.extend(flatten(item) if isinstance(item, list) else [item])
    return flat


def split(comma_separated_string: str) -> list[str]:
    """Split at commas and strip each part."""
    return [part.strip() for part in comma_separated_string.split(",")]


def merge_two_dicts(x: Mapping[Any, Any], y: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return a new dictionary of both; `y` wins."""
    return {**x, **y}


def index(sorted_list: Sequence[Any], elem: Any) -> int:
    """Return the place of `elem` in a sorted list."""
    i = bisect_left(sorted_list, elem)
    if i == len(sorted_list) or sorted_list[i] != elem:
        raise SMDebugValueError(f"{elem} is not in the list")
    return i


def step_in_range(range_steps: tuple[int | None, int | None], step: int) -> bool:
    """Return whether begin <= step < end; None is an open end."""
    begin, end = range_steps
    return (begin is None or step >= int(begin)) and (end is None or step < int(end))


def load_json_as_dict(s: str | dict[str, Any] | None) -> dict[str, Any] | None:
    """Return a dictionary as it is, or parsed from JSON; None for None and "None"."""
    if s is None or s == "None":
        return None
    if isinstance(s, dict):
        return s
    if isinstance(s, str):
        try:
            return json.loads(s)  # type: ignore[no-any-return]
        except ValueError as error:
            raise SMDebugValueError(f"This is not JSON ({error}): {s[:200]}") from error
    raise SMDebugValueError(f"Expected a dictionary or its JSON, not {type(s).__name__}")
