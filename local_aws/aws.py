"""The whole debugger on this machine: no account, no Docker, nothing left behind."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from local_aws import errors
from local_aws.assembly import ROOT, Assembly, synthesized
from local_aws.errors import DidNotStart, LocalStackError, WaitedTooLong, missing_module
from local_aws.template import REGION

CREDENTIALS = {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local"}


@dataclass(frozen=True)
class Invocation:
    """One call of a function."""

    function: str
    payload: str
    error: str | None
    began: float
    seconds: float
    is_cold: bool
    request: str
    log: Sequence[str]

    @property
    def answer(self) -> Any:
        return json.loads(self.payload)


class LocalAws:
    """AWS with the debugger deployed into it, played by a process of its own.

    with LocalAws() as aws:
        print(aws.bucket, aws.environment)      # save to s3://<bucket>/<run> with these set
        debugger = aws.connect()                # and ask what the rules found

    `settings` are those of `cdk deploy -c`; `environment` changes what the functions are told, by name;
    `secrets` fill in for Secrets Manager. With `in_process` the handlers run in this process, under a
    debugger or for coverage, and nobody looks at permissions.
    """

    def __init__(
        self,
        settings: Mapping[str, Any] | None = None,
        *,
        port: int = 0,
        in_process: bool = False,
        environment: Mapping[str, str] | None = None,
        secrets: Mapping[str, Mapping[str, str]] | None = None,
        assembly: Assembly | None = None,
    ):
        self._settings = settings
        self._assembly = assembly
        self._in_process = in_process
        self._asked: dict[str, Any] = {
            "port": port,
            "environment": dict(environment or {}),
            "secrets": {name: dict(told) for name, told in (secrets or {}).items()},
        }
        self._closing = contextlib.ExitStack()
        self._clients: dict[str, Any] = {}
        self._clients_lock = threading.Lock()
        self._cloud: Any = None
        self.endpoint = ""
        self.folder = ""  # whatever is started with this in its environment ends with the stack
        self.outputs: dict[str, str] = {}
        self.log_groups: list[str] = []

    def __enter__(self) -> LocalAws:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Deploy the template, and be ready for trainings."""
        assembly = self._assembly or synthesized(self._settings)
        self.folder = f"{tempfile.gettempdir()}/smdebug-local-{uuid.uuid4().hex[:12]}"
        told = self._within(assembly) if self._in_process else self._beside(assembly)
        self.endpoint = told["endpoint"]
        self.outputs = told["outputs"]
        self.log_groups = told["log_groups"]

    def stop(self) -> None:
        """End it, and remove whatever it has written."""
        for client in self._clients.values():
            client.close()
        self._clients.clear()
        self._closing.close()
        self._cloud = None
        _wait_for_janitor(self.folder)

    # What it is

    @property
    def bucket(self) -> str:
        """Save to s3://<this>/<run>."""
        return self.outputs["Bucket"]

    @property
    def environment(self) -> dict[str, str]:
        """What a training, or `smdebug`, in another process has to be told to come here."""
        return {
            **CREDENTIALS,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_EC2_METADATA_DISABLED": "true",
            "SMDEBUG_TABLE": self.outputs["StepIndex"],
            "SMDEBUG_BUCKET": self.bucket,
            "SMDEBUG_LOG_GROUPS": ",".join(self.log_groups),
        }

    def client(self, service: str) -> Any:
        """A boto3 client of that service, as the owner of the account."""
        import boto3
        from botocore.config import Config

        with self._clients_lock:
            if service not in self._clients:
                session = cast(Any, boto3).Session(
                    aws_access_key_id="local",
                    aws_secret_access_key="local",  # noqa: S106 - nobody checks it
                    region_name=REGION,
                )
                self._clients[service] = session.client(
                    service,
                    endpoint_url=self.endpoint,
                    config=Config(max_pool_connections=32, retries={"total_max_attempts": 2}),
                )
            return self._clients[service]

    def connect(self) -> Any:
        """`smdebug.service` over this stack."""
        from smdebug.service import connect

        return connect(
            table=self.outputs["StepIndex"],
            bucket=self.bucket,
            log_groups=self.log_groups,
            client=self.client,
        )

    @contextlib.contextmanager
    def as_default(self) -> Iterator[None]:
        """Within this, whatever uses boto3 in this process comes here: `create_trial("s3://…")`, a hook."""
        before = dict(os.environ)
        os.environ.update(self.environment)
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)

    # Time, and what may go wrong in it

    def now(self) -> float:
        """The time that the stack has."""
        return float(self.ask("now"))

    def forward(self, seconds: float) -> None:
        """Let that much time have passed: schedules, delayed messages and leases see it at once."""
        self.ask("forward", seconds=seconds)

    def invoke(self, function: str, event: Any) -> Invocation:
        """Call a handler by its name, such as `sweep`, and wait for its answer."""
        return Invocation(**self.ask("invoke", function=function, event=event))

    @contextlib.contextmanager
    def losing_notifications(self) -> Iterator[None]:
        """Within this, S3 tells nobody of new objects, as happens to it now and then."""
        self.ask("lose_notifications", lose=True)
        try:
            yield
        finally:
            self.ask("lose_notifications", lose=False)

    def kill(self, function: str) -> int:
        """Kill the processes of a handler; how many there were."""
        return int(self.ask("kill", function=function))

    def kill_when(self, function: str, calls: str, times: int = 1) -> None:
        """Kill a handler the next times it makes that call (`dynamodb:UpdateItem`), before it is done.

        With `times=0` it is spared again.
        """
        self.ask("kill_when", function=function, calls=calls, times=times)

    # What has happened

    def invocations(self, function: str | None = None, skip: int = 0) -> list[Invocation]:
        """The calls of the handlers so far, in the order of their ends."""
        told = self.ask("invocations", function=function, skip=skip)
        return [Invocation(**one) for one in told]

    def events(self, detail_type: str | None = None) -> list[dict[str, Any]]:
        """The events that came over the buses, in their order."""
        return list(self.ask("events", detail_type=detail_type))

    def refused(self) -> list[str]:
        """The calls and deliveries that no policy allowed."""
        return list(self.ask("refused"))

    def permissions(self) -> dict[str, Any]:
        """Which permissions were used, and which were not."""
        told: dict[str, Any] = self.ask("permissions")
        return told

    def inbox(self, name: str = "inbox", topic: str | None = None) -> Inbox:
        """Subscribe to the alerts, as a person would by e-mail."""
        client = self.client("sqs")
        url = client.create_queue(QueueName=name)["QueueUrl"]
        arn = client.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
        self.client("sns").subscribe(
            TopicArn=topic or self.outputs["AlertsTopic"],
            Protocol="sqs",
            Endpoint=arn["Attributes"]["QueueArn"],
        )
        return Inbox(client, url)

    def dead_letters(self) -> list[str]:
        """What could not be handled, in any of the queues for that."""
        client = self.client("sqs")
        found = []
        for url in client.list_queues().get("QueueUrls", []):
            if "DeadLetters" in url or "Undelivered" in url:
                found += [one["Body"] for one in _everything(client, url)]
        return found

    def wait_until(
        self, holds: Callable[[], Any], *, what: str, seconds: float = 60.0, pause: float = 0.05
    ) -> Any:
        """Wait until `holds` gives something that is true, and give it."""
        until = time.monotonic() + seconds
        while True:
            got = holds()
            if got:
                return got
            if time.monotonic() > until:
                raise WaitedTooLong(
                    f"Waited {seconds:g} s for {what}; instead: {self._what_is_known()}"
                )
            time.sleep(pause)

    def settle(self, run: str | None = None, *, seconds: float = 60.0) -> None:
        """Wait for the evaluations that go on now, of that run or of all: their events are on the bus then.

        A finding can be read from the table before its event is put: both are steps of one execution.
        """

        def is_about_it(execution: str) -> bool:
            told = self.client("stepfunctions").describe_execution(executionArn=execution)
            return bool(json.loads(told["input"]).get("run") == run)

        now = {one for one in self._executions() if run is None or is_about_it(one)}
        if now:
            self.wait_until(
                lambda: not now & self._executions(), what="evaluations to end", seconds=seconds
            )

    def _executions(self) -> set[str]:
        """Of the workflow, those that run."""
        pages = (
            self.client("stepfunctions")
            .get_paginator("list_executions")
            .paginate(stateMachineArn=self.outputs["Workflow"], statusFilter="RUNNING")
        )
        return {one["executionArn"] for page in pages for one in page["executions"]}

    def ask(self, name: str, **told: Any) -> Any:
        """Ask the process that plays AWS."""
        if self._cloud is not None:
            return json.loads(json.dumps(self._cloud.control(name, told), default=str))
        request = urllib.request.Request(  # noqa: S310 - our own endpoint
            f"{self.endpoint}/_local/{name}", json.dumps(told).encode(), method="POST"
        )
        with urllib.request.urlopen(request, timeout=300) as answer:  # noqa: S310
            got = json.load(answer)
        if "error" in got:
            raise getattr(errors, got["error"], LocalStackError)(got["message"])
        return got["answer"]

    def _what_is_known(self) -> str:
        last = [f"{one.function} ({one.error or 'well'})" for one in self.invocations()[-8:]]
        told = [f"the last calls were {', '.join(last) or 'none'}"]
        bad = [one for one in self.invocations() if one.error]
        told += [f"{one.function} failed with {one.payload[:600]}" for one in bad[-2:]]
        told += self.refused()[-3:]
        return "; ".join(told)

    # Starting

    def _within(self, assembly: Assembly) -> dict[str, Any]:
        from local_aws.cloud import Cloud

        asked = self._asked
        self._cloud = self._closing.enter_context(
            Cloud(
                assembly,
                port=asked["port"],
                in_this_process=True,
                environment=asked["environment"],
                secrets=asked["secrets"],
                folder=self.folder,
            )
        )
        return self._cloud.told()  # type: ignore[no-any-return]

    def _beside(self, assembly: Assembly) -> dict[str, Any]:
        told = json.dumps({**self._asked, "assembly": str(assembly.folder), "folder": self.folder})
        known = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("AWS_", "MOTO_", "SMDEBUG_", "PYTEST_", "COV_"))
        }
        known |= {"PYTHONPATH": str(ROOT), **CREDENTIALS, "AWS_DEFAULT_REGION": REGION}
        cloud = subprocess.Popen(  # noqa: S603 - our own interpreter
            [sys.executable, "-W", "ignore", "-m", "local_aws.cloud", told],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=known,
            start_new_session=True,  # Ctrl-C is for us; we tell it
        )
        said: list[str] = []
        assert cloud.stdin is not None
        assert cloud.stdout is not None
        assert cloud.stderr is not None
        reader = threading.Thread(target=lambda: said.extend(cloud.stderr or ()), daemon=True)
        reader.start()
        self._closing.callback(_end, cloud, reader)
        try:
            line = cloud.stdout.readline()
            if not line:
                cloud.wait()
                reader.join(2)
                last = "".join(said).strip()[-2000:] or f"exit code {cloud.returncode}"
                raise DidNotStart(
                    missing_module(last) or f"The local AWS ended before it was ready: {last}"
                )
            answer: dict[str, Any] = json.loads(line)
            if "error" in answer:
                raise getattr(errors, answer["error"], LocalStackError)(answer["message"])
        except BaseException:
            self.stop()
            raise
        return answer


class Inbox:
    """A subscriber to the alerts."""

    def __init__(self, client: Any, url: str):
        self._client = client
        self._url = url

    def messages(self) -> list[dict[str, str]]:
        """What has come since this was asked last: `subject` and `message`."""
        told = (json.loads(one["Body"]) for one in _everything(self._client, self._url, keep=False))
        return [{"subject": one.get("Subject", ""), "message": one["Message"]} for one in told]


def _everything(client: Any, url: str, *, keep: bool = True) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while got := client.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
        found += got
        if not keep:
            for one in got:
                client.delete_message(QueueUrl=url, ReceiptHandle=one["ReceiptHandle"])
    if keep:
        for one in found:
            client.change_message_visibility(
                QueueUrl=url, ReceiptHandle=one["ReceiptHandle"], VisibilityTimeout=0
            )
    return found


def _wait_for_janitor(folder: str) -> None:
    """It ends what is left and removes the folder, whatever happened before."""
    until = time.monotonic() + 10
    while folder and Path(folder).exists() and time.monotonic() < until:
        time.sleep(0.02)


def _end(cloud: subprocess.Popen[str], reader: threading.Thread) -> None:
    assert cloud.stdin is not None
    with contextlib.suppress(OSError):
        cloud.stdin.close()
    try:
        cloud.wait(10)
    except subprocess.TimeoutExpired:
        cloud.kill()  # its children and its folder follow it
        cloud.wait()
    reader.join(2)
    for pipe in (cloud.stdout, cloud.stderr):
        if pipe is not None:
            pipe.close()
