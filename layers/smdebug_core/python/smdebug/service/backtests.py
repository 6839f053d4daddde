"""The state machine of deployed backtests, as its user sees it: start, look, stop."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from smdebug.exceptions import SMDebugCustomerError, StackUnknown
from smdebug.service.aws import aws_errors, output_of

if TYPE_CHECKING:
    from smdebug.storage import Storage

RUNNING, SUCCEEDED = "RUNNING", "SUCCEEDED"
_MACHINE, _CAPACITY = "SMDEBUG_BACKTESTS", "SMDEBUG_BACKTEST_CAPACITY"
"""The variables with which a local stack names its state machine and what it gives to backtests."""


@dataclass(frozen=True)
class Execution:
    """A backtest in the account."""

    status: str
    """`RUNNING`, `SUCCEEDED`, `FAILED`, `TIMED_OUT` or `ABORTED`."""
    problem: str = ""

    @property
    def is_running(self) -> bool:
        return self.status == RUNNING


class Account(Protocol):
    """The part of the deployed application that judges runs."""

    @property
    def bucket(self) -> Storage:
        """The bucket with the runs, in which plans and verdicts are kept."""

    @property
    def capacity(self) -> Mapping[str, Any]:
        """How many calls judge at once, and the memory of each."""

    def start(self, id: str) -> None:
        """Start the backtest whose plan and manifest are in the bucket, unless it was started."""

    def execution(self, id: str) -> Execution | None:
        """Return the state of a backtest; None if it was not started."""

    def stop(self, id: str) -> None:
        """Cancel a backtest that is running."""


class DeployedBacktests:
    """The account's own state machine."""

    def __init__(
        self, machine: str, bucket: Storage, capacity: Mapping[str, Any], clients: Callable[[str], Any]
    ):
        self._machine = machine
        self._clients = clients
        self.bucket = bucket
        self.capacity = capacity

    def start(self, id: str) -> None:
        client = self._clients("stepfunctions")
        place = f"The backtest {id}"
        request = {"backtest": id}
        with aws_errors(place, "states:StartExecution"):
            try:
                client.start_execution(stateMachineArn=self._machine, name=id, input=json.dumps(request))
            except client.exceptions.ExecutionAlreadyExists:
                return

    def execution(self, id: str) -> Execution | None:
        client = self._clients("stepfunctions")
        with aws_errors(f"The backtest {id}", "states:DescribeExecution"):
            try:
                found = client.describe_execution(executionArn=self._arn(id))
            except client.exceptions.ExecutionDoesNotExist:
                return None
        problem = ": ".join(filter(None, (found.get("error"), found.get("cause"))))
        return Execution(found["status"], problem)

    def stop(self, id: str) -> None:
        with aws_errors(f"The backtest {id}", "states:StopExecution"):
            self._clients("stepfunctions").stop_execution(
                executionArn=self._arn(id), error="Cancelled", cause="smdebug backtest --cancel"
            )

    def _arn(self, id: str) -> str:
        return f"{self._machine.replace(':stateMachine:', ':execution:')}:{id}"


def connect_backtests(
    stack: str | None = None, clients: Callable[[str], Any] | None = None
) -> DeployedBacktests:
    """Return the backtests of a stack, or of the local stack that the environment names."""
    from smdebug.service.aws import default_clients, find_deployment, run_storage
    from smdebug.service.client import DEFAULT_STACK

    clients = clients or default_clients()
    environ = os.environ
    if stack is None and environ.get("SMDEBUG_TABLE"):
        machine, capacity = environ.get(_MACHINE), environ.get(_CAPACITY)
        bucket, place = environ.get("SMDEBUG_BUCKET", ""), "The local stack"
    else:
        name = stack or environ.get("SMDEBUG_STACK") or DEFAULT_STACK
        found = find_deployment(name, clients)
        outputs = found.outputs or {}
        machine, capacity = output_of(outputs, "Backtests"), output_of(outputs, "BacktestCapacity")
        bucket, place = found.bucket, f"The stack {name}"
    if not machine or not capacity:
        raise StackUnknown(
            place, "it has no backtests; deploy it with the setting backtests_at_once, such as 20"
        )
    if not bucket:
        raise SMDebugCustomerError(f"{place} names no bucket")
    return DeployedBacktests(machine, run_storage(bucket, clients), json.loads(capacity), clients)
