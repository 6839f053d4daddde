"""Execution environments: processes that run a handler under AWS's own runtime client.

Each process has its function asset, the layer and Lambda's runtime as its only import path. It is reused
while it is warm and killed when it exceeds its timeout, as Lambda does.
"""

from __future__ import annotations

import contextlib
import os
import queue
import resource
import select
import shutil
import signal
import tempfile
import threading
import time
import uuid
from pathlib import Path

from local_aws.running.functions import Function, Runtime
from local_aws.running.runtime_api import RuntimeApi, error_payload
from local_aws.running.starting import Process, ProcessStarter, Start
from local_aws.template import REGION

INIT_SECONDS = 10.0
PIPE_BYTES = 1 << 16  # a pipe holds no more


class Environment:
    """An execution environment: one process, one invocation at a time."""

    def __init__(self, function: Function, runtime: Runtime, starter: ProcessStarter):
        self.id = uuid.uuid4().hex[:16]
        self.function = function
        self._runtime = runtime
        self._starter = starter
        self._process: Process | None = None
        self._api: RuntimeApi | None = None
        self._lines: list[str] = []
        self._unended = b""  # of the line that is being printed
        self._reading = threading.Lock()
        self._reader: threading.Thread | None = None

    @property
    def is_warm(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start a process and wait until it polls for an event, at most Lambda's ten seconds."""
        self.close()
        self._start()
        assert self._api is not None
        assert self._process is not None
        until = time.monotonic() + INIT_SECONDS
        while not self._api.started.wait(0.02):
            if self._process.poll() is not None or time.monotonic() > until:
                break

    def invoke(self, event: bytes, request: str) -> tuple[bytes, str | None, tuple[str, ...]]:
        """Return the handler's result, the type of its error or None, and the lines it printed."""
        assert self._api is not None
        self._read_printed()  # what the invocation before has left
        self._lines.clear()
        timeout = self.function.timeout
        deadline = time.monotonic() + timeout
        self._api.send(request, event, self._runtime.clock.now() + timeout)
        payload, error = self._result(request, deadline)
        self._read_printed()  # the pipe may still hold lines printed before the result
        return payload, error, tuple(self._lines)

    def kill(self) -> None:
        """Kill the process and its descendants."""
        process = self._process
        if process is None or process.poll() is not None:
            return
        for pid in [*_descendants(process.pid), process.pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()  # until then it would count as warm, and get the next event

    def close(self) -> None:
        self.kill()
        if self._process is not None:
            self._process.wait()
            if self._reader is not None:
                self._reader.join(1)
            if self._process.stdout:
                with self._reading:
                    self._process.stdout.close()
        if self._api is not None:
            self._api.close()
            shutil.rmtree(self._home, ignore_errors=True)
        self._process = self._api = None

    def _result(self, request: str, deadline: float) -> tuple[bytes, str | None]:
        assert self._api is not None
        assert self._process is not None
        while True:
            with contextlib.suppress(queue.Empty):
                return self._api.results.get(timeout=0.02)
            code = self._process.poll()
            if code is not None:
                with contextlib.suppress(queue.Empty):  # a result sent just before the end
                    return self._api.results.get(timeout=0.1)
                how = f"signal: {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
                text = f"RequestId: {request} Error: Runtime exited with error: {how}"
                return error_payload("Runtime.ExitError", text), "Runtime.ExitError"
            if uses_more_than(self._process.pid, self.function.memory_mb):
                self.kill()
                text = f"RequestId: {request} Error: Runtime exited with error: signal: killed"
                return error_payload("Runtime.ExitError", text), "Runtime.ExitError"
            if time.monotonic() > deadline:
                self.kill()
                text = f"RequestId: {request} Error: Task timed out after {self.function.timeout:.2f} seconds"
                return error_payload("Sandbox.Timedout", text), "Sandbox.Timedout"

    def _start(self) -> None:
        function, runtime = self.function, self._runtime
        self._home = tempfile.mkdtemp(prefix=f"{function.short_name}-", dir=runtime.folder)
        self._api = RuntimeApi(function.arn)
        path = [function.code, *(layer / "python" for layer in function.layers)]
        self._process = self._starter.start(
            Start(
                function.handler,
                function.code,
                (*path, runtime.wheels, runtime.packages),
                runtime.folder,
                runtime.clock.file,
                self._variables(self._api),
            )
        )
        self._unended = b""
        self._reader = threading.Thread(target=self._read, args=(self._process,), daemon=True)
        self._reader.start()

    def _variables(self, api: RuntimeApi) -> dict[str, str]:
        function, runtime = self.function, self._runtime
        return {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "LANG": "en_US.UTF-8",
            "TZ": ":UTC",
            "HOME": self._home,
            "TMPDIR": self._home,
            "LAMBDA_TASK_ROOT": str(function.code),
            "LAMBDA_RUNTIME_DIR": str(runtime.packages),
            "_HANDLER": function.handler,
            "AWS_LAMBDA_RUNTIME_API": api.address,
            "AWS_LAMBDA_FUNCTION_NAME": function.name,
            "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(function.memory_mb),
            "AWS_LAMBDA_LOG_GROUP_NAME": function.log_group,
            "AWS_LAMBDA_LOG_STREAM_NAME": self.id,
            "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
            "AWS_EXECUTION_ENV": "AWS_Lambda_python3.13",
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_ENDPOINT_URL": runtime.endpoint,
            "AWS_EC2_METADATA_DISABLED": "true",
            "OPENBLAS_NUM_THREADS": "1",
            **runtime.credentials(function, self.id),
            **function.environment,
        }

    def _read(self, process: Process) -> None:
        """Read what the process prints, also between invocations, until its end of the pipe is closed."""
        assert process.stdout is not None
        with contextlib.suppress(ValueError, OSError):  # closed meanwhile
            while True:
                select.select([process.stdout], [], [])
                if self._read_printed() == b"":
                    return

    def _read_printed(self) -> bytes | None:
        """Take in all that the pipe holds; return it: None if that is nothing yet, empty at its end."""
        process = self._process
        if process is None or process.stdout is None or process.stdout.closed:
            return b""
        with self._reading:
            if not select.select([process.stdout], [], [], 0)[0]:
                return None
            printed = os.read(process.stdout.fileno(), PIPE_BYTES)
            *lines, self._unended = (self._unended + printed).split(b"\n")
            if not printed and self._unended:
                lines, self._unended = [self._unended], b""
            for raw in lines:
                line = raw.decode("utf-8", "replace")
                self._lines.append(line)
                self._runtime.log(self.function, self.id, line)
        return printed


def uses_more_than(process: int, megabytes: int) -> bool:
    """Whether the process holds more memory than its function has; unknown without /proc."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
        return pages * resource.getpagesize() > megabytes * 1024 * 1024
    return False


def _descendants(process: int) -> list[int]:
    parents: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            stat = (folder / "stat").read_bytes()
            parents[int(folder.name)] = int(stat.rpartition(b")")[2].split()[1])
    found = {process}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return sorted(found - {process})
