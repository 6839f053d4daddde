"""Where moto does otherwise than AWS, and what is put in its place: one function for each.

Each has a test in tests/local_aws/test_moto_fixes.py that shows moto as it is, and fails on the day when
it is no longer needed. The version of moto is pinned for the same reason.
"""

from __future__ import annotations

import functools
import itertools
import json
import threading
import uuid
from collections.abc import Callable, Mapping
from typing import Any, cast

Invoke = Callable[[str, bytes], tuple[bytes, bool]]
Deliver = Callable[[str, Mapping[str, Any], Mapping[str, Any]], None]
_locked = threading.RLock()
_writes = itertools.count(1)
_MOTOS_SEQUENCER = "617f08299329d189"


def make_dynamodb_thread_safe() -> None:
    """Two threads both pass one ConditionExpression, and ADDs lose members: one at a time, then."""
    from moto.dynamodb.models import DynamoDBBackend

    for name in (
        "update_item",
        "put_item",
        "delete_item",
        "transact_write_items",
        "batch_write_item",
    ):
        original = getattr(DynamoDBBackend, name)
        if not hasattr(original, "one_at_a_time"):
            setattr(DynamoDBBackend, name, _one_at_a_time(original))


def make_queues_thread_safe() -> None:
    """A message that is sent while another is deleted gets lost, and two pollers may get the same one."""
    from moto.sqs.models import Queue, SQSBackend

    receive, delete = SQSBackend.receive_message, Queue.delete_message
    if hasattr(receive, "one_at_a_time"):
        return

    @functools.wraps(receive)
    def receive_alone(backend: Any, queue_name: str, *given: Any, **named: Any) -> Any:
        with backend.get_queue(queue_name)._messages_lock:  # waiting for a message lets go of it
            return receive(backend, queue_name, *given, **named)

    @functools.wraps(delete)
    def delete_alone(queue: Any, *given: Any) -> None:
        with queue._messages_lock:
            delete(queue, *given)

    receive_alone.one_at_a_time = True  # type: ignore[attr-defined]
    SQSBackend.receive_message = receive_alone
    Queue.delete_message = delete_alone


def run_handlers(invoke: Invoke) -> None:
    """Without Docker, a function answers with an echo: the real handler, instead."""
    from moto.awslambda.models import LambdaFunction

    def run(function: Any, event: Any = None) -> tuple[str, bool, str]:
        answer, failed = invoke(function.function_name, json.dumps(event).encode())
        return answer.decode(), failed, ""

    LambdaFunction._invoke_lambda = run


def deliver_events(deliver: Deliver, see: Callable[[Mapping[str, Any]], None]) -> None:
    """Lambda, Step Functions and SNS are no targets of a rule, and no queue is asked for its policy."""
    from moto.events.models import Rule

    def send(rule: Any, event: Mapping[str, Any], transform_input: bool = True) -> None:
        _number(event)
        see(event)
        pattern = getattr(rule.event_pattern, "_raw_pattern", None) or rule.event_pattern.dump()
        if rule.state == "DISABLED" or not pattern or not rule.event_pattern.matches_event(event):
            return
        for target in list(rule.targets):
            deliver(rule.arn, target, event)

    Rule.send_to_targets = send


def tell_of_objects_as_s3_does(deliver: Callable[[str, str, str], None]) -> None:
    """S3 leaves the slashes of a key as they are and numbers the writes of a key; moto does neither.

    Nor does moto ask the queue whether it takes messages of this bucket, or say when it could not send one.
    """
    from moto.s3 import notifications

    original = notifications._get_s3_event
    if hasattr(original, "as_s3_does"):
        original = original.as_s3_does

    def event(*told: Any) -> Any:
        made = original(*told)
        for record in made["Records"]:
            written = record["s3"]["object"]
            written["key"] = written["key"].replace("%2F", "/")
            written["sequencer"] = f"{next(_writes):016X}"
        return made

    event.as_s3_does = original  # type: ignore[attr-defined]

    def send(account: str, body: Any, queue: str, region: str) -> None:
        # A bucket that is told whom to notify sends `s3:TestEvent` first, as S3 does.
        bucket = body["Records"][0]["s3"]["bucket"]["name"] if "Records" in body else body["Bucket"]
        deliver(f"arn:aws:s3:::{bucket}", queue, json.dumps(body))

    notifications._get_s3_event = event
    notifications._send_sqs_message = send


def tell_the_local_time(now: Callable[[], float]) -> None:
    """Messages become visible by the machine's clock, which nobody can move."""
    from moto.sqs import models

    models.unix_time = lambda *_: now()
    models.unix_time_millis = lambda *_: now() * 1000


def keep_clients_of_workflows(make: Callable[[str, str, str], Any]) -> None:
    """A workflow makes a boto3 client for every task, in nobody's name: kept, and in that of its role."""
    import sys

    import moto.stepfunctions.parser.asl.component.state.exec.state_task.service.state_task_service_factory
    import moto.stepfunctions.parser.asl.utils.boto_client as home
    import moto.stepfunctions.parser.models  # noqa: F401 - whoever uses it has to be there

    before = home.boto_client_for

    def client(region: str, service: str, state_credentials: Any = None) -> Any:
        return make(region, service, getattr(state_credentials, "role_arn", ""))

    for module in list(sys.modules.values()):
        if getattr(module, "boto_client_for", None) is before:
            module.boto_client_for = client  # type: ignore[attr-defined]


def parse_paths_once() -> None:
    """Every JSONPath of a workflow is parsed anew each time, by a parser that is built anew each time."""
    import moto.stepfunctions.parser.asl.component.common.path.result_path as result_path
    import moto.stepfunctions.parser.asl.utils.json_path as json_path

    for module in (json_path, result_path):
        if not hasattr(module.parse, "cache_info"):
            module.parse = functools.lru_cache(4096)(module.parse)


def parse_workflows_once() -> None:
    """A workflow is parsed anew for each execution, a tenth of a second of this process's time.

    What is parsed can be shared, but for the key of each part, which two executions might make at once.
    """
    from moto.stepfunctions.parser.asl.component.eval_component import EvalComponent
    from moto.stepfunctions.parser.asl.parse.asl_parser import AmazonStateLanguageParser

    if not hasattr(AmazonStateLanguageParser.parse, "cache_info"):
        parse = functools.lru_cache(16)(AmazonStateLanguageParser.parse)
        AmazonStateLanguageParser.parse = staticmethod(parse)
        EvalComponent.heap_key = property(lambda part: f"part-{id(part)}")


def _number(event: Mapping[str, Any]) -> None:
    """Moto's events of S3 all have the same id and the same sequencer, which tells which write came last."""
    written = event["detail"].get("object", {}) if event["source"] == "aws.s3" else {}
    if written.get("sequencer") == _MOTOS_SEQUENCER:
        written["sequencer"] = f"{next(_writes):016X}"
        cast(dict[str, Any], event)["id"] = str(uuid.uuid4())


def _one_at_a_time(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def alone(*given: Any, **named: Any) -> Any:
        with _locked:
            return function(*given, **named)

    alone.one_at_a_time = True  # type: ignore[attr-defined]
    return alone
