"""A run saved to a bucket: the same files, and how many requests they take."""

import boto3
import pytest

import smdebug
from smdebug import SaveConfig
from smdebug.exceptions import RunEnded
from smdebug.trials import create_trial
from tests.support.mocked_aws import mocked_aws


@pytest.fixture
def requests(monkeypatch):
    """Every request that reaches S3, as (operation, key)."""
    seen = []
    with mocked_aws():
        boto3.client("s3").create_bucket(Bucket="runs")
        original = boto3.session.Session.client

        def client(self, *args, **kwargs):
            made = original(self, *args, **kwargs)
            made.meta.events.register(
                "provide-client-params.s3",
                lambda params, model, **_: seen.append((model.name, params.get("Key"))),
            )
            return made

        monkeypatch.setattr(boto3.session.Session, "client", client)
        yield seen


def test_a_run_on_s3_takes_two_puts_a_step(requests):
    with smdebug.Hook("s3://runs/a/run", save_config=SaveConfig(save_interval=1)) as hook:
        for step in range(5):
            with hook.step():
                hook.record("loss", float(step))
    puts = [key for operation, key in requests if operation == "PutObject"]
    others = [(operation, key) for operation, key in requests if operation != "PutObject"]
    assert sum("/events/" in key for key in puts) == sum("/index/" in key for key in puts) == 5
    puts.remove("a/run/origin.json")  # once; it comes when git has answered
    assert [key for key in puts if "/events/" not in key and "/index/" not in key] == [
        "a/run/collections/000000000/worker_0_collections.json",
        "a/run/collections/000000000/worker_0_collections.json",  # with the closing note
        "a/run/training_job_end.ts",
    ]
    assert others == [
        ("HeadObject", "a/run/training_job_end.ts"),
        ("GetObject", "a/run/collections/000000000/worker_0_collections.json"),
        ("GetObject", "a/run/control/zoom"),
        ("GetObject", "a/run/control/stop"),
    ]
    assert create_trial("s3://runs/a/run").tensor("loss").value(3) == [3.0]


def test_a_finished_run_on_s3_is_refused(requests):
    smdebug.Hook("s3://runs/done").close()
    with pytest.raises(RunEnded):
        smdebug.Hook("s3://runs/done")


def test_a_missing_bucket_does_not_stop_the_training(requests, capsys):
    with smdebug.Hook("s3://missing/run", save_config=SaveConfig(save_interval=1)) as hook:
        for step in range(3):
            with hook.step():
                hook.record("loss", float(step))
    assert "missing" in capsys.readouterr().out
