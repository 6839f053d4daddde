"""The client over AWS's own interfaces: which stack, which table, whose credentials."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from functions.adapters.dynamodb import DynamoItems
from smdebug.exceptions import (
    AccessDenied,
    RunUnknown,
    SMDebugRuntimeError,
    StackUnknown,
    StorageUnavailable,
)
from smdebug.service import connect
from smdebug.service.aws import (
    Logs,
    default_clients,
    filter_pattern,
    find_deployment,
    output_of,
)
from tests.service.stocked import BEGUN, LOSS, RUN, VANISHING, Stock, failing, rule
from tests.support.mocked_aws import mocked_aws

TABLE = {
    "Type": "AWS::DynamoDB::Table",
    "Properties": {
        "TableName": "smdebug-steps",
        "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": [
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ],
        "AttributeDefinitions": [
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "sk", "AttributeType": "S"},
        ],
    },
}
RESOURCES = {
    "Steps": TABLE,
    "Runs": {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": "my-bucket"}},
    "EvaluateLog": {"Type": "AWS::Logs::LogGroup", "Properties": {"LogGroupName": "evaluate"}},
    "CustomLog": {"Type": "AWS::Logs::LogGroup", "Properties": {"LogGroupName": "custom"}},
}
OUTPUTS = {
    "StepIndex": {"Value": {"Ref": "Steps"}},
    "Bucket": {"Value": {"Ref": "Runs"}},
    "TopicArn": {"Value": "arn:aws:sns:us-east-1:123456789012:alerts"},
    "EvaluationLog": {"Value": {"Ref": "EvaluateLog"}},
    "CustomRuleLog": {"Value": {"Ref": "CustomLog"}},
}
ROOT = Path(__file__).parents[2]
NAMED = ("SMDEBUG_TABLE", "SMDEBUG_BUCKET", "SMDEBUG_STACK", "SMDEBUG_LOG_GROUPS")


@pytest.fixture(scope="module")
def aws() -> Iterator[None]:
    with mocked_aws():
        for name in NAMED:
            os.environ.pop(name, None)
        template = {"Resources": RESOURCES, "Outputs": OUTPUTS}
        stacks = boto3.client("cloudformation")
        stacks.create_stack(StackName="smdebug", TemplateBody=json.dumps(template))
        other = {"Resources": {"Other": {"Type": "AWS::SNS::Topic"}}}
        stacks.create_stack(StackName="website", TemplateBody=json.dumps(other))
        stock = Stock(DynamoItems("smdebug-steps", boto3.client("dynamodb")))
        stock.begin(first_seen=BEGUN)
        stock.group(failing(VANISHING, 3), rule(LOSS, last_good=3), cursor=3)
        stock.wrote(3)
        for step in range(3):
            stock.found(VANISHING, step)
        yield


def test_a_stack_is_found_by_its_name_and_names_its_resources(aws):
    debugger = connect(stack="smdebug")
    assert debugger.bucket == "my-bucket"
    assert debugger.outputs["TopicArn"].endswith(":alerts")
    assert repr(debugger) == "<the debugger of the runs in s3://my-bucket, stack smdebug>"
    (run,) = debugger.runs()
    assert run.run == RUN
    assert [rule.name for rule in debugger.run(f"s3://{RUN}").statuses()] == ["fc", "loss"]


def test_the_default_stack_is_called_smdebug(aws):
    assert [run.run for run in connect().runs()] == [RUN]


def test_the_environment_names_another_stack_or_a_table(aws, monkeypatch):
    monkeypatch.setenv("SMDEBUG_STACK", "website")
    with pytest.raises(StackUnknown, match="not a debugger"):
        connect()
    monkeypatch.setenv("SMDEBUG_TABLE", "smdebug-steps")
    monkeypatch.setenv("SMDEBUG_BUCKET", "my-bucket")
    monkeypatch.setenv("SMDEBUG_LOG_GROUPS", "evaluate,custom")
    debugger = connect()
    assert debugger.run("teams/resnet").run == RUN
    assert debugger.run(RUN).logs("loss") == []


def test_arguments_take_precedence_over_the_environment(aws, monkeypatch):
    monkeypatch.setenv("SMDEBUG_TABLE", "another")
    assert [run.run for run in connect(stack="smdebug").runs()] == [RUN]
    assert [run.run for run in connect(table="smdebug-steps").runs()] == [RUN]


def test_a_missing_stack_is_named_with_its_region(aws):
    with pytest.raises(StackUnknown, match="The stack smdbug in us-east-1: it does not exist"):
        connect(stack="smdbug")


def test_a_missing_table_is_named_with_its_region(aws):
    with pytest.raises(StackUnknown, match="The table nope in us-east-1: it does not exist"):
        connect(table="nope").runs()


def test_clients_of_another_session_can_be_given(aws):
    session = boto3.Session(region_name="us-west-2")
    with pytest.raises(StackUnknown, match="The stack smdebug in us-west-2"):
        connect(client=session.client)


def test_each_client_is_made_once(aws):
    made = []

    def client(service: str) -> Any:
        made.append(service)
        return boto3.client(service)

    run = connect(client=client).run(RUN)
    run.statuses()
    run.findings(limit=1)
    run.attach("ExplodingTensor")
    run.logs("fc")
    assert sorted(made) == ["cloudformation", "dynamodb", "logs", "s3"]


def test_the_outputs_of_a_users_own_stack_have_a_path_and_a_digest():
    outputs = {"WatchTable0A1B2C3D": "t", "WatchBucketDEADBEEF": "b", "TableauUrl": "x"}
    assert output_of(outputs, "Table") == "t"
    assert output_of(outputs, "Bucket") == "b"
    assert output_of(outputs, "TopicArn") is None
    assert output_of({"ATable0A1B2C3D": "1", "BTable0A1B2C3D": "2"}, "Table") is None
    assert output_of({"ATable0A1B2C3D": "1", "Table": "2"}, "Table") == "2"


def test_the_outputs_of_the_deployed_stack_are_found():
    outputs_of_the_stack = ast.parse((ROOT / "infra" / "outputs.py").read_text(encoding="utf-8"))
    names = [
        ast.literal_eval(node.args[0])
        for node in ast.walk(outputs_of_the_stack)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "self._add"
    ]
    outputs = {name: f"the {name}" for name in names}
    client = boto3.client("cloudformation", region_name="us-east-1")
    listed = [{"OutputKey": key, "OutputValue": value} for key, value in outputs.items()]
    known = {"StackName": "s", "CreationTime": "2026-01-01", "StackStatus": "CREATE_COMPLETE"}
    with Stubber(client) as stub:
        stub.add_response("describe_stacks", {"Stacks": [{**known, "Outputs": listed}]})
        found = find_deployment("s", lambda _: client)
    assert found.table == "the StepIndex"
    assert found.bucket == "the Bucket"
    assert set(found.log_groups) == {"the EvaluationLog", "the CustomRuleLogs"}


def test_many_findings_are_read_page_by_page(aws):
    found = connect().run(RUN).findings(limit=2)
    assert [finding.step for finding in found] == [1, 2]
    assert found[0].worst[0]["threshold"] == 1e-7


def test_rules_and_the_stop_request_are_written_below_the_run(aws):
    run = connect().run(RUN)
    run.set_rules([LOSS])
    run.stop("enough")
    read = boto3.client("s3").get_object
    rules = json.load(read(Bucket="my-bucket", Key="teams/resnet/rules.json")["Body"])
    assert [rule["name"] for rule in rules["rules"]] == ["loss"]
    stop = json.load(read(Bucket="my-bucket", Key="teams/resnet/control/stop")["Body"])
    assert stop["reason"] == "enough"


# Logs


def log(group: str, *lines: tuple[float, Any]) -> None:
    client = boto3.client("logs")
    stream = f"stream-{len(client.describe_log_streams(logGroupName=group)['logStreams'])}"
    client.create_log_stream(logGroupName=group, logStreamName=stream)
    events = [
        {
            "timestamp": int(at * 1000),
            "message": line if isinstance(line, str) else json.dumps(line),
        }
        for at, line in lines
    ]
    client.put_log_events(logGroupName=group, logStreamName=stream, logEvents=events)


def test_the_logs_of_a_rule_are_its_lines_about_the_run_in_order(aws):
    import time

    now = time.time()
    line = {"run": RUN, "rule": "fc", "level": "INFO", "step": 3}
    log(
        "evaluate",
        (now - 50, {**line, "message": "second"}),
        (now - 40, {**line, "rule": "loss", "message": "of another rule"}),
        (now - 30, {**line, "run": "b/r", "message": "of another run"}),
        (now - 20, "START RequestId: 1"),
        (now - 10, {**line, "rule": VANISHING.id, "message": "third", "step": None}),
    )
    log(
        "custom",
        (now - 60, {**line, "message": "first"}),
        (now - 45, {**line, "message": "between"}),
        (now - 5, '["no object"]'),
    )
    run = connect().run(RUN)
    lines = run.logs("VanishingGradient")
    assert [line.message for line in lines] == ["first", "second", "between", "third"]
    assert (lines[1].step, lines[1].level, lines[3].step) == (3, "INFO", None)
    assert lines[1].fields["run"] == RUN
    assert [line.message for line in run.logs("fc", since=30)] == ["third"]
    assert "second" in repr(lines)
    json.dumps(lines.to_dict())


def test_a_missing_log_group_is_named(aws):
    with pytest.raises(StackUnknown, match="The log group gone in us-east-1"):
        connect(log_groups=["gone"]).run(RUN).logs("fc")


def test_the_filter_pattern_is_quoted():
    assert filter_pattern('b/a "b" \\', ["fc"]) == ('{ ($.run = "b/a \\"b\\" \\\\") && ($.rule = "fc") }')
    assert filter_pattern("b", ["x", "y"]) == ('{ ($.run = "b") && ($.rule = "x" || $.rule = "y") }')


def test_names_too_long_for_a_filter_pattern_are_filtered_locally():
    assert filter_pattern("b/" + "x" * 1024, ["fc"]) == ""


def test_logs_are_read_page_by_page():
    client = boto3.client("logs", region_name="us-east-1")
    event = {"timestamp": 1000, "message": json.dumps({"run": RUN, "rule": "fc", "message": "a"})}
    with Stubber(client) as stub:
        asked = {
            "logGroupName": "g",
            "filterPattern": filter_pattern(RUN, ["fc"]),
            "startTime": 5000,
        }
        stub.add_response("filter_log_events", {"events": [event], "nextToken": "2"}, asked)
        stub.add_response("filter_log_events", {"events": [event]}, {**asked, "nextToken": "2"})
        lines = list(Logs(["g"], lambda _: client).lines(RUN, ["fc"], 5.0))
    assert [line.message for line in lines] == ["a", "a"]


# What can go wrong


def answering(code: str, message: str = "") -> Any:
    client = boto3.client("dynamodb", region_name="eu-west-1")
    stub = Stubber(client)
    stub.add_client_error("query", code, message)
    stub.activate()
    return connect(table="steps", client=lambda service: client)


@pytest.mark.parametrize(
    ("code", "error", "message"),
    [
        ("AccessDeniedException", AccessDenied, "the credentials lack dynamodb:Query on it"),
        ("ExpiredTokenException", AccessDenied, "renew them"),
        ("UnrecognizedClientException", AccessDenied, "not accepted"),
        ("ThrottlingException", StorageUnavailable, "try again later"),
        ("ResourceNotFoundException", StackUnknown, "it does not exist"),
        ("ValidationException", SMDebugRuntimeError, "AWS refuses dynamodb:Query"),
    ],
)
def test_errors_of_aws_become_typed_errors(code, error, message):
    with pytest.raises(error, match="The table steps in eu-west-1") as caught:
        answering(code, "User: arn:… is not authorized").runs()
    assert message in str(caught.value)


def test_missing_credentials_are_reported_with_a_remedy(monkeypatch, tmp_path):
    for name in (*NAMED, "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    session = boto3.Session(region_name="eu-west-1")
    with pytest.raises(AccessDenied, match="aws configure"):
        connect(client=session.client)


def test_the_remedy_for_a_missing_region_helps(monkeypatch, tmp_path):
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    assert default_clients()("cloudformation").meta.region_name == "eu-central-1"
    monkeypatch.setenv("AWS_REGION", "eu-west-3")
    assert default_clients()("cloudformation").meta.region_name == "eu-west-3"


def test_a_missing_region_is_reported_with_a_remedy(monkeypatch, tmp_path):
    for name in (*NAMED, "AWS_DEFAULT_REGION", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    with pytest.raises(StackUnknown, match="set AWS_REGION"):
        connect(stack="smdebug")


def test_an_unreachable_service_is_named():
    from botocore.config import Config

    def client(service: str) -> Any:
        quick = Config(retries={"total_max_attempts": 1}, connect_timeout=1)
        return boto3.client(
            service,
            region_name="eu-west-1",
            endpoint_url="http://127.0.0.1:9",
            aws_access_key_id="testing",
            aws_secret_access_key="testing",
            config=quick,
        )

    with pytest.raises(StorageUnavailable, match="AWS cannot be reached"):
        connect(table="steps", client=client).runs()


def test_an_unknown_run_is_refused_on_aws(aws):
    with pytest.raises(RunUnknown, match=f"Did you mean {RUN}"):
        connect().run("my-bucket/teams/resnot")


def test_missing_boto3_is_reported_with_the_extra_to_install(tmp_path: Path):
    (tmp_path / "boto3.py").write_text("raise ImportError('no boto3')")
    script = "import smdebug.service as s\ntry: s.connect()\nexcept Exception as e: print(repr(e))"
    layer = ROOT / "layers" / "smdebug_core" / "python"
    result = subprocess.run(
        [sys.executable, "-B", "-c", script],
        env={"PYTHONPATH": f"{tmp_path}{os.pathsep}{layer}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "SMDebugCustomerError" in result.stdout
    assert "pip install" in result.stdout
    assert "[aws]" in result.stdout
