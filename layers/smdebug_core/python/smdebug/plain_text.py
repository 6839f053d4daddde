"""Names and other text from outside: made safe to show on a terminal, and compared with known names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

# Control characters (among them ESC, with which a text can rewrite a terminal), lone surrogates, and the
# characters that separate lines or change the direction of writing.
_UNSAFE: Final = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_UNSAFE_IN_JSON: Final = re.compile(_UNSAFE.pattern.replace("\x00-\x1f", ""))

_LONGEST_NAME = 256


def escaped(text: str, keep: str = "") -> str:
    """Return the text with control characters as Python writes them: ESC as `\\x1b`.

    Characters in `keep` stay as they are.
    """
    return _UNSAFE.sub(lambda found: _escape(found.group(), keep), text)


def escaped_in_json(text: str) -> str:
    """Return JSON text with the characters that JSON does not escape itself, but a terminal obeys."""
    return _UNSAFE_IN_JSON.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def nearest_of(given: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most like `given`, or None if none is similar."""
    from difflib import get_close_matches

    by_plain = {_plain(name): name for name in known}
    close = get_close_matches(_plain(given[:_LONGEST_NAME]), list(by_plain), n=1, cutoff=0.6)
    return by_plain[close[0]] if close else None


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """Return a sentence that suggests the known name nearest to `given`; empty if none is near."""
    nearest = nearest_of(given, known)
    return f" Did you mean {nearest}?" if nearest is not None and nearest != given else ""


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def _escape(character: str, keep: str) -> str:
    return character if character in keep else ascii(character)[1:-1]
