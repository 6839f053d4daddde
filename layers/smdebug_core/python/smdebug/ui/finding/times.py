"""How long a run took, by the clock of the machine that trains, which may be wrong or be set back."""

from __future__ import annotations

from smdebug.amounts import counted

AHEAD = 120.0
"""Seconds by which the clock of another machine may be ahead before it is mentioned."""


def duration_of(first: float | None, last: float | None) -> float | None:
    """Return the seconds between the first and the last step; None if the clock went back between them."""
    return None if first is None or last is None or last < first else last - first


def clock_note(first: float | None, last: float | None, now: float) -> str:
    """Return what is wrong with the times of a run; "" if nothing is."""
    if first is None or last is None:
        return ""
    if last < first:
        return (
            f"The clock of the training was set back: its last step was saved {_words(first - last)} "
            "before its first one. Durations are not shown."
        )
    if last > now + AHEAD:
        return (
            f"The last step was saved {_words(last - now)} in the future: the clock of the training or "
            "of this machine is wrong."
        )
    return ""


def _words(seconds: float) -> str:
    for size, name in ((86_400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= 2 * size:
            return f"{round(seconds / size):,} {name}s"
    count = max(1, round(seconds))
    return counted(count, "second")
