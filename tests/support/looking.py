"""Loops that assert: each says how many it has looked at, because one over nothing holds whatever is true."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")


def each(values: Iterable[T], *, at_least: int = 1) -> list[T]:
    """Return the values to loop over; fail if there are fewer of them."""
    found = list(values)
    assert len(found) >= at_least, f"{len(found)} were looked at, at least {at_least} are expected"
    return found
