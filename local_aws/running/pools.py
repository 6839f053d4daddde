"""How a function is run: in a few processes that are reused, or within this process."""

from __future__ import annotations

import importlib
import json
import os
import threading
import time
import traceback

from local_aws.environ import changed_environ
from local_aws.limits.lineage import NEW, Lineage
from local_aws.running.environments import Environment
from local_aws.running.functions import Function, Invocation, Runtime
from local_aws.running.runtime_api import error_payload
from local_aws.running.starting import ProcessStarter
from local_aws.template import REGION

PROCESSES = 3  # per function; Lambda would start a thousand

# On Lambda each process has a processor of its own. Here they share a few: processes that start together
# would all be late, while one after the other the first is ready early.
_starting = threading.BoundedSemaphore(max(1, (os.cpu_count() or 1) // 2))


class ProcessPool:
    """The environments of one function."""

    def __init__(
        self,
        function: Function,
        runtime: Runtime,
        starter: ProcessStarter,
        processes: int = PROCESSES,
    ):
        self.function = function
        self._runtime = runtime
        self._starter = starter
        self._slots = threading.Semaphore(processes)
        self._free: list[Environment] = []  # the most recently used one is the last
        self._all: list[Environment] = []

    @property
    def environments(self) -> tuple[Environment, ...]:
        return tuple(self._all)

    def invoke(self, event: bytes, request: str, lineage: Lineage = NEW) -> Invocation:
        began, clock = time.perf_counter(), self._runtime.clock.now()
        with self._slots:
            environment, is_cold = self._environment()
            self._runtime.begin(environment.id, lineage)
            try:
                payload, error, log = environment.invoke(event, request)
            finally:
                self._free.append(environment)
        seconds, name = time.perf_counter() - began, self.function.short_name
        return Invocation(name, payload, error, clock, seconds, is_cold, request, log)

    def kill(self) -> int:
        """Kill the processes of this function; return how many were alive."""
        alive = [environment for environment in self._all if environment.is_warm]
        for environment in alive:
            environment.kill()
        return len(alive)

    def close(self) -> None:
        for environment in self._all:
            environment.close()

    def _environment(self) -> tuple[Environment, bool]:
        """Return an environment, and whether it was started for this call.

        The most recently used one comes first, so that no more are started than needed.
        """
        if (warm := self._warm()) is not None:
            return warm, False
        with _starting:
            if (warm := self._warm()) is not None:  # freed in the meantime
                return warm, False
            environment = Environment(self.function, self._runtime, self._starter)
            self._all.append(environment)
            environment.start()
            return environment, True

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


class InProcess:
    """Calls the handler within this process, for a debugger or for coverage, without isolation."""

    _exclusive = threading.RLock()

    def __init__(self, function: Function, runtime: Runtime):
        self.function = function
        self._runtime = runtime
        module, _, name = function.handler.rpartition(".")
        # While no other thread imports: two that meet in a package can get half of its modules.
        with self._exclusive, changed_environ(self._variables()):
            self._handler = getattr(importlib.import_module(module), name)

    def invoke(self, event: bytes, request: str, lineage: Lineage = NEW) -> Invocation:
        began, clock = time.perf_counter(), self._runtime.clock.now()
        error = None
        with self._exclusive, changed_environ(self._variables()):
            try:
                result = self._handler(json.loads(event), _Context(self.function, request))
                payload = json.dumps(result).encode()
            except Exception as problem:  # noqa: BLE001 - reported as the runtime client does
                error = type(problem).__name__
                trace = traceback.format_tb(problem.__traceback__)
                payload = error_payload(error, str(problem), trace)
        seconds = time.perf_counter() - began
        name = self.function.short_name
        return Invocation(name, payload, error, clock, seconds, False, request)

    def kill(self) -> int:
        return 0

    def close(self) -> None:
        pass

    def _variables(self) -> dict[str, str]:
        return {
            **self._runtime.credentials(self.function, "in-process"),
            **self.function.environment,
            "AWS_ENDPOINT_URL": self._runtime.endpoint,
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_LAMBDA_FUNCTION_NAME": self.function.name,
        }


class _Context:
    """The context object that Lambda passes to a handler."""

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
