"""Replacements for parts of moto that differ from AWS, one function per difference.

Each has a canary in tests/local_aws/test_moto_fixes.py that shows moto's own behaviour, and fails once the
replacement is no longer needed. moto's version is pinned for the same reason.
"""

from __future__ import annotations

import functools
import importlib.util
import itertools
import json
import sys
import threading
import uuid
from collections.abc import Callable, Mapping
from datetime import datetime, timezone, tzinfo
from types import ModuleType, SimpleNamespace
from typing import Any, Self, cast

Invoke = Callable[[str, bytes], tuple[bytes, bool]]
Deliver = Callable[[str, Mapping[str, Any], Mapping[str, Any]], None]
WRITING = threading.RLock()  # held while an item is written
_writes = itertools.count(1)
_MOTOS_SEQUENCER = "617f08299329d189"


def import_workflows_without_ec2() -> None:
    """Let the parser of workflows do without moto's models of EC2: their import takes a second.

    The parser takes the names of the states of a job from `moto.batch.utils`, for workflows that start
    jobs of AWS Batch. Python imports the package `moto.batch` before it, and that imports the whole of
    EC2. Here is a package of that name which finds the same modules and imports them when Batch is used.
    """
    if "moto.batch" not in sys.modules:
        batch = importlib.util.find_spec("moto.batch")
        assert batch is not None
        sys.modules["moto.batch"] = package = ModuleType("moto.batch")
        package.__spec__ = batch
        package.__path__ = batch.submodule_search_locations or []
        vars(package)["__getattr__"] = _backends_of_batch


def _backends_of_batch(name: str) -> Any:
    if name != "batch_backends":
        raise AttributeError(name)
    from moto.batch.models import BatchBackend, batch_backends
    from moto.batch_simple.models import BatchSimpleBackend
    from moto.core.config import default_user_config

    default_user_config["batch"]["use_docker"] = False
    BatchSimpleBackend._mark_job_as_finished = _run_until_terminated
    BatchBackend.terminate_job = _terminate
    return batch_backends


def _run_until_terminated(backend: Any, include_start_attempt: bool, job: Any) -> None:
    """Begin a job. Without Docker, moto would end it at once."""
    backend.backend._jobs[job.job_id] = job
    job.job_started_at = datetime.now()
    job.log_stream_name = job._stream_name
    job._start_attempt()
    job.status = "RUNNING"


def _terminate(backend: Any, job_id: str, reason: str) -> None:
    """End a running job as failed. It is moto's thread for Docker that ends it elsewhere."""
    job = backend.get_job_by_id(job_id)
    if job is not None and not job.job_stopped:
        job.terminate(reason)
        job._mark_stopped(success=False)


def list_services_once() -> None:
    """Keep the names of moto's services: it lists its folder for each request while all others wait."""
    from moto import backends

    names = tuple(backends.list_of_moto_modules())
    backends.list_of_moto_modules = lambda: names


def make_dynamodb_thread_safe() -> None:
    """Serialize writes: two threads can pass the same ConditionExpression, and ADDs lose members."""
    from moto.dynamodb.models import DynamoDBBackend

    for name in (
        "update_item",
        "put_item",
        "delete_item",
        "transact_write_items",
        "batch_write_item",
    ):
        original = getattr(DynamoDBBackend, name)
        if not hasattr(original, "serialized"):
            setattr(DynamoDBBackend, name, _serialized(original))


def make_queues_thread_safe() -> None:
    """Lock a queue: sending during a deletion loses the message, and two pollers may get the same one."""
    from moto.sqs.models import Queue, SQSBackend

    receive, delete = SQSBackend.receive_message, Queue.delete_message
    if hasattr(receive, "serialized"):
        return

    @functools.wraps(receive)
    def locked_receive(backend: Any, queue_name: str, *args: Any, **kwargs: Any) -> Any:
        with backend.get_queue(queue_name)._messages_lock:  # released while waiting for a message
            return receive(backend, queue_name, *args, **kwargs)

    @functools.wraps(delete)
    def locked_delete(queue: Any, *args: Any) -> None:
        with queue._messages_lock:
            delete(queue, *args)

    locked_receive.serialized = True  # type: ignore[attr-defined]
    SQSBackend.receive_message = locked_receive
    Queue.delete_message = locked_delete


def run_handlers(invoke: Invoke) -> None:
    """Call the real handler: without Docker, moto's function returns its input."""
    from moto.awslambda.models import LambdaFunction

    def run(function: Any, event: Any = None) -> tuple[str, bool, str]:
        answer, failed = invoke(function.function_name, json.dumps(event).encode())
        return answer.decode(), failed, ""

    LambdaFunction._invoke_lambda = run


def deliver_events(deliver: Deliver, see: Callable[[Mapping[str, Any]], None]) -> None:
    """Support Lambda, Step Functions and SNS as targets of a rule, and check the policies of queues."""
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


def notify_as_s3_does(deliver: Callable[[str, str, str], None]) -> None:
    """Keep the slashes of a key, number its writes, and check the queue's policy, as S3 does."""
    from moto.s3 import notifications

    original = notifications._get_s3_event
    if hasattr(original, "as_s3_does"):
        original = original.as_s3_does

    def event(*args: Any) -> Any:
        notification = original(*args)
        for record in notification["Records"]:
            stored = record["s3"]["object"]
            stored["key"] = stored["key"].replace("%2F", "/")
            stored["sequencer"] = f"{next(_writes):016X}"
        return notification

    event.as_s3_does = original  # type: ignore[attr-defined]

    def send(account: str, body: Any, queue: str, region: str) -> None:
        # A bucket with a new notification configuration sends `s3:TestEvent` first, as S3 does.
        bucket = body["Records"][0]["s3"]["bucket"]["name"] if "Records" in body else body["Bucket"]
        deliver(f"arn:aws:s3:::{bucket}", queue, json.dumps(body))

    notifications._get_s3_event = event
    notifications._send_sqs_message = send


def use_local_time(now: Callable[[], float]) -> None:
    """Make messages visible by the local clock; moto uses the machine's, which cannot be moved."""
    from moto.sqs import models

    models.unix_time = lambda *_: now()
    models.unix_time_millis = lambda *_: now() * 1000


def use_local_time_in_workflows(now: Callable[[], float]) -> None:
    """Enter states at the local time, written as Step Functions does; compare all forms of ISO 8601.

    Moto writes the machine's time in a form that its own comparison of times does not read.
    """
    from moto.stepfunctions.parser.asl.component.state import state
    from moto.stepfunctions.parser.asl.component.state.choice.comparison.operator.implementations import (
        is_operator,
    )

    class LocalTime(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            return cls.fromtimestamp(now(), tz)

        def isoformat(self, *_: Any) -> str:
            return self.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"

    def timestamp(text: str) -> datetime | None:
        try:
            return datetime.fromisoformat(text)
        except (TypeError, ValueError):
            return None

    state.datetime = SimpleNamespace(datetime=LocalTime, timezone=timezone)
    is_operator.IsTimestamp.string_to_timestamp = staticmethod(timestamp)


def reuse_workflow_clients(make: Callable[[str, str, str], Any]) -> None:
    """Reuse clients with the workflow's role; moto makes an anonymous boto3 client for every task."""
    import sys

    import moto.stepfunctions.parser.asl.component.state.exec.state_task.service.state_task_service_factory
    import moto.stepfunctions.parser.asl.utils.boto_client as home
    import moto.stepfunctions.parser.models  # noqa: F401 - its users must be loaded

    before = home.boto_client_for

    def client(region: str, service: str, state_credentials: Any = None) -> Any:
        return make(region, service, getattr(state_credentials, "role_arn", ""))

    for module in list(sys.modules.values()):
        if getattr(module, "boto_client_for", None) is before:
            module.boto_client_for = client  # type: ignore[attr-defined]


def parse_paths_once() -> None:
    """Cache JSONPaths; moto builds a new parser for every evaluation of a path."""
    import moto.stepfunctions.parser.asl.component.common.path.result_path as result_path
    import moto.stepfunctions.parser.asl.utils.json_path as json_path

    for module in (json_path, result_path):
        if not hasattr(module.parse, "cache_info"):
            module.parse = functools.lru_cache(4096)(module.parse)


def parse_workflows_once() -> None:
    """Cache parsed workflows; moto parses one for every execution, which takes a tenth of a second.

    The parsed form can be shared, except for the key of each part, which two executions might set at once.
    """
    from moto.stepfunctions.parser.asl.component.eval_component import EvalComponent
    from moto.stepfunctions.parser.asl.parse.asl_parser import AmazonStateLanguageParser

    if not hasattr(AmazonStateLanguageParser.parse, "cache_info"):
        parse = functools.lru_cache(16)(AmazonStateLanguageParser.parse)
        AmazonStateLanguageParser.parse = staticmethod(parse)
        EvalComponent.heap_key = property(lambda part: f"part-{id(part)}")


def _number(event: Mapping[str, Any]) -> None:
    """Give an S3 event its own id and sequencer; moto's events all have the same."""
    stored = event["detail"].get("object", {}) if event["source"] == "aws.s3" else {}
    if stored.get("sequencer") == _MOTOS_SEQUENCER:
        stored["sequencer"] = f"{next(_writes):016X}"
        cast(dict[str, Any], event)["id"] = str(uuid.uuid4())


def _serialized(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def locked(*args: Any, **kwargs: Any) -> Any:
        with WRITING:
            return function(*args, **kwargs)

    locked.serialized = True  # type: ignore[attr-defined]
    return locked
