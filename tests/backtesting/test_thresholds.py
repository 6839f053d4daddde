"""What each threshold would have given."""

from __future__ import annotations

from dataclasses import replace

from smdebug.backtesting.rows import FOUND, PASSED, Row
from smdebug.backtesting.summary import summaries
from smdebug.backtesting.thresholds import distributions


def row(value: float, label: str = "", *, limit: float | None = None) -> Row:
    status = FOUND if limit is not None else PASSED
    return Row("run", "Rule", status, lowest=value / 2, highest=value, limit=limit, label=label)


ROWS = [row(1, "healthy"), row(3, "healthy"), row(5, "failing", limit=4), row(2, "failing"), row(7, limit=4)]


def test_a_limit_gives_the_alarms_beyond_it():
    (found,) = distributions(ROWS)
    assert (found.is_above, found.limit) == (True, 4)
    at = found.at(2.5)
    assert (at.failing, at.healthy, at.unlabelled, at.alarms) == (1, 1, 1, 3)
    assert found.at(3).healthy == 0, "the limit itself is no finding"


def test_a_rule_whose_findings_are_below_its_limit_takes_the_lowest_number_of_a_run():
    rows = [replace(row(8, "failing", limit=5), highest=4.0, lowest=1.0), row(20, "healthy")]
    (found,) = distributions(rows)
    assert (found.is_above, found.failing, found.healthy) == (False, (1.0,), (10.0,))
    assert found.at(5).failing == 1


def test_of_limits_that_find_as_many_failing_runs_the_least_alarming_is_worth_a_look():
    (found,) = distributions(ROWS)
    assert [(each.failing, each.healthy) for each in found.worth_a_look()] == [(2, 1), (1, 0)]


def test_a_rule_that_names_no_number_has_no_distribution():
    assert distributions([Row("run", "Rule", PASSED)]) == []


def test_runs_that_could_not_be_read_count_for_every_rule():
    (summary,) = summaries([*ROWS, Row("gone", "", "Unread", label="failing")])
    assert (summary.runs, summary.fires, summary.passes, summary.others) == (6, 2, 3, 1)
    assert (summary.failing, summary.failing_found, summary.healthy, summary.healthy_found) == (2, 1, 2, 0)
