"""The whole debugger on this machine: no account, no Docker, nothing left behind."""

from __future__ import annotations

import contextlib
import json
import tempfile
import threading
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from infra.checks.concurrency import SMALLEST_ACCOUNT
from local_aws.cloud_process import CREDENTIALS, CloudProcess, raise_if_error, wait_for_janitor
from local_aws.deployment.assembly import Assembly, synthesized
from local_aws.environ import changed_environ
from local_aws.errors import TooManyRunning, WaitedTooLong
from local_aws.inbox import Inbox, peek
from local_aws.template import REGION

_BACKTESTS = {"Backtests": "SMDEBUG_BACKTESTS", "BacktestCapacity": "SMDEBUG_BACKTEST_CAPACITY"}


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
    """AWS with the debugger deployed into it, played by a separate process.

    with LocalAws() as aws:
        print(aws.bucket, aws.environment)      # save to s3://<bucket>/<run> with these set
        debugger = aws.connect()                # and read what the rules found

    `settings` are those of `cdk deploy -c`; `environment` overrides variables of the functions;
    `secrets` are those of Secrets Manager or, with `ssm:` before their names, SecureStrings of Systems
    Manager. With `in_process` the handlers run in this process, under a debugger or for coverage, and
    permissions are not checked. `limits` lowers limits of AWS (`local_aws.limits.Limits`).
    """

    def __init__(
        self,
        settings: Mapping[str, Any] | None = None,
        *,
        port: int = 0,
        in_process: bool = False,
        environment: Mapping[str, str] | None = None,
        secrets: Mapping[str, Mapping[str, str]] | None = None,
        limits: Mapping[str, float] | None = None,
        assembly: Assembly | None = None,
    ):
        self._settings = settings
        self._assembly = assembly
        self._in_process = in_process
        self._request: dict[str, Any] = {
            "port": port,
            "environment": dict(environment or {}),
            "secrets": {name: dict(fields) for name, fields in (secrets or {}).items()},
            "limits": dict(limits or {}),
        }
        self._closing = contextlib.ExitStack()
        self._clients: dict[str, Any] = {}
        self._clients_lock = threading.Lock()
        self._cloud: Any = None
        self.endpoint = ""
        self.folder = ""  # processes with this in their environment end with the stack
        self.outputs: dict[str, str] = {}
        self.log_groups: list[str] = []

    def __enter__(self) -> LocalAws:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Deploy the template and wait until runs can be saved."""
        assembly = self._assembly or synthesized(self._settings)
        # The setting is a number: without one, nothing was synthesized.
        concurrency = int((self._settings or {}).get("account_concurrency") or SMALLEST_ACCOUNT)
        self._request["limits"].setdefault("concurrency", concurrency)
        self.folder = f"{tempfile.gettempdir()}/smdebug-local-{uuid.uuid4().hex[:12]}"
        started = self._start_here if self._in_process else self._start_process
        description = started(assembly)
        self.endpoint = description["endpoint"]
        self.outputs = description["outputs"]
        self.log_groups = description["log_groups"]

    def stop(self) -> None:
        """End the stack and remove everything that it has written."""
        for client in self._clients.values():
            client.close()
        self._clients.clear()
        self._closing.close()
        self._cloud = None
        wait_for_janitor(self.folder)

    # Where it is

    @property
    def bucket(self) -> str:
        """The bucket that runs are saved to, as s3://<bucket>/<run>."""
        return self.outputs["Bucket"]

    @property
    def environment(self) -> dict[str, str]:
        """The variables with which a training, or `smdebug`, in another process uses this stack."""
        return {
            **CREDENTIALS,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_EC2_METADATA_DISABLED": "true",
            "SMDEBUG_TABLE": self.outputs["StepIndex"],
            "SMDEBUG_BUCKET": self.bucket,
            "SMDEBUG_LOG_GROUPS": ",".join(self.log_groups),
            **{
                variable: self.outputs[output]
                for output, variable in _BACKTESTS.items()
                if output in self.outputs
            },
        }

    def client(self, service: str) -> Any:
        """A boto3 client of that service, as the owner of the account."""
        import boto3
        from botocore.config import Config

        with self._clients_lock:
            if service not in self._clients:
                session = cast(Any, boto3).Session(
                    aws_access_key_id="local",
                    aws_secret_access_key="local",  # noqa: S106 - nothing checks it
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
        """Make boto3 in this process use the stack: hooks, and `create_trial("s3://…")`."""
        with changed_environ(self.environment):
            yield

    # Time and failures

    def now(self) -> float:
        """The time of the stack."""
        return float(self.ask("now"))

    def forward(self, seconds: float) -> None:
        """Move the clock forward: schedules, delayed messages and leases follow at once."""
        self.ask("forward", seconds=seconds)

    def invoke(self, function: str, event: Any, *, seconds: float = 60.0) -> Invocation:
        """Call a handler by its name, such as `sweep`, and wait for its result.

        While the account runs as many functions as it may, the call is repeated with back-off, as by the SDK;
        `TooManyRunning` if it is still refused after `seconds`.
        """
        until, pause = time.monotonic() + seconds, 0.05
        while True:
            try:
                return Invocation(**self.ask("invoke", function=function, event=event))
            except TooManyRunning as refusal:
                if time.monotonic() > until:
                    raise TooManyRunning(f"Tried for {seconds:g} s: {refusal}") from refusal
            time.sleep(pause)
            pause = min(1.0, 2 * pause)

    @contextlib.contextmanager
    def losing_notifications(self) -> Iterator[None]:
        """Lose all notifications of new objects, as S3 occasionally does."""
        self.ask("lose_notifications", lose=True)
        try:
            yield
        finally:
            self.ask("lose_notifications", lose=False)

    def kill(self, function: str) -> int:
        """Kill the processes of a handler; return how many there were."""
        return int(self.ask("kill", function=function))

    def kill_when(self, function: str, calls: str, times: int = 1) -> None:
        """Kill a handler the next times it makes that call (`dynamodb:UpdateItem`), before it takes effect.

        `times=0` cancels this.
        """
        self.ask("kill_when", function=function, calls=calls, times=times)

    # What has happened

    def invocations(self, function: str | None = None, skip: int = 0) -> list[Invocation]:
        """The calls of the handlers so far, in the order in which they ended."""
        found = self.ask("invocations", function=function, skip=skip)
        return [Invocation(**invocation) for invocation in found]

    def events(self, detail_type: str | None = None, *, bus: str | None = None) -> list[dict[str, Any]]:
        """The events published on the buses, in their order; those sent on to the bus with this ARN."""
        return list(self.ask("events", detail_type=detail_type, bus=bus))

    def throttled(self) -> dict[str, int]:
        """How often calls of each function were refused, as too many functions ran; each retry counts."""
        return dict(self.ask("throttled"))

    def refused(self) -> list[str]:
        """The calls and deliveries that no policy allowed."""
        return list(self.ask("refused"))

    def permissions(self) -> dict[str, Any]:
        """Which permissions were used, and which were not."""
        report: dict[str, Any] = self.ask("permissions")
        return report

    def inbox(self, name: str = "inbox", topic: str | None = None) -> Inbox:
        """Subscribe to the alerts, as a person would by email."""
        return Inbox.subscribed_to(
            topic or self.outputs["AlertsTopic"],
            sqs=self.client("sqs"),
            sns=self.client("sns"),
            name=name,
        )

    def dead_letters(self) -> list[str]:
        """The messages in all dead-letter queues."""
        client = self.client("sqs")
        return [
            message["Body"]
            for url in client.list_queues().get("QueueUrls", [])
            if "DeadLetters" in url or "Undelivered" in url
            for message in peek(client, url)
        ]

    def wait_until(
        self, holds: Callable[[], Any], *, what: str, seconds: float = 60.0, pause: float = 0.05
    ) -> Any:
        """Wait until `holds` returns a true value, and return it."""
        until = time.monotonic() + seconds
        while True:
            result = holds()
            if result:
                return result
            if time.monotonic() > until:
                raise WaitedTooLong(f"Waited {seconds:g} s for {what}; {self._known_state()}")
            time.sleep(pause)

    def settle(self, run: str | None = None, *, seconds: float = 60.0) -> None:
        """Wait for the evaluations in progress, of that run or of all, and so for their events.

        A finding can be read from the table before its event is published: both are steps of one execution.
        """

        def is_of_run(execution: str) -> bool:
            found = self.client("stepfunctions").describe_execution(executionArn=execution)
            return bool(json.loads(found["input"]).get("run") == run)

        now = {arn for arn in self._executions() if run is None or is_of_run(arn)}
        if now:
            self.wait_until(lambda: not now & self._executions(), what="evaluations to end", seconds=seconds)

    def _executions(self) -> set[str]:
        """The running executions of the workflow."""
        pages = (
            self.client("stepfunctions")
            .get_paginator("list_executions")
            .paginate(stateMachineArn=self.outputs["Workflow"], statusFilter="RUNNING")
        )
        return {execution["executionArn"] for page in pages for execution in page["executions"]}

    def ask(self, name: str, **arguments: Any) -> Any:
        """Send a control request to the process that plays AWS; return its answer."""
        if self._cloud is not None:
            return json.loads(json.dumps(self._cloud.control(name, arguments), default=str))
        request = urllib.request.Request(  # noqa: S310 - our own endpoint
            f"{self.endpoint}/_local/{name}", json.dumps(arguments).encode(), method="POST"
        )
        with urllib.request.urlopen(request, timeout=300) as response:  # noqa: S310
            answer = json.load(response)
        raise_if_error(answer)
        return answer["answer"]

    def _known_state(self) -> str:
        past = self.invocations()
        last = [f"{call.function} ({call.error or 'succeeded'})" for call in past[-8:]]
        failed = [call for call in past if call.error]
        return "; ".join(
            [
                f"the last calls were {', '.join(last) or 'none'}",
                *(f"{call.function} failed with {call.payload[:600]}" for call in failed[-2:]),
                *self.refused()[-3:],
            ]
        )

    # Starting

    def _start_here(self, assembly: Assembly) -> dict[str, Any]:
        from local_aws.cloud import Cloud

        cloud = Cloud(assembly, in_this_process=True, folder=self.folder, **self._request)
        self._cloud = self._closing.enter_context(cloud)
        return cloud.description()

    def _start_process(self, assembly: Assembly) -> dict[str, Any]:
        request = {**self._request, "assembly": str(assembly.folder), "folder": self.folder}
        process = CloudProcess(request)
        self._closing.callback(process.close)
        try:
            return process.wait_until_ready()
        except BaseException:
            self.stop()
            raise
