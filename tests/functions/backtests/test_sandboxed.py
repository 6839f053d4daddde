"""The sandbox's answers about a run are data: what is no verdict becomes a row that says so."""

from __future__ import annotations

from typing import Any

import pytest

from functions.backtests.sandboxed import judged_of
from functions.custom_rules.credentials import LONGEST_POLICY, as_text, reading_policy
from smdebug.backtesting.finding_runs import FoundRun
from tests.functions.custom_rules.test_credentials import allows

RUN = FoundRun("s3://bucket/a", "a", "s3://bucket/a")
ROW = {"run": "s3://bucket/a", "rule": "Mine", "status": "IssuesFound", "findings": 2, "highest": 3.5}


def rows(answer: Any) -> tuple[Any, ...]:
    return judged_of(RUN, answer, ["Mine"]).rows


def test_a_verdict_is_taken_over():
    (row,) = rows({"judged": {"rows": [ROW], "identity": "x"}})
    assert (row.rule, row.status, row.findings, row.highest) == ("Mine", "IssuesFound", 2, 3.5)


def test_it_is_about_the_run_that_was_asked_for_whatever_it_says():
    (row,) = rows(
        {"judged": {"rows": [{**ROW, "run": "s3://other/run", "label": "healthy"}], "identity": ""}}
    )
    assert (row.run, row.label) == (RUN.path, "")


@pytest.mark.parametrize(
    "change",
    [
        {"status": "Fine"},
        {"findings": "2"},
        {"findings": True},
        {"highest": "high"},
        {"highest": float("nan")},
        {"note": 3},
        {"first_step": 1.5},
    ],
)
def test_what_is_no_row_is_refused(change: dict[str, Any]):
    (row,) = rows({"judged": {"rows": [{**ROW, **change}], "identity": ""}})
    assert row.status == "Error"
    assert row.note.startswith("the answer is not a verdict")


@pytest.mark.parametrize(
    "answer", [{}, {"judged": 3}, {"judged": {"rows": 3, "identity": ""}}, {"judged": {}}]
)
def test_nonsense_is_refused(answer: Any):
    (row,) = rows(answer)
    assert (row.rule, row.status) == ("Mine", "Error")


def test_texts_are_cut():
    (row,) = rows({"judged": {"rows": [{**ROW, "note": "x" * 10_000}], "identity": ""}})
    assert len(row.note) == 1000


def test_a_death_is_a_row_and_too_long_a_status_of_its_own():
    assert rows({"died": {"message": "it was ended by SIGSEGV"}})[0].status == "Error"
    (row,) = rows({"died": {"message": "it did not answer within 95 s", "too_long": True}})
    assert (row.status, row.note) == ("TimedOut", "it did not answer within 95 s")


def test_an_error_of_the_function_is_a_row():
    (row,) = rows({"Error": "Lambda.Unknown", "Cause": "out of memory"})
    assert row.note == "the rule's function failed (Lambda.Unknown: out of memory)"


def test_the_credentials_of_a_run_read_that_run_alone_and_write_nothing():
    policy = reading_policy("s3://runs/mnist")
    assert allows(policy, "s3:GetObject", "runs/mnist/index/000000000/000000000001_worker_0.json")
    assert not allows(policy, "s3:GetObject", "runs/other/index/000000000/000000000001_worker_0.json")
    assert not allows(policy, "s3:GetObject", "runs/mnist/origin.json")
    assert not allows(policy, "s3:PutObject", "runs/mnist/state/none/00000001.state")


BUNDLE = "s3://runs/backtests/bundles/0123"


def test_the_credentials_of_a_run_read_its_bundle_and_no_other():
    policy = reading_policy("s3://runs/team/mnist", bundle=BUNDLE)
    assert allows(policy, "s3:GetObject", "runs/backtests/bundles/0123")
    assert allows(policy, "s3:GetObject", "runs/team/mnist/index/000000000/000000000001_worker_0.json")
    assert not allows(policy, "s3:GetObject", "runs/backtests/bundles/4567")
    assert not allows(policy, "s3:GetObject", "runs/backtests/1/plan")
    assert not allows(policy, "s3:GetObject", "runs/team/other/index/000000000/000000000001_worker_0.json")
    assert not allows(policy, "s3:PutObject", "runs/backtests/bundles/0123")
    assert allows(policy, "s3:ListBucket", "runs", "backtests/bundles/0123")  # if there is none, it says so
    assert not allows(policy, "s3:ListBucket", "runs", "backtests/bundles/")


@pytest.mark.parametrize(("length", "has_bundle"), [(10, True), (40, True), (200, True), (75, False)])
def test_a_policy_is_short_enough_however_long_the_name_of_the_run(length: int, has_bundle: bool):
    bucket = "s3://smdebug-12345678-123456789012-ap-southeast-2"
    bundle = f"{bucket}/backtests/bundles/{'0' * 32}"
    policy = reading_policy(f"{bucket}/{'t' * length}", bundle=bundle)
    assert len(as_text(policy)) <= LONGEST_POLICY
    assert allows(policy, "s3:GetObject", bundle.removeprefix("s3://")) == has_bundle
