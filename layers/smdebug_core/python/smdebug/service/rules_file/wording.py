"""Words for the messages about a rules file: kinds of JSON, shortened values, and likely spellings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

_LONGEST_NAME = 256

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


def nearest_of(given: str, known: Iterable[str]) -> str | None:
    """The known name that is most like `given`, or None if none is similar."""
    from difflib import get_close_matches

    by_plain = {_plain(name): name for name in known}
    close = get_close_matches(_plain(given[:_LONGEST_NAME]), list(by_plain), n=1, cutoff=0.6)
    return by_plain[close[0]] if close else None


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")
