"""Canaries: moto's own behaviour where local_aws/moto_fixes.py replaces it. If one fails, remove the fix.

Nothing is patched here: the stacks of other tests run in other processes.
"""

from __future__ import annotations

import ast
import inspect
import json
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from moto import mock_aws
from moto.s3 import notifications

from local_aws import moto_fixes

REGION = "us-east-1"
ACCOUNT = "123456789012"


@pytest.fixture(autouse=True)
def aws(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    with mock_aws(config={"lambda": {"use_docker": False}}):
        yield


def test_moto_does_not_read_the_times_that_it_writes_into_states():
    from moto.stepfunctions.parser.asl.component.state import state
    from moto.stepfunctions.parser.asl.component.state.choice.comparison.operator.implementations import (
        is_operator,
    )

    written = state.datetime.datetime.now(tz=state.datetime.timezone.utc).isoformat()
    assert is_operator.IsTimestamp.string_to_timestamp(written) is None


def test_moto_lists_its_folder_for_each_request(monkeypatch: pytest.MonkeyPatch):
    from moto import backends
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

    listed: list[str] = []
    list_folder = backends.os.listdir
    monkeypatch.setattr(backends.os, "listdir", lambda path: listed.append(path) or list_folder(path))
    monkeypatch.setattr(
        backends, "list_of_moto_modules", backends.list_of_moto_modules
    )  # put back afterwards
    server = DomainDispatcherApplication(create_backend_app)
    for _ in range(2):
        assert server.get_backend_for_host("dynamodb") == "dynamodb"
    assert len(listed) == 2

    moto_fixes.list_services_once()
    listed.clear()
    assert server.get_backend_for_host("dynamodb") == "dynamodb"
    assert listed == []


def finishes_while_held(lock: Any, act: Any) -> bool:
    """Whether `act` finishes in another thread while this one holds the lock."""
    with lock:
        thread = threading.Thread(target=act)
        thread.start()
        thread.join(60)
        finished = not thread.is_alive()
    thread.join()
    return finished


def test_two_threads_update_dynamodb_at_once():
    from moto.dynamodb.models import DynamoDBBackend

    both = threading.Barrier(2, timeout=60)
    backend = DynamoDBBackend(REGION, ACCOUNT)
    backend.get_table = lambda *_: both.wait()  # passes only with two threads inside
    passed = []

    def update() -> None:
        try:
            backend.put_item("t", {}, None, None, None)
        except threading.BrokenBarrierError:
            pass
        except Exception:
            passed.append(True)

    threads = [threading.Thread(target=update) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert passed == [True, True]


def test_deleting_a_message_does_not_take_the_lock_of_the_queue():
    from moto.sqs.models import sqs_backends

    client = boto3.client("sqs")
    url = client.create_queue(QueueName="q")["QueueUrl"]
    client.send_message(QueueUrl=url, MessageBody="x")
    (message,) = client.receive_message(QueueUrl=url)["Messages"]
    queue = sqs_backends[ACCOUNT][REGION].queues["q"]
    assert finishes_while_held(queue._messages_lock, lambda: queue.delete_message(message["ReceiptHandle"]))


def test_a_function_needs_docker(monkeypatch: pytest.MonkeyPatch):
    from moto.awslambda.models import LambdaFunction

    monkeypatch.setitem(sys.modules, "docker", None)
    monkeypatch.setitem(sys.modules, "docker.errors", None)
    with pytest.raises(ImportError):
        LambdaFunction._invoke_lambda(SimpleNamespace())


def test_a_rule_cannot_call_a_function():
    client = boto3.client("events")
    client.put_rule(Name="r", EventPattern='{"source": ["x"]}')
    arn = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:f"
    client.put_targets(Rule="r", Targets=[{"Id": "1", "Arn": arn}])
    with pytest.raises(NotImplementedError):
        client.put_events(Entries=[{"Source": "x", "DetailType": "y", "Detail": "{}"}])


def test_an_s3_notification_has_no_sequencer_encodes_slashes_and_checks_no_policy():
    sqs, s3 = boto3.client("sqs"), boto3.client("s3")
    url = sqs.create_queue(QueueName="q")["QueueUrl"]
    s3.create_bucket(Bucket="bucket")
    arn = f"arn:aws:sqs:{REGION}:{ACCOUNT}:q"
    configuration = {"QueueArn": arn, "Events": ["s3:ObjectCreated:*"]}
    s3.put_bucket_notification_configuration(
        Bucket="bucket", NotificationConfiguration={"QueueConfigurations": [configuration]}
    )
    s3.put_object(Bucket="bucket", Key="run/index/1.json", Body=b"")
    messages = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]
    bodies = [json.loads(message["Body"]) for message in messages]
    (stored,) = [body["Records"][0]["s3"]["object"] for body in bodies if "Records" in body]
    assert stored["key"] == "run%2Findex%2F1.json"
    assert "sequencer" not in stored


def test_all_s3_events_have_the_same_sequencer():
    source = inspect.getsource(notifications._send_event_bridge_message)
    assert f'"sequencer": "{moto_fixes._MOTOS_SEQUENCER}"' in source


def test_messages_become_visible_by_the_clock_of_the_machine(monkeypatch: pytest.MonkeyPatch):
    from moto.sqs import models

    client = boto3.client("sqs")
    url = client.create_queue(QueueName="q")["QueueUrl"]
    client.send_message(QueueUrl=url, MessageBody="later", DelaySeconds=600)
    assert "Messages" not in client.receive_message(QueueUrl=url)
    ahead = models.unix_time() + 601
    monkeypatch.setattr(models, "unix_time", models.unix_time)
    monkeypatch.setattr(models, "unix_time_millis", models.unix_time_millis)
    moto_fixes.use_local_time(lambda: ahead)
    assert client.receive_message(QueueUrl=url)["Messages"]


def test_a_workflow_makes_an_anonymous_client_for_each_task():
    from moto.stepfunctions.parser.asl.utils.boto_client import boto_client_for

    role = SimpleNamespace(role_arn="arn:aws:iam::123456789012:role/workflow")
    first = boto_client_for(REGION, "sqs", state_credentials=role)
    second = boto_client_for(REGION, "sqs", state_credentials=role)
    assert first is not second
    assert first._request_signer._credentials.access_key == "ak"


def test_paths_of_a_workflow_are_not_cached():
    import moto.stepfunctions.parser.asl.component.common.path.result_path as result_path
    import moto.stepfunctions.parser.asl.utils.json_path as json_path

    for module in (json_path, result_path):
        assert module.parse("$.a") is not module.parse("$.a")


def test_parsed_workflows_are_not_cached_and_their_parts_make_keys_lazily():
    from moto.stepfunctions.parser.asl.component.eval_component import EvalComponent
    from moto.stepfunctions.parser.asl.parse.asl_parser import AmazonStateLanguageParser

    definition = '{"StartAt": "A", "States": {"A": {"Type": "Succeed"}}}'
    first, second = (AmazonStateLanguageParser.parse(definition)[0] for _ in range(2))
    assert first is not second
    assert "self.__heap_key = long_uid()" in inspect.getsource(EvalComponent.heap_key.fget)


PARSER = "moto.stepfunctions.parser.asl.parse.asl_parser"


def test_the_parser_of_workflows_imports_all_of_ec2():
    assert "moto.ec2.models" in modules_after(f"import {PARSER}")


def test_the_parser_of_workflows_does_without_ec2_and_batch_can_still_be_imported():
    fix = "from local_aws.moto_fixes import import_workflows_without_ec2 as fix; fix()"
    assert "moto.ec2" not in modules_after(f"{fix}; import {PARSER}")
    assert "moto.ec2" in modules_after(f"{fix}; import moto.batch.models")


def test_moto_without_docker_ends_a_job_of_batch_as_it_is_submitted():
    with mock_aws(config={"batch": {"use_docker": False}}):
        batch, iam = boto3.client("batch"), boto3.client("iam")
        role = iam.create_role(RoleName="batch", AssumeRolePolicyDocument="{}")["Role"]["Arn"]
        place = batch.create_compute_environment(
            computeEnvironmentName="machines", type="UNMANAGED", state="ENABLED", serviceRole=role
        )["computeEnvironmentArn"]
        order = [{"order": 1, "computeEnvironment": place}]
        batch.create_job_queue(jobQueueName="day", priority=1, state="ENABLED", computeEnvironmentOrder=order)
        image = {"image": "train", "vcpus": 1, "memory": 128, "command": ["train"]}
        batch.register_job_definition(jobDefinitionName="train", type="container", containerProperties=image)
        job = batch.submit_job(jobName="t", jobQueue="day", jobDefinition="train")["jobId"]
        assert batch.describe_jobs(jobs=[job])["jobs"][0]["status"] == "SUCCEEDED"


def modules_after(program: str) -> set[str]:
    """The modules that a new process has imported once it has run the program."""
    program += "; import sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(moto_fixes.__file__).parents[1],
    )
    return set(done.stdout.split())


def test_a_parsed_workflow_keeps_no_state_of_an_execution():
    """Executions can share it only then: the classes that set attributes later are workers, not parts."""
    import moto.stepfunctions.parser.asl.component as components

    workers = {"IterationWorker", "JobPool", "Counter", "MapRunRecord", "BranchWorker"}
    workers |= {"BranchWorkerPool"}
    found = set()
    for file in Path(components.__path__[0]).rglob("*.py"):
        for kind in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(kind, ast.ClassDef):
                found |= {(kind.name, name) for name in attributes_set_later(kind)}
    assert {attribute for attribute in found if attribute[0] not in workers} == {
        ("EvalComponent", "__heap_key")
    }


def attributes_set_later(kind: ast.ClassDef) -> set[str]:
    """The attributes of `self` that are set outside of construction."""
    later = [
        method
        for method in kind.body
        if isinstance(method, ast.FunctionDef)
        and method.name not in ("__init__", "__new__", "from_state_props")
    ]
    return {
        node.attr
        for method in later
        for node in ast.walk(method)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    }


def test_nothing_is_patched_in_this_process():
    from moto.events.models import Rule

    assert Rule.send_to_targets.__module__ == "moto.events.models"
