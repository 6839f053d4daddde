"""Backtests on a local stack, with the state machine of infra, and the permissions of each role."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from infra.storage.run_bucket import BUNDLES_FOLDER as BUNDLES
from local_aws import LocalAws
from smdebug.backtesting.backtest import Backtest, Options, backtest
from smdebug.backtesting.bundles.bundle_file import bundle_name
from smdebug.backtesting.deployed import plan
from smdebug.backtesting.deployed.account import DeployedOptions, backtest_in_account, collect
from smdebug.backtesting.question import Question
from smdebug.service.backtests import connect_backtests
from smdebug.storage import open_storage
from tests.backtesting.many_runs import make_run, write_rule
from tests.e2e.patience import PatientDebugger, short, wait_until
from tests.functions.saver import HEALTHY, Saver
from tests.support.looking import each

# Permissions that the test does not use, and why the template has them all the same.
NOT_SHOWN = {
    "Backtests s3:GetObject": "Step Functions reads results again when it merges them.",
    "Backtests s3:ListMultipartUploadParts": "Step Functions uploads large results in parts.",
    "Backtests s3:AbortMultipartUpload": "Step Functions gives up an upload that fails.",
    "Backtests states:DescribeExecution": "Step Functions looks at children that it has started.",
    "Backtests states:StopExecution": "Step Functions ends the children of a cancelled backtest.",
    "BacktestsPlanNightly sqs:SendMessage": "A night that fails becomes a dead letter.",
}


@pytest.fixture(scope="module")
def aws():
    settings = {"backtests_at_once": 2, "nightly_backtest": True, "account_concurrency": 40}
    with LocalAws(settings) as aws, aws.as_default():
        for number in range(4):
            jump = 5.0 + number if number % 3 == 0 else 1.0
            losses = [2.0, 1.9, 1.8 * jump, *[1.7 * jump] * 5]
            make_run(f"s3://{aws.bucket}/old/run-{number}", losses)
        aws.settle()
        yield aws


def ask(aws: LocalAws, question: Question, journal: Path, **options: Any) -> Backtest:
    table = backtest_in_account(
        question,
        [f"s3://{aws.bucket}/old"],
        connect_backtests(),
        Options(journal=journal),
        DeployedOptions(pause=lambda: time.sleep(0.1), **options),
    )
    assert isinstance(table, Backtest)
    return table


def a_run_that_ends(aws: LocalAws) -> str:
    """Return the location of a run that was watched until its end, so that its report is written."""
    debugger = PatientDebugger(aws)
    saver = Saver(debugger.storage("ended")).begin()
    for step in range(8):
        saver.save(step, HEALTHY)
    saver.end()
    debugger.finish("ended")
    return f"s3://{aws.bucket}/ended"


def test_a_rule_of_ones_own_in_the_sandbox_built_in_ones_and_the_night(aws: LocalAws, tmp_path: Path):
    folder = open_storage(f"s3://{aws.bucket}/{BUNDLES}")
    names = [bundle_name(f"s3://{aws.bucket}/old/run-{number}") for number in range(4)]
    begun = aws.now()
    ended = a_run_that_ends(aws)
    wait_until(aws, lambda: folder.exists(bundle_name(ended)), "WriteReport to bundle the run")

    custom = Question(({"rule": "LossSpike", "parameters": {}},), write_rule(tmp_path / "rule.py"))
    table = ask(aws, custom, tmp_path / "custom.jsonl")
    assert [row.status for row in table.rows] == [
        "IssuesFound",
        "NoIssuesFound",
        "NoIssuesFound",
        "IssuesFound",
    ]
    assert table.rows[3].first_finding == "loss: times the last 7.579 (limit 4)"

    here = backtest(custom, [f"s3://{aws.bucket}/old"], Options(jobs=1, journal=tmp_path / "here.jsonl"))
    assert [replace(row, seconds=0.0) for row in here.rows] == [
        replace(row, seconds=0.0) for row in table.rows
    ]

    built_in = Question(({"rule": "ExplodingTensor", "parameters": {}},))
    assert [row.looked for row in ask(aws, built_in, tmp_path / "built_in.jsonl").rows] == [8] * 4
    assert set(folder.list("")) == {*names, bundle_name(ended)}
    assert ask(aws, built_in, tmp_path / "built_in.jsonl").reused == 4

    with_bundles = replace(custom, file=write_rule(tmp_path / "other.py", factor=7))
    again = ask(aws, with_bundles, tmp_path / "other.jsonl").rows
    assert [row.highest for row in again] == [row.highest for row in table.rows]
    assert [row.status for row in again] == ["NoIssuesFound"] * 3 + ["IssuesFound"]

    yesterday = datetime.fromtimestamp(begun, UTC)
    midnight = yesterday.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    aws.forward(midnight.timestamp() + 2.5 * 3600 - aws.now())  # its schedule starts it
    account, night = connect_backtests(), f"nightly-{yesterday.date()}"
    aws.wait_until(lambda: account.execution(night), what="the schedule to start the night")
    aws.wait_until(lambda: account.execution(night).status == "SUCCEEDED", what="the night")
    assert [call.answer["runs"] for call in aws.invocations("plan_nightly")] == [5]
    rows = collect(account, night, Options()).rows
    assert {row.run for row in rows} == {ended, *(f"s3://{aws.bucket}/old/run-{at}" for at in range(4))}
    assert {row.status for row in rows} <= {"NoIssuesFound", "IssuesFound", "NotChecked"}

    assert aws.refused() == []
    assert aws.dead_letters() == []
    report = aws.permissions()
    names = report["roles"]
    unused = {f"{short(names.get(owner, owner))} {action}" for owner, action, _ in report["unused"]}
    assert "WriteReport s3:PutObject" not in unused
    of_backtests = {entry for entry in unused if entry.startswith("Backtests") and "lambda:" not in entry}
    assert of_backtests == set(NOT_SHOWN)


def test_chunks_that_fail_beyond_the_limit_end_the_backtest_and_it_continues_later(
    aws: LocalAws, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(plan, "CHUNK_SECONDS", 0.1)  # a run each
    question = Question(({"rule": "AllZero", "parameters": {}},))
    # The function dies whenever it writes verdicts; each chunk is given up after its retries.
    account = connect_backtests()
    aws.kill_when("judge_runs", "s3:PutObject", times=1_000)
    killed = ask(aws, question, tmp_path / "journal.jsonl")
    assert {row.status for row in killed.rows} == {"Unread"}
    assert "States.ExceedToleratedFailureThreshold" in killed.rows[0].note
    aws.kill_when("judge_runs", "s3:PutObject", times=0)
    table = ask(aws, question, tmp_path / "journal.jsonl")
    assert "Unread" not in {row.status for row in table.rows}
    kept = [key for key in account.bucket.list("backtests/") if not key.startswith(f"{BUNDLES}/")]
    ids = {key.split("/")[1] for key in kept}
    assert all(account.bucket.exists(plan.manifest_key(name)) for name in each(ids, at_least=2))
