"""`smdebug export TOOL --queue`: runs that a queue says have finished, on moto."""

from __future__ import annotations

import json

import boto3
import pytest

from smdebug.sinks.records import IssueRecord, from_line
from tests.cli.conftest import BUCKET
from tests.sinks.made import failing_run
from tests.support.mocked_aws import mocked_aws
from tests.support.queues import left, queue_with_dead_letters
from tests.ui.buckets import copy_run


@pytest.fixture
def queue(tmp_path):
    """The address of a queue of two finished runs, which have the same name in two folders, and others."""
    with mocked_aws():
        s3 = boto3.client("s3")
        s3.create_bucket(Bucket=BUCKET)
        saved = failing_run(tmp_path / "run")
        for team in "ab":
            copy_run(s3, saved, BUCKET, f"{team}/run")
        url = boto3.client("sqs").create_queue(QueueName="exports")["QueueUrl"]
        for location in (f"s3://{BUCKET}/a/run", f"s3://{BUCKET}/b/run"):
            send(url, location)
        send(url, f"s3://{BUCKET}/a/run", state="Ended")
        yield url


def send(url, location, state="Finished", rules=()):
    detail = {"run": location.removeprefix("s3://"), "state": state, "summary": {"rules": list(rules)}}
    event = {"detail-type": "Run State Change", "detail": detail}
    boto3.client("sqs").send_message(QueueUrl=url, MessageBody=json.dumps(event))


def found(name, reason, cause=None):
    issue = {"id": cause, "since": 3}
    return {"name": name, "status": "IssuesFound", "reason": reason, "last_found": 5, "issue": issue}


def issues_in(file):
    records = [from_line(line) for line in file.read_text().splitlines()]
    return [record for record in records if isinstance(record, IssueRecord)]


def test_each_finished_run_is_sent_once_to_a_file_of_its_own(ask, queue, tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    answer = ask("export", "jsonl", "--queue", queue, "--once", "-o", folder)
    assert answer.code == 0
    files = sorted(folder.iterdir())
    assert [file.name.partition("_run_")[0] for file in files] == [f"{BUCKET}_a", f"{BUCKET}_b"]
    assert ["NaN" in each.title for file in files for each in issues_in(file)] == [True, True]
    assert answer.out.count("values and 1 problem sent to") == 2
    assert left(queue) == 0


def test_what_only_deployed_rules_have_found_arrives_too(ask, queue, tmp_path):
    ask("export", "jsonl", "--queue", queue, "--once", "-o", tmp_path, "--no-rules")
    (first, *_) = sorted(tmp_path.glob("*_a_*"))
    first.unlink()
    known = ask("export", "jsonl", f"s3://{BUCKET}/a/run", "-o", tmp_path / "known.jsonl")
    assert known.code == 0
    (cause,) = {record.issue.cause for record in issues_in(tmp_path / "known.jsonl")}
    rules = [found("mine", "the norm is 9"), found("other", "the same by another rule", cause)]
    send(queue, f"s3://{BUCKET}/a/run", rules=rules)
    ask("export", "jsonl", "--queue", queue, "--once", "-o", tmp_path)
    opened = [(each.issue.cause, each.issue.what, each.step) for each in issues_in(first)]
    assert len(opened) == 2
    assert opened[1] == ("", "the norm is 9", 3)


def test_lines_of_all_runs_can_be_printed_for_the_log_of_a_container(ask, queue):
    answer = ask("export", "cloudwatch", "--queue", queue, "--once", "-o", "-", "--no-rules")
    lines = [json.loads(line) for line in answer.out.splitlines()]
    assert {line["run"] for line in lines} == {"run"}
    assert all("_aws" in line for line in lines)


def test_a_run_that_is_gone_is_left_out_and_one_that_cannot_be_sent_stays(ask, queue, monkeypatch):
    for page in boto3.client("s3").get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix="a/"):
        for item in page["Contents"]:
            boto3.client("s3").delete_object(Bucket=BUCKET, Key=item["Key"])
    answer = ask("export", "otlp", "--queue", queue, "--once", "--to", "http://127.0.0.1:9")
    assert answer.code == 3
    assert f"left out: There is no run at s3://{BUCKET}/a/run" in answer.err
    assert "not sent: " in answer.err
    assert "tried again in an hour" in answer.err
    assert left(queue) == 1


def test_a_run_whose_message_cannot_be_read_is_said_once_with_the_remedy_and_becomes_a_dead_letter(
    ask, queue, tmp_path
):
    with queue_with_dead_letters(tries=3) as (url, dead_letters):
        send(url, f"s3://{BUCKET}/a/run", rules=[{"name": "mine", "outcome": "IssuesFound"}])
        send(url, f"s3://{BUCKET}/b/run")
        answer = ask("export", "jsonl", "--queue", url, "--once", "-o", tmp_path, "--no-rules")
        assert answer.code == 3
        said = " ".join(answer.err.split())
        assert said.count(f"A message about s3://{BUCKET}/a/run cannot be read") == 1
        assert "a rule of its summary has no 'status'" in said
        assert f"smdebug export jsonl s3://{BUCKET}/a/run" in said
        assert [file.name.partition("_run_")[0] for file in tmp_path.glob("*.jsonl")] == [f"{BUCKET}_b"]
        assert (left(url), left(dead_letters)) == (0, 1)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("npz", "--queue", "q"), "--queue is for jsonl"),
        (("jsonl", "run", "--queue", "q"), "a run is for one"),
        (("jsonl", "--queue", "q", "--step", "3"), "--step is for one"),
        (("mlflow", "--queue", "q", "--into", "x"), "--into is for one"),
        (("jsonl", "--queue", "q", "--attempt", "0"), "--attempt is for one"),
        (("jsonl", "--queue", "q", "--json"), "--json is for one"),
        (("jsonl", "--queue", "q", "-o", "nowhere"), "There is no folder nowhere"),
        (("jsonl", "--queue", "q", "--to", "x"), "use -o"),
        (("jsonl",), "Name a run, or with --queue"),
        (("jsonl", "run", "--once"), "--once is for --queue"),
    ],
)
def test_what_does_not_fit_is_refused_before_a_message_is_read(ask, words, text):
    answer = ask("export", *words)
    assert answer.code == 2
    assert text in " ".join(answer.err.split())


def test_a_queue_that_is_gone_is_said_in_one_line(ask, queue):
    answer = ask("export", "jsonl", "--queue", queue + "-gone", "--once")
    assert answer.code == 3
    assert f"The queue {queue}-gone" in answer.err
