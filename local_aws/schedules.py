"""When a schedule is due: rates, times of each day, and single moments."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from local_aws.errors import Unsupported

_DAY = 86_400.0
_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400}


def next_due(expression: str, after: float) -> float:
    """Return when this schedule is due next: `rate(5 minutes)`, or `cron(30 2 * * ? *)` in UTC."""
    if rate := re.fullmatch(r"rate\((\d+) (second|minute|hour|day)s?\)", expression):
        return after + int(rate[1]) * _SECONDS[rate[2]]
    if daily := re.fullmatch(r"cron\((\d+) (\d+) \* \* \? \*\)", expression):
        at = int(daily[1]) * 60.0 + int(daily[2]) * 3600.0  # days of UTC begin at multiples of their length
        return after - (after - at) % _DAY + _DAY
    raise Unsupported(f"The local stack does not support the schedule {expression}")


def seconds_of_time(expression: str) -> float:
    """`at(2026-01-02T03:04:05)` -> seconds since 1970."""
    match = re.fullmatch(r"at\((.+)\)", expression)
    if not match:
        raise Unsupported(f"The local stack does not support the schedule {expression}")
    return datetime.fromisoformat(match[1]).replace(tzinfo=UTC).timestamp()
