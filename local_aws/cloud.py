"""AWS, played by one process: moto behind a gate, the deployed template, and whatever wakes its handlers.

    python -m local_aws.cloud '<what LocalAws asks for, as JSON>'

It says in one line of JSON where it listens, and ends when its standard input does.
"""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import uuid
import warnings
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

from local_aws.assembly import Assembly
from local_aws.calls import Asked
from local_aws.clock import MovableClock
from local_aws.delivery import Deliveries
from local_aws.deploying import Deployed, deploy
from local_aws.errors import LocalStackError, PortClosed, PortTaken, Unsupported, in_words
from local_aws.functions import (
    Function,
    InThisProcess,
    Invocation,
    Nursery,
    Pool,
    Surroundings,
)
from local_aws.gate import OWNER, Gate, KnownKey
from local_aws.permissions import Caller, Refused, session_of
from local_aws.queues import AT_ONCE, Poller
from local_aws.template import ACCOUNT, REGION
from local_aws.wheels import link_layer, link_runtime

HOST = "127.0.0.1"
JANITOR = Path(__file__).with_name("janitor.py")
REMEMBERED = 20_000  # invocations
UNTRUSTED = "run_custom_rule"  # it ends whatever its process has started: never in ours


class Cloud:
    """One account in one region, for as long as it is open. There can be one in a process."""

    _open: Cloud | None = None

    def __init__(
        self,
        assembly: Assembly,
        *,
        port: int = 0,
        in_this_process: bool = False,
        environment: Mapping[str, str] | None = None,
        secrets: Mapping[str, Mapping[str, str]] | None = None,
        folder: str,
    ):
        if Cloud._open is not None:
            raise LocalStackError(
                "A stack is open in this process already, and moto keeps one account for all of it: "
                "leave it first, or start this one without in_process=True"
            )
        self._assembly = assembly
        self._in_this_process = in_this_process
        self._environment = dict(environment or {})
        self._secrets = dict(secrets or {})
        self._port = port
        self._place = folder  # there is none yet
        self._closing = contextlib.ExitStack()
        self._stopping = threading.Event()
        self._clients: dict[tuple[str, str], Any] = {}
        self._clients_lock = threading.Lock()
        self._pools: dict[str, Pool | InThisProcess] = {}
        self._functions_lock = threading.Lock()
        self.invocations: deque[Invocation] = deque(maxlen=REMEMBERED)
        self.events: dict[str, dict[str, Any]] = {}  # whatever came over a bus, by its id

    def __enter__(self) -> Cloud:
        Cloud._open = self
        try:
            self._start()
        except BaseException as error:
            self.__exit__()
            if isinstance(error, OSError) and (known := in_words(error, tempfile.gettempdir())):
                raise known from error
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._closing.close()
        Cloud._open = None

    def told(self) -> dict[str, Any]:
        """What whoever uses it has to know."""
        groups = sorted({one.log_group for one in self.deployed.functions.values()})
        return {
            "endpoint": self.endpoint,
            "outputs": self.deployed.outputs,
            "log_groups": groups,
        }

    # Starting

    def _start(self) -> None:
        self.folder = self._closing.enter_context(_folder(self._place))
        self.clock = MovableClock(self.folder / "clock")
        self.deployed = Deployed()
        self.deliveries = Deliveries(
            self.deployed, self.client, invoke=self.invoke, send=self._send, clock=self.clock
        )
        self._closing.callback(self.deliveries.stop)
        self._listen()
        self._fix_moto()
        deploy(
            self._assembly,
            self.client,
            into=self.deployed,
            secret=self._secret,
            environment=self._environment,
        )
        told = self._surroundings()
        nursery = Nursery()
        self._closing.callback(nursery.close)
        self._functions = self.deployed.functions
        for function in self._functions.values():
            here = self._in_this_process and function.short_name != UNTRUSTED
            pool = InThisProcess(function, told) if here else Pool(function, told, nursery)
            self._pools[function.name] = pool
            self._closing.callback(pool.close)
        self.deliveries.start()
        self._poll()

    def _listen(self) -> None:
        os.environ.setdefault("AWS_ACCESS_KEY_ID", "local")
        os.environ.setdefault("AWS_SECRET_ACCESS_KEY", "local")
        from moto.core.config import default_user_config
        from moto.moto_api._internal.models import moto_api_backend
        from moto.moto_server.werkzeug_app import (
            DomainDispatcherApplication,
            MotoRequestHandler,
            create_backend_app,
        )
        from werkzeug.serving import make_server

        moto_api_backend.reset()
        default_user_config["stepfunctions"]["execute_state_machine"] = True

        class Quiet(MotoRequestHandler):  # type: ignore[misc] # of moto nothing is known to mypy
            protocol_version = "HTTP/1.1"  # connections are kept

            def log(self, *_: Any) -> None:
                pass

        self._gate = Gate(
            DomainDispatcherApplication(create_backend_app),
            self.deployed.policies,
            assumed=self._assumed,
            control=self.control,
        )
        try:
            with contextlib.redirect_stderr(io.StringIO()):
                server = make_server(
                    HOST, self._port, self._gate, threaded=True, request_handler=Quiet
                )
        except (OSError, SystemExit) as error:
            if isinstance(error, OSError) and error.errno == errno.EACCES:
                raise PortClosed(
                    f"Port {self._port} is not for everybody: choose one above 1023, or none for a free one"
                ) from error
            taken = isinstance(error, SystemExit) or error.errno == errno.EADDRINUSE
            if not taken:
                raise
            raise PortTaken(
                f"Port {self._port} is taken: choose another one, or none for a free one"
            ) from error
        cast(Any, server).daemon_threads = True
        self.endpoint = f"http://{HOST}:{server.server_address[1]}"
        os.environ["MOTO_PORT"] = str(server.server_address[1])  # workflows call back there
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        self._closing.callback(server.server_close)
        self._closing.callback(server.shutdown)

    def _fix_moto(self) -> None:
        from local_aws import moto_fixes

        moto_fixes.make_dynamodb_thread_safe()
        moto_fixes.make_queues_thread_safe()
        moto_fixes.parse_paths_once()
        moto_fixes.parse_workflows_once()
        moto_fixes.tell_the_local_time(self.clock.now)
        moto_fixes.run_handlers(self._answer)
        moto_fixes.keep_clients_of_workflows(self._client_of_workflow)
        moto_fixes.deliver_events(lambda *told: self.deliveries.of_event(*told), self._see)
        moto_fixes.tell_of_objects_as_s3_does(lambda *told: self.deliveries.of_object(*told))

    def _surroundings(self) -> Surroundings:
        runtime, wheels = self.folder / "runtime", self.folder / "wheels"
        link_runtime(runtime)
        link_layer(wheels)
        return Surroundings(
            folder=self.folder,
            runtime=runtime,
            wheels=wheels,
            endpoint=self.endpoint,
            clock=self.clock,
            credentials=self._credentials,
            heard=self._heard,
        )

    def _poll(self) -> None:
        for mapping in self.deployed.mappings:
            role = self.deployed.functions[mapping.function].role
            for _ in range(AT_ONCE):
                poller = Poller(mapping, self.client("sqs", role), self.invoke, self._stopping)
                thread = threading.Thread(target=poller.run, daemon=True)
                thread.start()
                self._closing.callback(thread.join, 2)

    # Functions

    def invoke(self, name: str, event: bytes, request: str = "") -> Invocation:
        """Call a function by its name, and wait for its answer."""
        pool = self._pools[name]
        done = pool.invoke(event, request or str(uuid.uuid4()))
        self.invocations.append(done)
        # Lambda itself writes to the log of each invocation, in the name of the function's role.
        report = f"REPORT RequestId: {done.request} Duration: {done.seconds * 1000:.2f} ms"
        self._heard(pool.function, "lambda", report)
        return done

    def _answer(self, name: str, event: bytes) -> tuple[bytes, bool]:
        done = self.invoke(name, event)
        return done.payload, done.error is not None

    def _credentials(self, function: Function, environment: str) -> dict[str, str]:
        if self._in_this_process and function.short_name != UNTRUSTED:
            key = OWNER  # one client serves all functions there: whose call it is cannot be told
        else:
            key = f"FUNCTION{environment.upper()}"
            self._gate.know(key, KnownKey(Caller(function.role), lambda: self._kill(environment)))
        return {
            "AWS_ACCESS_KEY_ID": key,
            "AWS_SECRET_ACCESS_KEY": "local",
            "AWS_SESSION_TOKEN": "local",
        }

    def _kill(self, environment: str) -> None:
        for pool in self._pools.values():
            if isinstance(pool, Pool):
                for one in pool.environments:
                    if one.id == environment:
                        one.kill()

    def _see(self, event: Mapping[str, Any]) -> None:
        if len(self.events) < REMEMBERED:
            self.events.setdefault(event["id"], dict(event))

    def _heard(self, function: Function, stream: str, line: str) -> None:
        """A line of a function's log goes where CloudWatch keeps it."""
        from moto.logs.models import logs_backends

        arn = f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:{function.log_group}:*"
        backend = logs_backends[ACCOUNT][REGION]
        try:
            for action in ("CreateLogStream", "PutLogEvents"):
                self.deployed.policies.check(Caller(function.role), Asked(f"logs:{action}", arn))
        except Refused as refusal:
            self._gate.refused.append(str(refusal))
            return
        with self._functions_lock:
            group = backend.groups[function.log_group]
            if stream not in group.streams:
                backend.create_log_stream(function.log_group, stream)
            told = {"timestamp": int(self.clock.now() * 1000), "message": line}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                backend.put_log_events(function.log_group, stream, [told])

    # Clients

    def client(self, service: str, role: str = "") -> Any:
        """A client of moto, in the name of a role or of whoever owns the account."""
        key = OWNER
        if role:
            key = f"ROLE{role.rsplit('/', 1)[1]}".replace("/", "")
            self._gate.know(key, KnownKey(Caller(role)))
        return self._client(service, REGION, key)

    def _client_of_workflow(self, region: str, service: str, role: str) -> Any:
        return self.client(service, role)

    def _client(self, service: str, region: str, key: str) -> Any:
        import boto3
        from botocore.config import Config

        with self._clients_lock:
            if (service, key) not in self._clients:
                config = Config(
                    parameter_validation=False,
                    retries={"total_max_attempts": 1},
                    max_pool_connections=50,
                    connect_timeout=10,
                    read_timeout=600,
                )
                self._clients[service, key] = cast(Any, boto3).client(
                    service,
                    region_name=region,
                    endpoint_url=self.endpoint,
                    aws_access_key_id=key,
                    aws_secret_access_key="local",  # noqa: S106 - nobody checks it
                    config=config,
                )
            return self._clients[service, key]

    def _assumed(self, key: str) -> Caller | None:
        """Whose key that is, if STS has lent it."""
        from moto.sts.models import sts_backends

        lent = sts_backends[ACCOUNT]["aws"].get_assumed_role_from_access_key(key)
        return None if lent is None else Caller(lent.role_arn, session_of(lent.policy))

    def _send(self, queue: str, body: str) -> None:
        from moto.sqs.models import sqs_backends

        sqs_backends[ACCOUNT][REGION].send_message(queue_name=queue, message_body=body)

    def _secret(self, name: str, field: str) -> str:
        try:
            return self._secrets[name][field]
        except KeyError:
            raise Unsupported(
                f"The template asks for {field} of the secret {name}: "
                f"pass secrets={{{name!r}: {{{field!r}: …}}}}"
            ) from None

    # What LocalAws may ask for

    def control(self, name: str, told: dict[str, Any]) -> Any:
        """Do what was asked over the wire: a method of this class that begins with `do_`."""
        return getattr(self, f"do_{name}")(**told)

    def do_forward(self, seconds: float) -> float:
        self.clock.forward(seconds)
        return self.clock.now()

    def do_now(self) -> float:
        return self.clock.now()

    def do_invoke(self, function: str, event: Any) -> dict[str, Any]:
        return _told(self.invoke(self._named(function), json.dumps(event).encode()))

    def do_invocations(self, function: str | None, skip: int) -> list[dict[str, Any]]:
        found = list(self.invocations)[skip:]
        return [_told(one) for one in found if function in (None, one.function)]

    def do_events(self, detail_type: str | None) -> list[dict[str, Any]]:
        found = list(self.events.values())
        return [one for one in found if detail_type in (None, one["detail-type"])]

    def do_lose_notifications(self, lose: bool) -> None:
        self.deliveries.loses_notifications = lose

    def do_kill(self, function: str) -> int:
        return self._pools[self._named(function)].kill()

    def do_kill_when(self, function: str, calls: str, times: int) -> None:
        self._gate.trap(self._functions[self._named(function)].role, calls, times)

    def do_refused(self) -> list[str]:
        return [*self._gate.refused, *self._gate.unsupported, *self.deliveries.refused]

    def do_permissions(self) -> dict[str, Any]:
        policies = self.deployed.policies
        return {
            "unused": policies.unused(),
            "needless": [
                {"owner": owner, "actions": one.actions, "resources": one.resources}
                for owner, one in policies.needless()
            ],
            "calls": [{**asdict(one), "times": n} for one, n in list(policies.calls.items())],
            "roles": {arn: name for name, arn in self._role_names().items()},
        }

    def do_functions(self) -> dict[str, str]:
        return {one.short_name: one.name for one in self._functions.values()}

    def _named(self, short: str) -> str:
        for one in self._functions.values():
            if short in (one.short_name, one.name):
                return one.name
        known = ", ".join(sorted({one.short_name for one in self._functions.values()}))
        raise LocalStackError(f"There is no function {short}; there are {known}")

    def _role_names(self) -> dict[str, str]:
        return {
            name: f"arn:aws:iam::{ACCOUNT}:role/{self.deployed.physical[name]}"
            for name, told in self._assembly.template["Resources"].items()
            if told["Type"] == "AWS::IAM::Role"
        }


def _told(done: Invocation) -> dict[str, Any]:
    return {
        **asdict(done),
        "payload": done.payload.decode("utf-8", "replace"),
        "log": list(done.log),
    }


@contextlib.contextmanager
def _folder(place: str) -> Any:
    """A folder that is gone afterwards, whatever ends this process."""
    folder = Path(place)
    janitor = subprocess.Popen(  # noqa: S603 - our own interpreter and script
        [sys.executable, "-S", "-s", "-P", str(JANITOR), str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        folder.mkdir(mode=0o700)  # only now: whoever is ended before leaves none
        yield folder
    finally:
        assert janitor.stdin is not None
        janitor.stdin.close()
        try:
            janitor.wait(5)
        except subprocess.TimeoutExpired:
            janitor.kill()
            janitor.wait()
        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    """Play AWS until the one who asked for it lets go."""
    threading.Thread(target=_end_with_whoever_asked, daemon=True).start()
    asked = json.loads(sys.argv[1])
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started us tells when it is over
    cloud = Cloud(
        Assembly(Path(asked["assembly"])),
        port=asked["port"],
        environment=asked["environment"],
        secrets=asked["secrets"],
        folder=asked["folder"],
    )

    def say(told: Mapping[str, Any]) -> None:
        print(json.dumps(told), flush=True)

    try:
        with cloud:
            say(cloud.told())
            threading.Event().wait()
    except (LocalStackError, Refused) as error:
        say({"error": type(error).__name__, "message": str(error)})
        sys.exit(1)


def _end_with_whoever_asked() -> None:
    """As abruptly as in a crash: the handlers die with us, and the janitor sees to the rest."""
    os.read(sys.stdin.fileno(), 1)
    os._exit(0)


if __name__ == "__main__":
    main()
