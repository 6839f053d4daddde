"""Colours of what commands print, kept apart from escape sequences in names that were read from a run.

A styled text holds markers until it is printed. Only markers become escape sequences, so an escape
sequence in a tensor's name is shown as text and never reaches the terminal.
"""

from __future__ import annotations

import re
from typing import Final

from smdebug.plain_text import escaped

# Noncharacters: Unicode reserves them for use inside a program.
_SEQUENCES: Final = {
    "\ufdd0": "\x1b[32m",
    "\ufdd1": "\x1b[31m\x1b[1m",
    "\ufdd2": "\x1b[2m",
    "\ufdd3": "\x1b[1m",
    "\ufdd4": "\x1b[0m",
}
_GOOD, _BAD, _FAINT, _STRONG, _END = _SEQUENCES
_MARKERS: Final = re.compile("[\ufdd0-\ufdd4]")


def good(text: str) -> str:
    return f"{_GOOD}{text}{_END}"


def bad(text: str) -> str:
    return f"{_BAD}{text}{_END}"


def faint(text: str) -> str:
    return f"{_FAINT}{text}{_END}"


def strong(text: str) -> str:
    return f"{_STRONG}{text}{_END}"


def is_styled(text: str) -> bool:
    """Return whether the text holds markers, so that it cannot be cut anywhere."""
    return _MARKERS.search(text) is not None


def without_markers(text: str) -> str:
    return _MARKERS.sub("", text)


def with_colours(text: str) -> str:
    """Return the line with control characters escaped and markers replaced by colours.

    A line break in a name or message is escaped, too: it could start a line that looks like the command's
    own.
    """
    return _MARKERS.sub(lambda found: _SEQUENCES[found.group()], escaped(text))
