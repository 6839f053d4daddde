"""What `make smoke-aws` does in a real account, as far as this machine can do it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import boto3
import pytest

from local_aws import LocalAws, LocalDebugger
from tests.smoke import on_aws
from tests.smoke.runs import SmokeFailed, three_runs
from tests.support.mocked_aws import mocked_aws


def save_and_check(*names: str) -> None:
    with LocalAws() as aws, aws.as_default():
        three_runs(
            aws.connect(),
            aws.bucket,
            "smoke",
            aws.client("s3"),
            names=names,
            finish=LocalDebugger(aws, "smoke/").finish,
            say=lambda _: None,
        )


def test_the_healthy_and_the_failing_run_succeed_on_the_local_stack():
    save_and_check("healthy", "failing")


def test_a_result_that_is_wrong_fails(monkeypatch: pytest.MonkeyPatch):
    from tests.smoke import runs

    monkeypatch.setattr(runs, "DYING", runs.DYING.replace("os._exit(1)", "return False"))
    with pytest.raises(SmokeFailed, match="dying: the rules are"):
        save_and_check("dying")


def test_what_the_stacks_leave_is_deleted():
    with mocked_aws():
        s3, tables = boto3.client("s3"), boto3.client("dynamodb")
        s3.create_bucket(Bucket="left")
        s3.put_object(Bucket="left", Key="run/index/1.json", Body=b"")
        tables.create_table(
            TableName="left",
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        smoke = on_aws.Smoke("2.1", "mine", "eu-west-1")
        smoke.buckets, smoke.tables = {"left", "gone"}, {"left", "gone"}
        on_aws.delete_kept(smoke)
        assert s3.list_buckets()["Buckets"] == []
        assert tables.list_tables()["TableNames"] == []


def test_it_needs_npx_and_says_so():
    done = subprocess.run(
        [sys.executable, "-m", "tests.smoke.on_aws", "--cdk", "1"],
        cwd=Path(on_aws.__file__).parents[2],
        env={"PATH": "/nowhere", "PYTHONPATH": ":".join(filter(None, sys.path))},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "needs npx" in done.stderr


def test_each_command_of_the_cdk_names_the_stack_and_its_settings(monkeypatch: pytest.MonkeyPatch):
    commands, regions = [], set()

    def run(command, *, env, **_):
        commands.append(command)
        regions.update((env["AWS_REGION"], env["AWS_DEFAULT_REGION"]))

    monkeypatch.setattr(on_aws.subprocess, "run", run)
    on_aws.Smoke("2.1", "mine", "eu-west-1").destroy(bucket="b")
    # The CDK takes `-cstack=mine` for six options of one letter.
    context = ["-c", "stack=mine", "-c", "bucket=b"]
    assert commands == [["npx", "--yes", "aws-cdk@2.1", "destroy", "mine", *context, "--force"]]
    assert regions == {"eu-west-1"}


def test_an_account_that_is_not_prepared_is_told_before_anything_is_deployed():
    with mocked_aws():
        assert "aws-cdk@2.1 bootstrap" in on_aws.not_ready("2.1", "mine")
        version = {"Name": "/cdk-bootstrap/hnb659fds/version", "Value": "21", "Type": "String"}
        boto3.client("ssm").put_parameter(**version)
        assert on_aws.not_ready("2.1", "mine") == ""
        template = '{"Resources": {"T": {"Type": "AWS::SNS::Topic"}}}'
        boto3.client("cloudformation").create_stack(StackName="mine", TemplateBody=template)
        assert "The stack mine exists" in on_aws.not_ready("2.1", "mine")
