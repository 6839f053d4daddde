"""Waiting for a run, with news in between."""

from __future__ import annotations

import pytest

from smdebug.exceptions import (
    SMDebugValueError,
    StorageUnavailable,
    WaitedTooLong,
)
from smdebug.service.records import RunState
from tests.service.stocked import LOSS, VANISHING, failing, rule


def test_waiting_ends_when_the_run_has_finished_and_reports_news(stock):
    stock.begin()
    stock.group(rule(VANISHING), rule(LOSS), cursor=1)
    stock.events = [
        lambda: None,
        lambda: stock.group(failing(VANISHING, 2), rule(LOSS), cursor=2),
        lambda: stock.group(failing(VANISHING, 2, issue_since=None, last_good=3), rule(LOSS), cursor=2),
        lambda: stock.become(RunState.FINISHED),
    ]
    news = []
    last = stock.run().wait(on_news=news.append)
    assert last.state is RunState.FINISHED
    assert [(change.what, change.rule) for change in news] == [
        ("state", None),
        ("status", "fc"),
        ("status", "loss"),
        ("evaluated", None),
        ("status", "fc"),
        ("issue", "fc"),
        ("state", None),
    ]
    assert str(news[4]).startswith("fc is IssuesFound: RuleEvaluationConditionMet")
    assert str(news[5]) == "the issue of fc was resolved at step 3"


def test_waiting_for_a_finding_a_step_or_a_condition(stock):
    stock.begin()
    stock.group(rule(VANISHING), cursor=1)
    stock.events = [lambda: stock.group(failing(VANISHING, 2), cursor=2)]
    assert stock.run().wait(until="found").has_found_something
    stock.events = [lambda: stock.group(failing(VANISHING, 2), cursor=9)]
    assert stock.run().wait(until=8).evaluated_through == 9
    assert stock.run().wait(until=lambda run: run.state is RunState.RUNNING, timeout=0)


def test_waiting_for_a_finding_ends_when_the_run_finishes_without_one(stock):
    stock.begin()
    stock.events = [lambda: stock.become(RunState.FINISHED)]
    assert not stock.run().wait(until="found").has_found_something


def test_waiting_for_something_unknown_is_refused(stock):
    stock.begin()
    with pytest.raises(SMDebugValueError, match="'finished', 'found'"):
        stock.run().wait(until="done")


def test_a_timeout_reports_the_state_of_the_run(stock):
    stock.begin()
    with pytest.raises(WaitedTooLong, match="waited 20 s without success: Running"):
        stock.run().wait(timeout=20)
    assert sum(stock.paused) == pytest.approx(20)


def test_polling_slows_down_while_nothing_changes(stock):
    stock.begin()
    with pytest.raises(WaitedTooLong):
        stock.run().wait(timeout=300)
    assert stock.paused[0] == 1.0
    assert sorted(stock.paused[:-1]) == stock.paused[:-1]
    assert max(stock.paused) == 15.0


def test_a_short_outage_is_waited_out(stock):
    stock.begin(state=RunState.FINISHED)
    run = stock.run()
    query, failures = stock.store.query, iter([True, True])

    def unreliable(*args, **options):
        if next(failures, False):
            raise StorageUnavailable("The table", "AWS asks to try again later")
        return query(*args, **options)

    stock.store.query = unreliable
    assert run.wait(timeout=60).state is RunState.FINISHED
    assert len(stock.paused) == 2
