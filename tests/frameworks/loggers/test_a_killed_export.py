"""A program that sends finished runs is killed, and sends them again: the tool has each run once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import boto3
import mlflow
import pytest
from moto.server import ThreadedMotoServer

from tests.sinks.made import failing_run
from tests.support.mocked_aws import CREDENTIALS
from tests.ui.buckets import copy_run

PROGRAM = """
import os, signal, sys
def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)
at = sys.argv.pop(1)
if at == "sent":
    import botocore.client
    call = botocore.client.BaseClient._make_api_call
    botocore.client.BaseClient._make_api_call = (
        lambda client, name, of: die() if name == "DeleteMessage" else call(client, name, of)
    )
elif at == "sending":
    import mlflow
    log = mlflow.MlflowClient.log_batch
    mlflow.MlflowClient.log_batch = lambda *a, **k: (log(*a, **k), die())
elif at == "refused":
    import mlflow
    def refuse(*_, **__):
        raise mlflow.exceptions.MlflowException("the server restarts", error_code=1)
    mlflow.MlflowClient.set_tag = mlflow.MlflowClient.log_batch = refuse
from smdebug.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def queue(tmp_path, monkeypatch):
    """The address of a queue with one finished run, whose messages are visible again at once."""
    monkeypatch.chdir(tmp_path)
    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = {"AWS_DEFAULT_REGION": "us-east-1", "AWS_ENDPOINT_URL": f"http://{host}:{port}"}
    for name, text in {**CREDENTIALS, **endpoint, "HOME": str(tmp_path)}.items():
        monkeypatch.setenv(name, text)
    s3, sqs = boto3.client("s3"), boto3.client("sqs")
    s3.create_bucket(Bucket="bucket")
    copy_run(s3, failing_run(tmp_path / "saved"), "bucket", "team/run-a")
    url = sqs.create_queue(QueueName=f"exports-{tmp_path.name[-9:]}", Attributes={"VisibilityTimeout": "0"})[
        "QueueUrl"
    ]
    yield url
    server.stop()


def put(queue: str, event: str) -> None:
    detail = {"id": event, "run": "bucket/team/run-a", "state": "Finished", "summary": {}}
    message = json.dumps({"detail-type": "Run State Change", "detail": detail})
    boto3.client("sqs").send_message(QueueUrl=queue, MessageBody=message)


def export(*words: str, at: str = "never") -> subprocess.CompletedProcess[str]:
    """Send what is in the queue, in a process that is killed at that moment."""
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, at, "export", *words, "--once"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("at", ["sent", "sending"])
def test_mlflow_has_the_run_once_and_whole(queue, tmp_path, at):
    store = f"sqlite:///{tmp_path}/mlflow.db"
    client = mlflow.MlflowClient(tracking_uri=store)
    words = ("mlflow", "--queue", queue, "--to", store)
    put(queue, "1")
    assert export(*words, at=at).returncode == -signal.SIGKILL
    (first,) = client.search_runs(["0"])
    done = export(*words)
    assert done.returncode == 0, done.stderr
    (run,) = client.search_runs(["0"])
    assert run.info.status == "FINISHED"
    assert (run.info.run_id == first.info.run_id) == (at == "sent")
    assert ("not sent again" in done.stderr) == (at == "sent")
    assert len(client.get_metric_history(run.info.run_id, "training/loss")) == 30
    put(queue, "2")  # the training was resumed, and has finished again
    assert export(*words).returncode == 0
    assert len(client.search_runs(["0"])) == 2


def test_what_mlflow_refused_midway_does_not_stay_beside_the_whole_run(queue, tmp_path):
    store = f"sqlite:///{tmp_path}/mlflow.db"
    client = mlflow.MlflowClient(tracking_uri=store)
    words = ("mlflow", "--queue", queue, "--to", store)
    boto3.client("sqs").set_queue_attributes(QueueUrl=queue, Attributes={"VisibilityTimeout": "3600"})
    put(queue, "1")
    assert export(*words, at="refused").returncode == 3
    assert [run.info.status for run in client.search_runs(["0"])] == ["FAILED"]
    put(queue, "1")  # an hour later
    assert export(*words).returncode == 0
    assert [run.info.status for run in client.search_runs(["0"])] == ["FINISHED"]


def test_wandb_gets_the_run_by_the_same_id_and_another_one_by_another(queue, tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    words = ("wandb", "--queue", queue, "--to", "debugging")
    put(queue, "1")
    assert export(*words, at="sent").returncode == -signal.SIGKILL
    assert export(*words).returncode == 0
    put(queue, "2")
    assert export(*words).returncode == 0
    ids = [folder.name.rpartition("-")[2] for folder in tmp_path.glob("wandb/offline-run-*")]
    assert len(ids) == 3
    assert len(set(ids)) == 2
