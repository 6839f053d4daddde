"""The objects of runs that expire."""

from __future__ import annotations

import re
from collections.abc import Sequence


def problem_with(days: int | None, prefixes: Sequence[str]) -> str:
    """Return what is wrong with objects below these prefixes that expire after so many days."""
    if days is not None and not prefixes:
        return (
            f"run_retention_days={days} needs "
            "run_retention_prefixes, the prefixes of the runs that may expire, such "
            "as experiments/. The whole bucket also contains the sources of rules."
        )
    if prefixes and days is None:
        return f"run_retention_prefixes={','.join(prefixes)} has no effect without run_retention_days."
    for prefix in prefixes:
        if not re.fullmatch(r"[^*?/][^*?]*/", prefix):
            return (
                f"run_retention_prefixes: {prefix!r} is not a prefix: write experiments/ with a final "
                "slash and without the bucket."
            )
        if "rule-sources/".startswith(prefix) or prefix.startswith("rule-sources/"):
            return (
                f"run_retention_prefixes: {prefix!r} contains the sources of rules, which must not "
                "expire: name the prefixes of runs."
            )
    return ""
