"""The process on the cluster's side: a queue of moto, jobs of Kubernetes and of Slurm."""

import json
import os
import sys

import boto3
import pytest

from smdebug.service.stopping import __main__ as process
from tests.service.stopping.fake_kubernetes import served
from tests.service.stopping.test_stop_requests import FOUND
from tests.support.mocked_aws import mocked_aws
from tests.support.queues import left, queue_with_dead_letters

SQUEUE = """#!{python}
import sys
assert sys.argv[1:] == ["--me", "--noheader", "--states=RUNNING", "--format=%i|%k"], sys.argv
print("41|a comment s3://runs/b")
print("42_1|{place}")
print("43|(null)")
"""
SCANCEL = """#!{python}
import os, sys
with open(os.environ["CANCELLED"], "a") as file:
    print(*sys.argv[1:], file=file)
"""


@pytest.fixture
def queue():
    with mocked_aws():
        sqs = boto3.client("sqs")
        url = sqs.create_queue(QueueName="stops")["QueueUrl"]
        sqs.send_message(QueueUrl=url, MessageBody=json.dumps(FOUND))
        sqs.send_message(QueueUrl=url, MessageBody=json.dumps({"detail-type": "another"}))
        yield url


def run(queue, *arguments):
    return process.main([queue, "--once", *arguments], boto3.client)


def small_slurm(folder, place="s3://runs/a"):
    """Write a squeue that knows a job of the run, and a scancel; return the environment that finds them."""
    for name, text in (("squeue", SQUEUE), ("scancel", SCANCEL)):
        (folder / name).write_text(text.format(python=sys.executable, place=place))
        (folder / name).chmod(0o755)
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    return {"PATH": path, "CANCELLED": str(folder / "cancelled")}


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """A small Slurm; the file that says what was cancelled."""
    for name, value in small_slurm(tmp_path).items():
        monkeypatch.setenv(name, value)
    return tmp_path / "cancelled"


def test_the_job_of_slurm_whose_comment_names_the_run_is_cancelled(queue, slurm, capsys):
    assert run(queue, "--slurm") == 0
    assert slurm.read_text() == "42_1\n"
    assert capsys.readouterr().out == "stopped 42_1, which trains s3://runs/a: the loss is NaN\n"
    assert left(queue) == 0


def test_the_job_of_kubernetes_is_suspended(queue, capsys):
    with served() as cluster:
        cluster.add("mine", args=["s3://runs/a"])
        assert run(queue, "--kubernetes", "ml", "--api", cluster.url) == 0
    assert cluster.jobs["mine"]["spec"]["suspend"] is True
    assert "stopped mine" in capsys.readouterr().out
    assert left(queue) == 0


def test_a_stop_that_fails_stays_in_the_queue_and_is_said(queue, slurm, capsys):
    (slurm.parent / "scancel").write_text(f"#!{sys.executable}\nimport sys\nsys.exit('Access denied')\n")
    assert run(queue, "--slurm") == 0
    assert "scancel ended with 1: Access denied; tried again in a minute" in capsys.readouterr().err
    assert left(queue) == 1


def test_a_finding_that_cannot_be_read_is_said_once_and_becomes_a_dead_letter(slurm, capsys):
    with queue_with_dead_letters(tries=3) as (queue, dead_letters):
        unknown = {**FOUND, "detail": {**FOUND["detail"], "actions": ["stoptraining"]}}
        for event in (unknown, FOUND):
            boto3.client("sqs").send_message(QueueUrl=queue, MessageBody=json.dumps(event))
        assert run(queue, "--slurm") == 0
        said = capsys.readouterr()
        assert (
            said.err.count("A message about s3://runs/a cannot be read: its actions have another form") == 1
        )
        assert "Install the release that is deployed here" in said.err
        assert "stopped 42_1" in said.out
        assert (left(queue), left(dead_letters)) == (0, 1)


def test_a_machine_without_slurm_and_a_queue_that_is_gone_are_said_in_one_line(queue, monkeypatch, capsys):
    monkeypatch.setenv("PATH", "/nowhere")
    run(queue, "--slurm")
    assert "There is no squeue on this machine" in capsys.readouterr().err
    assert run(queue + "-gone", "--slurm") == 3
    assert capsys.readouterr().err.startswith(f"error: The queue {queue}-gone")
