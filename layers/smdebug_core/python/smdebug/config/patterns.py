"""Patterns that select tensors by name, with a guard against those that could run forever.

A pattern comes from a rule's parameters, a collections file or a JSON configuration, so it may come from
a stranger. `(a+)+$` takes minutes on a name of thirty letters: such a pattern is refused before its
first use, with the reason and a way out. `.*a.*a.*a.*b` takes minutes on a name of a thousand: it is
refused such a name.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from functools import lru_cache

from smdebug.exceptions import SMDebugTypeError, SMDebugValueError

LONGEST_PATTERN = 100_000
MOST_STEPS = 3e7
"""The matcher's steps for one name: a few hundredths of a second."""


def matches_any(name: str, patterns: Iterable[str]) -> bool:
    """Whether any of the patterns occurs in `name`; False without patterns."""
    return any(searcher(pattern)(name) for pattern in patterns)


@lru_cache(maxsize=1024)
def searcher(pattern: str) -> Callable[[str], object]:
    """Return a search for the pattern in names; it raises `SMDebugValueError` for too long a name."""
    compiled(pattern)  # raises if the pattern is refused
    bare = _without_open_ends(pattern)
    search = compiled(bare).search
    longest = _longest_name(bare)

    def occurs_in(name: str) -> object:
        if len(name) > longest:
            raise SMDebugValueError(
                f"The pattern {pattern!r} could take very long on names of more than {longest} letters, "
                f"and {name[:60]!r}… has {len(name)}. Write it with fewer repetitions, or with some that "
                "cannot match the same text: a/[^/]*/b for a.*b."
            )
        return search(name)

    return occurs_in


@lru_cache(maxsize=1024)
def compiled(pattern: str) -> re.Pattern[str]:
    """Return the compiled pattern; raise `SMDebugValueError` if it is invalid or could run forever."""
    if not isinstance(pattern, str):
        raise SMDebugTypeError(f"A pattern is a string, not {type(pattern).__name__}: {pattern!r}")
    if len(pattern) > LONGEST_PATTERN:
        raise SMDebugValueError(
            f"The pattern {pattern[:60]!r}… has {len(pattern)} characters; "
            f"{LONGEST_PATTERN} are allowed. Give a list of shorter ones instead."
        )
    try:
        ready = re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise SMDebugValueError(f"The pattern {pattern!r} is not a valid regex: {error}.") from error
    if culprit := _explosive(pattern):
        raise SMDebugValueError(
            f"The pattern {pattern!r} could take forever on some names, because it has {culprit}. "
            "Write what is repeated so that it can match in one way only: (a|b)* for (a*b*)*."
        )
    return ready


def _explosive(pattern: str) -> str:
    # Most patterns repeat only single characters, which is harmless.
    if "(" not in pattern and pattern.count("*") + pattern.count("+") + pattern.count("{") <= 3:
        return ""
    from smdebug.config.backtracking import explosive

    try:
        return explosive(pattern)
    except RecursionError:
        return "groups nested too deeply to be followed"


def _longest_name(pattern: str) -> int:
    """Return how long a name may be for the pattern to take at most `MOST_STEPS`."""
    repetitions = sum(map(pattern.count, "*+{"))
    if not repetitions and "?" not in pattern:
        return sys.maxsize
    if repetitions == 1 and "?" not in pattern:
        return int((2 * MOST_STEPS) ** 0.5)
    from smdebug.config.backtracking import growth

    return growth(pattern).longest_within(MOST_STEPS)


def _without_open_ends(pattern: str) -> str:
    """Return the pattern without leading and trailing `.*`: it occurs in the same names, found faster."""
    if "|" in pattern:
        return pattern
    if pattern.startswith(".*") and pattern[2:3] not in ("?", "+", "{"):
        pattern = pattern[2:]
    if pattern.endswith(".*") and pattern[-3:-2] != "\\":
        pattern = pattern[:-2]
    return pattern
