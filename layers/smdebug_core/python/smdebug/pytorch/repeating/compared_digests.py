"""Says where digests of what was computed differ from those of the same, computed again."""

from __future__ import annotations

from typing import Any

Digests = list[tuple[str, bytes]]
"""Digests of one computation in their order, each with the name of its module, gradient or parameter."""


def compared(before: Digests, again: list[Digests]) -> dict[str, Any]:
    """What is equal: how many tensors; where they first differ, and what further computations have given."""
    differing = next((each for each in again if each != before), None)
    if differing is None:
        return {"equal": len(before)}
    pairs = zip(before, differing, strict=False)
    where = next((path for (path, digest), other in pairs if (path, digest) != other), before[-1][0])
    return {
        "first": where,
        "tensors": len(before),
        "replays": len(again),
        "as_before": again.count(before),
        "results": len({tuple(each) for each in again}),
    }
