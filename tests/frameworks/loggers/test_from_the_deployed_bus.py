"""Finished runs of a queue, read from S3 on moto and sent to the tools themselves, which read them back.

No framework takes part: it is here because this environment has both moto and the tools.
"""

from __future__ import annotations

import json
import subprocess
import sys

import boto3
import pytest

from smdebug.cli.main import main
from tests.sinks.made import failing_run
from tests.sinks.real.test_wandb import messages, of, rows
from tests.support.mocked_aws import mocked_aws
from tests.ui.buckets import copy_run

FOUND = {"name": "mine", "status": "IssuesFound", "reason": "the norm is 9", "last_found": 5}


@pytest.fixture
def queue(tmp_path, monkeypatch):
    """The address of a queue with one finished run, in which a deployed rule has found something."""
    monkeypatch.chdir(tmp_path)
    with mocked_aws():
        s3 = boto3.client("s3")
        s3.create_bucket(Bucket="bucket")
        copy_run(s3, failing_run(tmp_path / "saved"), "bucket", "team/run-a")
        sqs = boto3.client("sqs")
        url = sqs.create_queue(QueueName="exports")["QueueUrl"]
        detail = {"run": "bucket/team/run-a", "state": "Finished", "summary": {"rules": [FOUND]}}
        sqs.send_message(
            QueueUrl=url, MessageBody=json.dumps({"detail-type": "Run State Change", "detail": detail})
        )
        yield url


def test_mlflow(queue, tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    store = f"sqlite:///{tmp_path}/mlflow.db"
    client = mlflow.MlflowClient(tracking_uri=store)
    client.create_experiment("watched", artifact_location=f"file://{tmp_path}/artifacts")
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "watched")
    assert main(["export", "mlflow", "--queue", queue, "--once", "--to", store]) == 0
    (run,) = client.search_runs([client.get_experiment_by_name("watched").experiment_id])
    assert (run.info.run_name, run.info.status) == ("run-a", "FINISHED")
    assert run.data.tags["smdebug.path"] == "s3://bucket/team/run-a"
    assert run.data.tags["smdebug.problems"] == "2"
    assert "NaN" in run.data.tags["smdebug.problem.1"]
    assert "the norm is 9" in run.data.tags["smdebug.problem.2"]
    assert len(client.get_metric_history(run.info.run_id, "training/loss")) == 30


def test_wandb(queue, tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    assert main(["export", "wandb", "--queue", queue, "--once", "--to", "debugging"]) == 0
    found = list(messages(tmp_path))
    assert [run.display_name for run in of(found, "run")] == ["run-a"]
    assert len([row for row in rows(found) if "training/loss" in row]) == 30
    assert ["NaN" in alert.title for alert in of(found, "alert")] == [True, False]


def test_trackio(queue, tmp_path, monkeypatch):
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    assert main(["export", "trackio", "--queue", queue, "--once", "--to", "debugging"]) == 0
    command = "import sys; from trackio.cli import main; sys.exit(main())"
    words = ["get", "alerts", "--project", "debugging", "--json"]
    done = subprocess.run(
        [sys.executable, "-c", command, *words], capture_output=True, text=True, timeout=300
    )
    titles = [alert["title"] for alert in json.loads(done.stdout)["alerts"]]
    assert sorted("NaN" in title for title in titles) == [False, True]
