"""The lines that functions print, kept in moto's CloudWatch Logs."""

from __future__ import annotations

import threading
import warnings

from local_aws.clock import MovableClock
from local_aws.permissions.calls import Permission
from local_aws.permissions.policies import Caller, Policies, Refused
from local_aws.running.functions import Function
from local_aws.template import ACCOUNT, REGION


class FunctionLogs:
    """Writes to the log group of each function, if its role may."""

    def __init__(self, policies: Policies, clock: MovableClock, refused: list[str]):
        self._policies = policies
        self._clock = clock
        self._refused = refused
        self._lock = threading.Lock()

    def write(self, function: Function, stream: str, line: str) -> None:
        """Append a line to the function's log."""
        from moto.logs.models import logs_backends

        arn = f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:{function.log_group}:*"
        try:
            for action in ("CreateLogStream", "PutLogEvents"):
                self._policies.check(Caller(function.role), Permission(f"logs:{action}", arn))
        except Refused as refusal:
            self._refused.append(str(refusal))
            return
        backend = logs_backends[ACCOUNT][REGION]
        with self._lock:
            group = backend.groups[function.log_group]
            if stream not in group.streams:
                backend.create_log_stream(function.log_group, stream)
            event = {"timestamp": int(self._clock.now() * 1000), "message": line}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                backend.put_log_events(function.log_group, stream, [event])
