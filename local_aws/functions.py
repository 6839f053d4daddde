"""Lambda's part: processes that run the handlers under AWS's own runtime client.

Each process sees its function asset, the layer and Lambda's runtime as only import path, is used again while
it is warm, and is killed when its time is over, as Lambda does.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

from local_aws.clock import MovableClock
from local_aws.template import REGION

BOOTSTRAP = Path(__file__).with_name("bootstrap.py")
INIT_SECONDS = 10.0
AT_ONCE = 3  # processes of one function; Lambda would start a thousand

# On Lambda each of them has a processor to itself. Here they share a few: those that start at the same time
# would all be late, one after the other the first is there soon.
_starting = threading.BoundedSemaphore(max(1, (os.cpu_count() or 1) // 2))


@dataclass(frozen=True)
class Function:
    """A function as the template describes it."""

    name: str
    arn: str
    role: str
    handler: str
    code: Path  # the asset, as /var/task
    layers: tuple[Path, ...]  # as /opt
    environment: Mapping[str, str]
    timeout: float
    memory_mb: int
    log_group: str
    dead_letters: str | None

    @property
    def short_name(self) -> str:
        """`functions.handlers.evaluate.handler` -> `evaluate`."""
        return self.handler.split(".")[-2]


@dataclass(frozen=True)
class Invocation:
    """One call of a function, and what came of it."""

    function: str
    payload: bytes
    error: str | None  # the type of error, or None
    began: float  # on the local clock
    seconds: float
    is_cold: bool
    request: str
    log: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class Surroundings:
    """What every process of the stack is told."""

    folder: Path  # whatever is written goes below
    runtime: Path
    wheels: Path
    endpoint: str
    clock: MovableClock
    credentials: Callable[[Function, str], Mapping[str, str]]
    heard: Callable[[Function, str, str], None]  # a line that a function printed


class Nursery:
    """Starts processes from one thread that lives as long as the stack.

    A process that asks to die with its parent dies with the very thread that started it.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "nursery")

    def start(self, *given: Any, **more: Any) -> subprocess.Popen[bytes]:
        started: subprocess.Popen[bytes] = self._thread.submit(
            cast(Any, subprocess.Popen), *given, **more
        ).result()
        return started

    def close(self) -> None:
        self._thread.shutdown(wait=False)


class Environment:
    """An execution environment: one process, one invocation at a time."""

    def __init__(self, function: Function, told: Surroundings, nursery: Nursery):
        self.id = uuid.uuid4().hex[:16]
        self.function = function
        self._told = told
        self._nursery = nursery
        self._process: subprocess.Popen[bytes] | None = None
        self._api: _RuntimeApi | None = None
        self._lines: list[str] = []
        self._pump: threading.Thread | None = None

    @property
    def is_warm(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Have a process that waits for an event; Lambda gives that its own ten seconds."""
        self.close()
        self._start()
        assert self._api is not None
        assert self._process is not None
        until = time.monotonic() + INIT_SECONDS
        while not self._api.started.wait(0.02):
            if self._process.poll() is not None or time.monotonic() > until:
                break

    def invoke(self, event: bytes, request: str) -> tuple[bytes, str | None, tuple[str, ...]]:
        """The answer of the handler, the type of its error or None, and what it has printed."""
        assert self._api is not None
        self._lines.clear()
        timeout = self.function.timeout
        deadline = time.monotonic() + timeout
        self._api.give(request, event, self._told.clock.now() + timeout)
        payload, error = self._answer(request, deadline)
        self._let_lines_come()
        return payload, error, tuple(self._lines)

    def kill(self) -> None:
        """End the process as the kernel would, and what it has started with it."""
        process = self._process
        if process is None or process.poll() is not None:
            return
        for one in [*_descendants(process.pid), process.pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(one, signal.SIGKILL)

    def close(self) -> None:
        self.kill()
        if self._process is not None:
            self._process.wait()
            if self._pump is not None:
                self._pump.join(1)
            if self._process.stdout:
                self._process.stdout.close()
        if self._api is not None:
            self._api.close()
            shutil.rmtree(self._home, ignore_errors=True)
        self._process = self._api = None

    def _answer(self, request: str, deadline: float) -> tuple[bytes, str | None]:
        assert self._api is not None
        assert self._process is not None
        while True:
            with contextlib.suppress(queue.Empty):
                return self._api.answers.get(timeout=0.02)
            if self._process.poll() is not None:
                with contextlib.suppress(queue.Empty):  # what it told before it ended
                    return self._api.answers.get(timeout=0.1)
                code = self._process.returncode
                how = f"signal: {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
                text = f"RequestId: {request} Error: Runtime exited with error: {how}"
                return _error("Runtime.ExitError", text), "Runtime.ExitError"
            if time.monotonic() > deadline:
                self.kill()
                text = (
                    f"RequestId: {request} Error: Task timed out after "
                    f"{self.function.timeout:.2f} seconds"
                )
                return _error("Sandbox.Timedout", text), "Sandbox.Timedout"

    def _start(self) -> None:
        told, function = self._told, self.function
        self._home = tempfile.mkdtemp(prefix=f"{function.short_name}-", dir=told.folder)
        self._api = _RuntimeApi(function.arn)
        path = [
            function.code,
            *(layer / "python" for layer in function.layers),
            told.wheels,
            told.runtime,
        ]
        environment = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "LANG": "en_US.UTF-8",
            "TZ": ":UTC",
            "HOME": self._home,
            "TMPDIR": self._home,
            "PYTHONPATH": os.pathsep.join(map(str, path)),
            "LAMBDA_TASK_ROOT": str(function.code),
            "LAMBDA_RUNTIME_DIR": str(told.runtime),
            "_HANDLER": function.handler,
            "AWS_LAMBDA_RUNTIME_API": self._api.address,
            "AWS_LAMBDA_FUNCTION_NAME": function.name,
            "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(function.memory_mb),
            "AWS_LAMBDA_LOG_GROUP_NAME": function.log_group,
            "AWS_LAMBDA_LOG_STREAM_NAME": self.id,
            "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
            "AWS_EXECUTION_ENV": "AWS_Lambda_python3.13",
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_ENDPOINT_URL": told.endpoint,
            "AWS_EC2_METADATA_DISABLED": "true",
            "OPENBLAS_NUM_THREADS": "1",
            **told.credentials(function, self.id),
            **function.environment,
        }
        # -S: nothing of this interpreter's or virtual environment's own packages; -s: nor of the user's
        command = [sys.executable, "-S", "-s", "-P", str(BOOTSTRAP), str(os.getpid())]
        self._process = self._nursery.start(
            [*command, str(told.clock.file), function.handler],
            cwd=function.code,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._pump = threading.Thread(
            target=self._hear, args=(self._process, self._lines), daemon=True
        )
        self._pump.start()

    def _hear(self, process: subprocess.Popen[bytes], lines: list[str]) -> None:
        assert process.stdout is not None
        with contextlib.suppress(ValueError):  # closed under us
            for raw in process.stdout:
                line = raw.decode("utf-8", "replace").rstrip("\n")
                lines.append(line)
                self._told.heard(self.function, self.id, line)

    def _let_lines_come(self) -> None:
        """What was printed before the answer may still be in the pipe."""
        if self._pump is not None and not self.is_warm:
            self._pump.join(0.5)


class Pool:
    """The environments of one function."""

    def __init__(
        self, function: Function, told: Surroundings, nursery: Nursery, at_once: int = AT_ONCE
    ):
        self.function = function
        self._told = told
        self._nursery = nursery
        self._places = threading.Semaphore(at_once)
        self._free: list[Environment] = []  # the one that was used last stands last
        self._all: list[Environment] = []

    @property
    def environments(self) -> tuple[Environment, ...]:
        return tuple(self._all)

    def invoke(self, event: bytes, request: str) -> Invocation:
        began, clock = time.perf_counter(), self._told.clock.now()
        with self._places:
            environment, is_cold = self._environment()
            try:
                payload, error, log = environment.invoke(event, request)
            finally:
                self._free.append(environment)
        seconds, name = time.perf_counter() - began, self.function.short_name
        return Invocation(name, payload, error, clock, seconds, is_cold, request, log)

    def kill(self) -> int:
        """Kill the processes of this function; how many were alive."""
        alive = [one for one in self._all if one.is_warm]
        for one in alive:
            one.kill()
        return len(alive)

    def close(self) -> None:
        for environment in self._all:
            environment.close()

    def _environment(self) -> tuple[Environment, bool]:
        """The one that was used last, so that the others are not even started; was it started just now?"""
        if (warm := self._warm()) is not None:
            return warm, False
        with _starting:
            if (warm := self._warm()) is not None:  # it has come back in the meantime
                return warm, False
            started = Environment(self.function, self._told, self._nursery)
            self._all.append(started)
            started.start()
            return started, True

    def _warm(self) -> Environment | None:
        while True:
            try:
                last = self._free.pop()
            except IndexError:
                return None
            if last.is_warm:
                return last
            self._all.remove(last)
            last.close()


class InThisProcess:
    """The handler called right here, for a debugger and for coverage: nothing is kept apart."""

    _one_at_a_time = threading.RLock()

    def __init__(self, function: Function, told: Surroundings):
        self.function = function
        self._told = told

    def invoke(self, event: bytes, request: str) -> Invocation:
        import importlib
        import traceback

        began, clock = time.perf_counter(), self._told.clock.now()
        module, _, name = self.function.handler.rpartition(".")
        error = None
        with self._one_at_a_time, _changed_environment(self._environment()):
            try:
                handler = getattr(importlib.import_module(module), name)
                answer = handler(json.loads(event), _Context(self.function, request))
                payload = json.dumps(answer).encode()
            except Exception as problem:  # noqa: BLE001 - as the runtime client tells of it
                error = type(problem).__name__
                payload = _error(error, str(problem), traceback.format_tb(problem.__traceback__))
        seconds = time.perf_counter() - began
        name = self.function.short_name
        return Invocation(name, payload, error, clock, seconds, False, request)

    def kill(self) -> int:
        return 0

    def close(self) -> None:
        pass

    def _environment(self) -> dict[str, str]:
        return {
            **self._told.credentials(self.function, "in-process"),
            **self.function.environment,
            "AWS_ENDPOINT_URL": self._told.endpoint,
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_LAMBDA_FUNCTION_NAME": self.function.name,
        }


class _Context:
    """What a handler may ask of its invocation."""

    function_version = "$LATEST"
    identity = client_context = None

    def __init__(self, function: Function, request: str):
        self.function_name = function.name
        self.invoked_function_arn = function.arn
        self.memory_limit_in_mb = function.memory_mb
        self.aws_request_id = request
        self.log_group_name, self.log_stream_name = function.log_group, "in-process"
        self._until = time.monotonic() + function.timeout

    def get_remaining_time_in_millis(self) -> int:
        return max(0, int((self._until - time.monotonic()) * 1000))


@contextlib.contextmanager
def _changed_environment(told: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(told)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


class _RuntimeApi:
    """Lambda's Runtime API for one environment: `next` waits for an event, `response` brings the answer."""

    def __init__(self, arn: str) -> None:
        self.started = threading.Event()
        self.answers: queue.Queue[tuple[bytes, str | None]] = queue.Queue()
        self._events: queue.Queue[tuple[str, bytes, float] | None] = queue.Queue()
        api = self

        class Requests(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = (
                -1
            )  # one write per answer: the next small packet would wait 40 ms for an acknowledgment

            def setup(self) -> None:
                super().setup()
                self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

            def do_GET(self) -> None:
                api.started.set()
                told = api._events.get()
                if told is None:
                    self.close_connection = True
                    return
                request, event, deadline = told
                self._reply(
                    200,
                    event,
                    {
                        "Lambda-Runtime-Aws-Request-Id": request,
                        "Lambda-Runtime-Deadline-Ms": str(int(deadline * 1000)),
                        "Lambda-Runtime-Invoked-Function-Arn": arn,
                        "Lambda-Runtime-Trace-Id": "Root=1-00000000-000000000000000000000000;Sampled=0",
                    },
                )

            def do_POST(self) -> None:
                body = self._body()
                if self.path.endswith("/response"):
                    api.answers.put((body, None))
                else:  # an error of the handler, or at the start
                    kind = self.headers.get("Lambda-Runtime-Function-Error-Type", "")
                    with contextlib.suppress(ValueError):
                        kind = json.loads(body).get("errorType") or kind
                    api.answers.put((body, kind or "Unknown"))
                    api.started.set()
                self._reply(202, b"{}", {})

            def _body(self) -> bytes:
                if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
                    return self.rfile.read(int(self.headers.get("Content-Length") or 0))
                body = b""
                while size := int(self.rfile.readline().split(b";")[0], 16):
                    body += self.rfile.read(size)
                    self.rfile.readline()
                self.rfile.readline()
                return body

            def _reply(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
                self.send_response(status)
                for name, value in {"Content-Type": "application/json", **headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
                self.wfile.flush()

            def log_message(self, *_: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(
                self, *_: Any
            ) -> None:  # a process that was killed leaves its long poll
                pass

        self._server = Server(("127.0.0.1", 0), Requests)
        self.address = f"127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), daemon=True
        )
        self._thread.start()

    def give(self, request: str, event: bytes, deadline: float) -> None:
        self._events.put((request, event, deadline))

    def close(self) -> None:
        self._events.put(None)
        self._server.shutdown()
        self._server.server_close()


def _error(kind: str, text: str, trace: list[str] | None = None) -> bytes:
    told: dict[str, Any] = {"errorType": kind, "errorMessage": text}
    return json.dumps({**told, "stackTrace": trace} if trace else told).encode()


def _descendants(process: int) -> list[int]:
    parents: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            stat = (folder / "stat").read_bytes()
            parents[int(folder.name)] = int(stat.rpartition(b")")[2].split()[1])
    found = {process}
    while more := {one for one, parent in parents.items() if parent in found} - found:
        found |= more
    return sorted(found - {process})
