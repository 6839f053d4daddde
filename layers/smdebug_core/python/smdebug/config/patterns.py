"""Patterns that choose tensors by name, and a guard against those that would never come to an end.

A pattern comes from a rule's parameters, a collections file or a JSON configuration, so somebody else may
have written it. `(a+)+$` takes minutes on a name of thirty letters: such a pattern is refused before its
first use, with the reason and a way out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from smdebug.exceptions import SMDebugTypeError, SMDebugValueError

LONGEST_PATTERN = 100_000


def matches_any(name: str, patterns: Iterable[str]) -> bool:
    """Does any of the patterns occur in `name`? No pattern, no match."""
    return any(compiled(pattern).search(name) for pattern in patterns)


@lru_cache(maxsize=1024)
def compiled(pattern: str) -> re.Pattern[str]:
    """The pattern, ready for use; `SMDebugValueError` if it is not valid, or would not end."""
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
        raise SMDebugValueError(f"The pattern {pattern!r} is not a valid regex: {error}") from error
    if culprit := _explosive(pattern):
        raise SMDebugValueError(
            f"The pattern {pattern!r} could take forever on some names, for it has {culprit}. "
            "Write what is repeated so that it can match in one way only: (a|b)* for (a*b*)*."
        )
    return ready


def _explosive(pattern: str) -> str:
    # Most patterns repeat single characters only, and those need no closer look.
    if "(" not in pattern and pattern.count("*") + pattern.count("+") + pattern.count("{") <= 3:
        return ""
    from smdebug.config.backtracking import explosive

    try:
        return explosive(pattern)
    except RecursionError:
        return "groups nested too deeply to be followed"
