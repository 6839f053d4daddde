"""What is wrong with the content of a JSON file of a run, in words."""

from __future__ import annotations

from typing import Final

LARGEST_FILE: Final = 256 * 1024 * 1024
KINDS: Final = {dict: "an object", list: "a list", str: "a string", bool: "a boolean"}


class WrongContent(ValueError):
    """A problem, without the name of the file."""


def check_size(data: bytes) -> None:
    """Refuse a file that is too large to be parsed."""
    if len(data) > LARGEST_FILE:
        raise WrongContent(f"it has {len(data)} bytes, and more than {LARGEST_FILE} are not read")


def kind_of(value: object) -> str:
    """Return the kind of a JSON value, as a message names it."""
    return "missing or null" if value is None else KINDS.get(type(value), "a number")


def shown(value: object) -> str:
    """Return `value` as a message shows it, shortened if it is long."""
    if isinstance(value, (dict, list)):
        return kind_of(value)
    if isinstance(value, int) and abs(value) > 1 << 80:
        return "an enormous number"
    return "missing or null" if value is None else ascii(value)[:120]
