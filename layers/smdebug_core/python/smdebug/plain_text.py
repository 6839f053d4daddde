"""Text of a run, such as a tensor's name, made safe to show on a terminal."""

from __future__ import annotations

import re
from typing import Final

# Control characters (among them ESC, with which a text can rewrite a terminal), lone surrogates, and the
# characters that separate lines or change the direction of writing.
_UNSAFE: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def escaped(text: str, keep: str = "") -> str:
    """Return the text with control characters as Python writes them: ESC as `\\x1b`.

    Characters in `keep` stay as they are.
    """
    return _UNSAFE.sub(lambda found: _escape(found.group(), keep), text)


def _escape(character: str, keep: str) -> str:
    return character if character in keep else ascii(character)[1:-1]
