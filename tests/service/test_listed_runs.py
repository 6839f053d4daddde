"""The runs that a debugger has seen: listing them, finding one."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from smdebug.exceptions import (
    RunUnknown,
)
from smdebug.service.records import RuleStatus, RunState
from tests.service.stocked import BEGUN, LOSS, RUN, VANISHING, failing, rule


def test_runs_are_listed_newest_first_including_finished_ones(stock):
    stock.begin("b/old", first_seen=BEGUN)
    stock.begin("b/over", first_seen=BEGUN + 1, state=RunState.FINISHED)
    (over,) = (run for run in stock.index.watched_runs() if run.run == "b/over")
    stock.index.unlist_run(over)
    stock.begin("b/new", first_seen=BEGUN + 2)
    assert [run.run for run in stock.debugger.runs()] == ["b/new", "b/over", "b/old"]
    assert [run.run for run in stock.debugger.runs(watched=True)] == ["b/new", "b/old"]


def test_a_listed_run_has_its_progress_and_the_status_of_its_rules(stock):
    stock.begin(job="train-1", num_workers=4)
    stock.group(failing(VANISHING, 20), rule(LOSS, last_good=30), cursor=30)
    (run,) = stock.debugger.runs()
    assert (run.run, run.state, run.job, run.workers) == (RUN, RunState.RUNNING, "train-1", 4)
    assert run.first_seen == datetime(2025, 11, 21, 6, 38, 36, tzinfo=UTC)
    assert run.evaluated_through == 30
    assert run.rules == {RuleStatus.ISSUES_FOUND: 1, RuleStatus.IN_PROGRESS: 1}
    assert run.open_issues == 1
    assert run.to_dict()["rules"] == {"IssuesFound": 1, "InProgress": 1}
    assert run.to_dict()["first_seen"] == "2025-11-21T06:38:36.000Z"


def test_a_new_debugger_has_no_runs(stock):
    assert stock.debugger.runs() == []
    assert repr(stock.debugger.runs()) == "No runs yet."


def test_a_listed_run_without_a_record_is_omitted(stock):
    stock.index.list_run("b/not-yet", BEGUN)
    assert stock.debugger.runs() == []


@pytest.mark.parametrize("name", [f"s3://{RUN}", RUN, f"s3://{RUN}/", f" {RUN}", "teams/resnet", "train-1"])
def test_a_run_is_found_by_its_address_its_prefix_or_its_job(stock, name):
    stock.begin(job="train-1")
    stock.index.note_job("train-1", RUN)
    assert stock.run(name).run == RUN


def test_the_root_of_a_bucket_is_a_run(stock):
    stock.begin("my-bucket")
    assert stock.run("s3://my-bucket").location == "s3://my-bucket"
    assert stock.run("").run == "my-bucket"


def test_an_unknown_run_is_refused_with_the_nearest_name(stock):
    stock.begin()
    with pytest.raises(RunUnknown, match=rf"Did you mean {RUN}\?") as caught:
        stock.run("s3://my-bucket/teams/resnett")
    assert caught.value.nearest == RUN
    with pytest.raises(RunUnknown) as caught:
        stock.run("nothing-like-it")
    assert caught.value.nearest is None
