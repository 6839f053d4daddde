"""Distributed maps as Step Functions runs them: failures up to a limit, and results in S3.

moto runs the children, but none of their failures ends the map, and its manifest of results names no file.
https://docs.aws.amazon.com/step-functions/latest/dg/state-map-distributed.html
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from local_aws.errors import LocalStackError
from local_aws.limits import Limits
from local_aws.limits.replacing import replace

EXCEEDED = "States.ExceedToleratedFailureThreshold"


@dataclass
class Tolerance:
    """The children of one map so far, and how many of them may fail."""

    items: int
    count: int
    percentage: float
    children: list[dict[str, Any]] = field(default_factory=list)
    failed: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, child: dict[str, Any]) -> bool:
        """Add a child that has ended; return whether more have failed than may."""
        with self._lock:
            self.children.append(child)
            self.failed += child["Status"] != "SUCCEEDED"
            return self.is_exceeded

    @property
    def is_exceeded(self) -> bool:
        share = 100 * self.failed / max(1, self.items)
        # Either limit suffices; one that is not given allows none, unless the other does.
        if self.count and self.failed > self.count:
            return True
        return share > self.percentage if self.percentage or not self.count else False


def run_distributed_maps(limits: Limits) -> None:
    """Let failed children end a map, end children after five minutes, and write their results."""
    from moto.stepfunctions.parser.asl.component.state.exec.state_map.iteration import (
        distributed_iteration_component as component,
    )
    from moto.stepfunctions.parser.asl.component.state.exec.state_map.iteration.itemprocessor import (
        distributed_item_processor_worker as worker,
    )
    from moto.stepfunctions.parser.asl.component.state.exec.state_map.result_writer.resource_eval import (
        resource_eval_s3 as writer,
    )

    replace(component.DistributedIterationComponent, "_map_run", lambda _: _mapped)
    replace(worker.DistributedItemProcessorWorker, "_eval_job", lambda judge: _counted(judge, limits))
    replace(writer.ResourceEvalS3, "_handle_put_object", lambda _: _write_results)


def _mapped(component: Any, env: Any, eval_input: Any) -> None:
    """Run the children of a map; end with the error of Step Functions if too many fail."""
    from moto.stepfunctions.parser.asl.component.state.exec.state_map.iteration.job import JobPool

    items = env.stack.pop()
    record = eval_input.map_run_record
    record.tolerance = Tolerance(
        len(items), record.tolerated_failure_count, record.tolerated_failure_percentage
    )
    pool = JobPool(job_program=component._get_iteration_program(), job_inputs=items)
    for _ in range(min(len(items), record.max_concurrency or len(items))):
        component._launch_worker(env=env, eval_input=eval_input, job_pool=pool)
    pool.await_jobs()
    if (problem := pool.get_worker_exception()) is not None:
        raise problem
    env.stack.append([job.job_output for job in pool.get_closed_jobs()])


def _counted(judge: Callable[..., None], limits: Limits) -> Callable[..., None]:
    def evaluated(worker: Any, env: Any, job: Any) -> None:
        from moto.stepfunctions.parser.asl.eval.program_state import ProgramError, ProgramStopped

        size = len(json.dumps(job.job_input).encode())
        if size > limits.state_bytes:
            raise LocalStackError(
                f"An item of a map has {size} bytes, and Step Functions takes {limits.state_bytes}"
            )
        judge(worker, env, job)
        state = env.program_state()
        tolerance: Tolerance = worker._map_run_record.tolerance
        if isinstance(state, ProgramStopped):
            return
        child: dict[str, Any] = {
            "ExecutionArn": f"{worker._map_run_record.map_state_machine_arn}:{uuid.uuid4()}",
            "Input": json.dumps(job.job_input),
            "Status": "SUCCEEDED",
        }
        if isinstance(state, ProgramError):
            error: Mapping[str, Any] = state.error or {}
            child |= {"Status": "FAILED", "Error": error.get("error"), "Cause": error.get("cause")}
        elif job.job_output is None:
            child |= {"Status": "FAILED", "Error": "States.Runtime", "Cause": ""}
        else:
            child["Output"] = json.dumps(job.job_output)
        if tolerance.add(child):
            job.job_output = _exceeded(env, tolerance)

    return evaluated


def _exceeded(env: Any, tolerance: Tolerance) -> Exception:
    from moto.stepfunctions.parser.api import ExecutionFailedEventDetails, HistoryEventType
    from moto.stepfunctions.parser.asl.component.common.error_name.failure_event import (
        FailureEvent,
        FailureEventException,
    )
    from moto.stepfunctions.parser.asl.component.common.error_name.states_error_name import StatesErrorName
    from moto.stepfunctions.parser.asl.component.common.error_name.states_error_name_type import (
        StatesErrorNameType,
    )
    from moto.stepfunctions.parser.asl.eval.event.event_detail import EventDetails

    last = next(child for child in reversed(tolerance.children) if child["Status"] == "FAILED")
    cause = (
        "The specified tolerated failure threshold was exceeded: "
        f"{tolerance.failed} of {tolerance.items} failed, the last with {last['Error']}: {last['Cause']}"
    )
    name = StatesErrorName(typ=StatesErrorNameType.StatesExceedToleratedFailureThreshold)
    details = ExecutionFailedEventDetails(error=EXCEEDED, cause=cause)
    problem: Exception = FailureEventException(
        FailureEvent(
            env=env,
            error_name=name,
            event_type=HistoryEventType.ExecutionFailed,
            event_details=EventDetails(executionFailedEventDetails=details),
        )
    )
    return problem


def _write_results(_: Any, env: Any, resource_runtime_part: Any, state_credentials: Any) -> None:
    """Write a file for each status and the manifest that names them, with the workflow's role."""
    from moto.stepfunctions.parser.asl.component.state.exec.state_map.result_writer.resource_eval import (
        resource_eval_s3,
    )

    parameters = env.stack.pop()
    env.stack.pop()
    client = resource_eval_s3.ResourceEvalS3._get_s3_client(
        resource_runtime_part=resource_runtime_part, state_credentials=state_credentials
    )
    (*_, record) = env.map_run_record_pool_manager.get_all()
    bucket, prefix = parameters["Bucket"], parameters["Prefix"].rstrip("/")
    folder = f"{prefix}/{record.map_run_arn.split(':')[-1]}" if prefix else record.map_run_arn.split(":")[-1]
    files: dict[str, list[dict[str, Any]]] = {"FAILED": [], "PENDING": [], "SUCCEEDED": []}
    for status, children in _by_status(record.tolerance.children):
        body = json.dumps(children).encode()
        key = f"{folder}/{status}_0.json"
        client.put_object(Bucket=bucket, Key=key, Body=body)
        files[status].append({"Key": key, "Size": len(body)})
    manifest = {"DestinationBucket": bucket, "MapRunArn": record.map_run_arn, "ResultFiles": files}
    key = f"{folder}/manifest.json"
    client.put_object(Bucket=bucket, Key=key, Body=json.dumps(manifest, indent=2).encode())
    details = {"Bucket": bucket, "Key": key}
    env.stack.append({"MapRunArn": record.map_run_arn, "ResultWriterDetails": details})


def _by_status(children: list[dict[str, Any]]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    for status in ("FAILED", "SUCCEEDED"):
        found = [child for child in children if child["Status"] == status]
        if found:
            yield status, found


# What Step Functions refuses when a state machine is created, or would at its first map


def children_of(machine: Mapping[str, Any]) -> list[str]:
    """Return the names of the distributed maps of a definition."""
    return [
        name
        for name, state in machine.get("States", {}).items()
        if state.get("ItemProcessor", {}).get("ProcessorConfig", {}).get("Mode") == "DISTRIBUTED"
    ]


def refuse_wrong_maps(machine: Mapping[str, Any], kind: str) -> None:
    """Raise `LocalStackError` for a distributed map that Step Functions would refuse."""
    names = children_of(machine)
    if names and kind == "EXPRESS":
        raise LocalStackError(
            f"{names[0]} is a distributed map, and Step Functions supports these in standard workflows only"
        )
    for name in names:
        processor = machine["States"][name]["ItemProcessor"]
        if processor["ProcessorConfig"].get("ExecutionType") not in ("STANDARD", "EXPRESS"):
            raise LocalStackError(f"{name} is a distributed map without an ExecutionType")


def as_moto_reads(definition: str) -> str:
    """Return the definition without what moto's grammar lacks.

    It knows only fractions as percentages, and no children that are Express workflows: it runs all alike.
    """
    machine = json.loads(definition)
    names = children_of(machine)
    for name in names:
        state = machine["States"][name]
        state["ItemProcessor"]["ProcessorConfig"]["ExecutionType"] = "STANDARD"
        if "ToleratedFailurePercentage" in state:
            state["ToleratedFailurePercentage"] = float(state["ToleratedFailurePercentage"])
    return json.dumps(machine) if names else definition
