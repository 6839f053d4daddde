"""AWS, played by one process: moto behind a gate, the deployed template, and what wakes its handlers.

    python -m local_aws.cloud '<the request of LocalAws, as JSON>'

It prints its endpoint in one line of JSON, and ends when its standard input does.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import tempfile
import threading
import uuid
import warnings
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from local_aws.clock import MovableClock
from local_aws.control import Control
from local_aws.deployment.assembly import Assembly
from local_aws.deployment.deployed import Deployed
from local_aws.deployment.wheels import link_layer, link_runtime
from local_aws.distributed_maps import run_distributed_maps
from local_aws.errors import LocalStackError, explain_os_error
from local_aws.gate import OWNER, Application, Gate, KnownKey
from local_aws.limits import Limits
from local_aws.limits.concurrency import Concurrency
from local_aws.limits.conflicts import conflict_as_dynamodb_does
from local_aws.limits.lineage import NEW, Lineage, Lineages, follow_messages
from local_aws.limits.services import (
    limit_events,
    limit_executions,
    require_schedule_groups,
    validate_notifications,
)
from local_aws.limits.table import limit_table
from local_aws.permissions.clients import Clients
from local_aws.permissions.policies import Caller, Refused, session_statements
from local_aws.resources.deploying import deploy
from local_aws.running.function_logs import FunctionLogs
from local_aws.running.functions import Function, Invocation, Runtime
from local_aws.running.pools import InProcess, ProcessPool
from local_aws.running.starting import ProcessStarter
from local_aws.scratch import scratch_folder
from local_aws.server import moto_server
from local_aws.template import ACCOUNT, REGION, Template
from local_aws.waking.delivery import Deliveries
from local_aws.waking.queues import POLLERS, Poller

REMEMBERED = 20_000  # invocations, and events
_PARAMETER = "ssm:"  # before the name of a SecureString of Systems Manager
UNTRUSTED = "run_custom_rule"  # it ends everything that its process has started: never in ours


class Cloud:
    """One account in one region, for as long as it is open; at most one per process."""

    _open: Cloud | None = None
    gate: Gate
    clock: MovableClock
    deployed: Deployed
    deliveries: Deliveries

    def __init__(
        self,
        assembly: Assembly,
        *,
        port: int = 0,
        in_this_process: bool = False,
        environment: Mapping[str, str] | None = None,
        secrets: Mapping[str, Mapping[str, str]] | None = None,
        limits: Mapping[str, float] | None = None,
        folder: str,
    ):
        if Cloud._open is not None:
            raise LocalStackError(
                "A stack is already open in this process, and moto keeps one account per process: "
                "close it first, or start this one without in_process=True"
            )
        self._assembly = assembly
        self._in_this_process = in_this_process
        self._environment = dict(environment or {})
        self._secrets = dict(secrets or {})
        self._port = port
        self._limits = Limits(**(limits or {}))  # type: ignore[arg-type]
        self.concurrency = Concurrency(self._limits.concurrency)
        self._lineages = Lineages(self._limits.hops)
        self._place = folder  # does not exist yet
        self._closing = contextlib.ExitStack()
        self._stopping = threading.Event()
        self._pools: dict[str, ProcessPool | InProcess] = {}
        self._invocations: deque[Invocation] = deque(maxlen=REMEMBERED)
        self.template: Template = assembly.template
        self.events: dict[str, dict[str, Any]] = {}  # published on any bus, by id
        self.control = Control(self)

    def __enter__(self) -> Cloud:
        Cloud._open = self
        try:
            self._start()
        except BaseException as error:
            self.__exit__()
            if isinstance(error, OSError):
                known = explain_os_error(error, tempfile.gettempdir())
                if known is not None:
                    raise known from error
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._closing.close()
        Cloud._open = None

    def description(self) -> dict[str, Any]:
        """The endpoint, the outputs of the template and the log groups."""
        groups = sorted({function.log_group for function in self.deployed.functions.values()})
        return {
            "endpoint": self.endpoint,
            "outputs": self.deployed.outputs,
            "log_groups": groups,
        }

    def client(self, service: str, role: str = "") -> Any:
        """A boto3 client with the identity of a role, or of the account's owner."""
        return self._clients.get(service, role)

    def invoke(self, name: str, event: bytes, request: str = "", lineage: Lineage = NEW) -> Invocation:
        """Call a function by its full name, and wait for its result; `BeyondLimit` if too many run."""
        pool = self._pools[name]
        with self.concurrency.slot(name):
            invocation = pool.invoke(event, request or str(uuid.uuid4()), lineage)
        if len(invocation.payload) > self._limits.answer_bytes:
            invocation = invocation.too_large()
        self._invocations.append(invocation)
        # Lambda itself writes to the log of each invocation, with the function's role.
        milliseconds = invocation.seconds * 1000
        report = f"REPORT RequestId: {invocation.request} Duration: {milliseconds:.2f} ms"
        self._logs.write(pool.function, "lambda", report)
        return invocation

    def kill(self, name: str) -> int:
        """Kill the processes of a function; return how many were alive."""
        return self._pools[name].kill()

    def past_invocations(self) -> list[Invocation]:
        """The invocations so far, in the order in which they ended."""
        return list(self._invocations)

    # Starting

    def _start(self) -> None:
        self.folder = self._closing.enter_context(scratch_folder(self._place))
        self.clock = MovableClock(self.folder / "clock")
        self.deployed = Deployed()
        self.deliveries = Deliveries(
            self.deployed, self.client, invoke=self.invoke, send=_send, clock=self.clock
        )
        self._closing.callback(self.deliveries.stop)
        self.endpoint = self._closing.enter_context(moto_server(self._port, self._gated))
        self._clients = Clients(self.endpoint, self.gate)
        self._logs = FunctionLogs(self.deployed.policies, self.clock, self.gate.refused)
        self._fix_moto()
        self._keep_secrets()
        deploy(
            self._assembly,
            self.client,
            into=self.deployed,
            environment=self._environment,
            limits=self._limits,
        )
        self._start_functions()
        self.deliveries.start()
        self._start_pollers()

    def _keep_secrets(self) -> None:
        for name, fields in self._secrets.items():
            text = json.dumps(dict(fields))
            if name.startswith(_PARAMETER):
                parameter = name.removeprefix(_PARAMETER)
                self.client("ssm").put_parameter(Name=parameter, Value=text, Type="SecureString")
            else:
                self.client("secretsmanager").create_secret(Name=name, SecretString=text)

    def _gated(self, moto: Application) -> Application:
        self.gate = Gate(
            moto,
            self.deployed.policies,
            assumed=_assumed_role,
            control=self.control,
            limits=self._limits,
            concurrency=self.concurrency,
            lineages=self._lineages,
        )
        return self.gate

    def _fix_moto(self) -> None:
        from local_aws import moto_fixes

        moto_fixes.import_workflows_without_ec2()
        limit_table(self._limits, self.clock.now)
        limit_executions(self._limits)
        run_distributed_maps(self._limits)
        limit_events(self._limits)
        validate_notifications()
        require_schedule_groups()
        follow_messages(self._lineages)
        moto_fixes.list_services_once()
        moto_fixes.make_dynamodb_thread_safe()
        conflict_as_dynamodb_does()
        moto_fixes.make_queues_thread_safe()
        moto_fixes.parse_paths_once()
        moto_fixes.parse_workflows_once()
        moto_fixes.use_local_time(self.clock.now)
        moto_fixes.use_local_time_in_workflows(self.clock.now)
        moto_fixes.run_handlers(self._answer)
        moto_fixes.reuse_workflow_clients(lambda _, service, role: self.client(service, role))
        moto_fixes.deliver_events(self.deliveries.event_matched, self._see)
        moto_fixes.notify_as_s3_does(self.deliveries.object_created)

    def _start_functions(self) -> None:
        packages, wheels = self.folder / "runtime", self.folder / "wheels"
        link_runtime(packages)
        link_layer(wheels)
        runtime = Runtime(
            folder=self.folder,
            packages=packages,
            wheels=wheels,
            endpoint=self.endpoint,
            clock=self.clock,
            credentials=self._credentials,
            log=self._logs.write,
            begin=self._lineages.begin,
        )
        starter = ProcessStarter()
        self._closing.callback(starter.close)
        for function in self.deployed.functions.values():
            pool: ProcessPool | InProcess
            if self._runs_here(function):
                pool = InProcess(function, runtime)
            else:
                pool = ProcessPool(function, runtime, starter)
            self._pools[function.name] = pool
            self._closing.callback(pool.close)

    def _start_pollers(self) -> None:
        for mapping in self.deployed.mappings:
            role = self.deployed.functions[mapping.function].role
            for _ in range(min(POLLERS, mapping.at_once)):
                poller = Poller(
                    mapping,
                    self.client("sqs", role),
                    self.invoke,
                    self._stopping,
                    lineages=self._lineages,
                    cut=self.deliveries.chain_was_cut,
                )
                thread = threading.Thread(target=poller.run, daemon=True)
                thread.start()
                self._closing.callback(thread.join, 2)

    def _runs_here(self, function: Function) -> bool:
        return self._in_this_process and function.short_name != UNTRUSTED

    # Called by the parts

    def _answer(self, name: str, event: bytes) -> tuple[bytes, bool]:
        invocation = self.invoke(name, event)
        return invocation.payload, invocation.error is not None

    def _see(self, event: Mapping[str, Any]) -> None:
        if len(self.events) < REMEMBERED:
            self.events.setdefault(event["id"], dict(event))

    def _credentials(self, function: Function, environment: str) -> dict[str, str]:
        if self._runs_here(function):
            # All functions share their clients here, so callers cannot be distinguished.
            key = OWNER
        else:
            key = f"FUNCTION{environment.upper()}"
            self.gate.register(
                key,
                KnownKey(
                    Caller(function.role),
                    lambda: self._kill_environment(environment),
                    environment,
                ),
            )
        return {
            "AWS_ACCESS_KEY_ID": key,
            "AWS_SECRET_ACCESS_KEY": "local",
            "AWS_SESSION_TOKEN": "local",
        }

    def _kill_environment(self, id: str) -> None:
        for pool in self._pools.values():
            if isinstance(pool, ProcessPool):
                for environment in pool.environments:
                    if environment.id == id:
                        environment.kill()


def _assumed_role(key: str) -> Caller | None:
    """The role behind a temporary access key of STS, if it is one."""
    from moto.sts.models import sts_backends

    assumed = sts_backends[ACCOUNT]["aws"].get_assumed_role_from_access_key(key)
    if assumed is None:
        return None
    return Caller(assumed.role_arn, session_statements(assumed.policy))


def _send(queue: str, body: str) -> None:
    from moto.sqs.models import sqs_backends

    sqs_backends[ACCOUNT][REGION].send_message(queue_name=queue, message_body=body)


def main() -> None:
    """Play AWS until standard input is closed."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    request = json.loads(sys.argv[1])
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C and closes the pipe
    cloud = Cloud(
        Assembly(Path(request["assembly"])),
        port=request["port"],
        environment=request["environment"],
        secrets=request["secrets"],
        limits=request["limits"],
        folder=request["folder"],
    )
    try:
        with cloud:
            _print(cloud.description())
            threading.Event().wait()
    except (LocalStackError, Refused) as error:
        _print({"error": type(error).__name__, "message": str(error)})
        sys.exit(1)


def _print(message: Mapping[str, Any]) -> None:
    print(json.dumps(message), flush=True)


def _end_with_parent() -> None:
    """End as abruptly as in a crash: the handlers die with us, and the janitor does the rest."""
    os.read(sys.stdin.fileno(), 1)
    os._exit(0)


if __name__ == "__main__":
    main()
