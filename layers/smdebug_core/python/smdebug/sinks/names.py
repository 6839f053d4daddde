"""Names of numbers as a tool allows them: what it forbids is replaced, and each name keeps its own."""

from __future__ import annotations

import re
import zlib

from smdebug.plain_text import escaped

_MARK_LENGTH = 9  # `_` and eight digits
_LONGEST_SHOWN = 80


class Names:
    """Maps names to allowed ones: always the same one, and no two to the same.

    A name that had to be changed ends with a checksum of the original, which tells `loss[0]` from `loss(0)`.
    """

    def __init__(self, forbidden: str, most: int):
        self._forbidden = re.compile(forbidden)
        self._most = most
        self._known: dict[str, str] = {}
        self._changed: dict[str, str] = {}

    @property
    def changed(self) -> dict[str, str]:
        """The names that had to be changed, with what they became."""
        return self._changed

    def allowed(self, name: str) -> str:
        """Return the name by which the tool knows it."""
        found = self._known.get(name)
        if found is None:
            found = self._known[name] = self._made(name)
            if found != name:
                self._changed[name] = found
        return found

    def in_words(self, tool: str) -> str:
        """Return which names were changed, in a sentence; "" if none were."""
        if not self._changed:
            return ""
        shown = [f"{_shown(old)} is {_shown(new)}" for old, new in list(self._changed.items())[:3]]
        more = f" and {len(self._changed) - 3:,} others" if len(self._changed) > 3 else ""
        return f"{tool} does not allow all names: {', '.join(shown)}{more}"

    def _made(self, name: str) -> str:
        replaced = self._forbidden.sub("_", name)
        if replaced == name and len(name) <= self._most:
            return name
        mark = f"_{zlib.crc32(name.encode('utf-8', 'surrogatepass')):08x}"
        return replaced[: self._most - _MARK_LENGTH] + mark


def _shown(name: str) -> str:
    """Return the name on one line, its end included: what tells two long ones apart is there."""
    text = escaped(name)
    if len(text) <= _LONGEST_SHOWN:
        return text
    return f"{text[: _LONGEST_SHOWN - 21]}…{text[-20:]}"
