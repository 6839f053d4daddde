"""Schedules are due when AWS would fire them, and unknown ones are refused."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from local_aws.errors import Unsupported
from local_aws.schedules import next_due, seconds_of_time


def moment(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("expression", "after", "due"),
    [
        ("rate(5 minutes)", "2026-01-31T12:00:00", "2026-01-31T12:05:00"),
        ("rate(1 hour)", "2026-01-31T23:30:00", "2026-02-01T00:30:00"),
        ("cron(30 2 * * ? *)", "2026-01-31T12:00:00", "2026-02-01T02:30:00"),
        ("cron(30 2 * * ? *)", "2026-01-31T02:29:59", "2026-01-31T02:30:00"),
        ("cron(30 2 * * ? *)", "2026-01-31T02:30:00", "2026-02-01T02:30:00"),
        ("cron(0 23 * * ? *)", "2026-01-31T01:00:00", "2026-01-31T23:00:00"),
    ],
)
def test_a_schedule_is_due_at_its_next_moment(expression: str, after: str, due: str):
    assert next_due(expression, moment(after)) == moment(due)


@pytest.mark.parametrize("unknown", ["cron(0 12 ? * MON *)", "rate(2 fortnights)", "at(2026-01-01T00:00:00)"])
def test_an_unknown_schedule_is_refused(unknown: str):
    with pytest.raises(Unsupported, match="does not support the schedule"):
        next_due(unknown, 0.0)


def test_a_single_moment_is_parsed():
    assert seconds_of_time("at(1970-01-02T00:00:00)") == 86400
    with pytest.raises(Unsupported):
        seconds_of_time("rate(5 minutes)")
