"""When the files of a run are listed: listing costs, and usually finds nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from functions.decisions.doubts import doubt_of, may_be_found
from smdebug.service.records import RunRecord, StepRecord

RECORD = RunRecord("runs/mnist", num_workers=1, first_seen=1000.0)


@pytest.mark.parametrize(
    ("waited", "num_workers", "reason"),
    [(119, 1, ""), (120, 1, "step 7 waits"), (120, None, "no collections file has arrived"), (119, None, "")],
)
def test_a_step_that_waits_is_a_reason_once_its_notifications_must_have_come(waited, num_workers, reason):
    step = StepRecord(7, indexed=2000.0)
    record = replace(RECORD, num_workers=num_workers)
    assert doubt_of(record, step, step, now=2000.0 + waited) == reason


@pytest.mark.parametrize(
    ("silent", "listed_before", "is_listed"),
    [(239, 10_000, False), (240, 10_000, True), (240, 119, False), (240, 120, True), (3600, 1799, False)],
)
def test_the_longer_nothing_arrives_the_more_rarely_it_is_listed(silent, listed_before, is_listed):
    now = 50_000.0
    newest = StepRecord(7, indexed=now - silent)
    record = replace(RECORD, listed_at=now - listed_before)
    expected = f"nothing has arrived for {silent} s" if is_listed else ""
    assert doubt_of(record, None, newest, now=now) == expected


def test_a_run_without_a_step_is_silent_since_it_was_first_seen():
    assert doubt_of(RECORD, None, None, now=1239.0) == ""
    assert doubt_of(RECORD, None, None, now=1240.0) == "nothing has arrived for 240 s"


def test_lost_steps_are_looked_for_more_and_more_rarely():
    since = StepRecord(7, indexed=1000.0)
    for listed, is_listed in ((1149.0, True), (1150.0, True), (1151.0, False)):
        assert may_be_found(replace(RECORD, listed_at=listed), since, now=1200.0) is is_listed
