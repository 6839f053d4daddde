"""Words for the messages about a rules file: kinds of JSON, shortened values, and likely spellings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from smdebug.plain_text import nearest_of

_KINDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (Mapping, "an object"),
    (str, "a string"),
    (bool, "true or false"),
    ((list, tuple), "a list"),
    ((int, float), "a number"),
)


def kind_of(value: Any) -> str:
    """The JSON type of `value`, with its article."""
    if value is None:
        return "null"
    return next((word for kind, word in _KINDS if isinstance(value, kind)), type(value).__name__)


def shortened(text: str, longest: int = 80) -> str:
    """Untrusted text, cut to fit into a sentence, on one line."""
    shown = "".join(letter if letter.isprintable() else "?" for letter in text[: longest + 1])
    return shown if len(shown) <= longest else f"{shown[: longest - 1]}…"


def suggestion(given: Iterable[Any], known: Iterable[str]) -> str:
    """A sentence that suggests the known name nearest to one of those given; empty if none is near."""
    nearest = next(filter(None, (nearest_of(str(name), known) for name in given)), None)
    return f" Did you mean {nearest!r}?" if nearest else ""
