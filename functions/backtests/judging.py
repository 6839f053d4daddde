"""A chunk of runs -> their verdicts in the bucket: built-in rules, in a process that may be ended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any

import smdebug
from functions.backtests.ports import BacktestPorts
from functions.backtests.spending import reserve, settle
from functions.telemetry import log
from smdebug.backtesting.deployed.plan import BEGIN_WITHIN, rows_key, seconds_for_run
from smdebug.backtesting.deployed.task import Task, encoded_verdicts, read_task
from smdebug.backtesting.finding_runs import FoundRun
from smdebug.backtesting.judging import Judged
from smdebug.backtesting.pool import JudgingPool
from smdebug.exceptions import SMDebugError


class OtherVersion(SMDebugError):
    """The backtest was planned by another version of the library, whose verdicts may differ."""


class CustomCode(SMDebugError):
    """The backtest has code of the user's, which only the sandbox runs."""


def judge_chunk(ports: BacktestPorts, event: Mapping[str, Any]) -> dict[str, Any]:
    """Judge the runs of the chunk while there is time, and write their verdicts; say how many are left."""
    name, chunk = str(event["backtest"]), int(event["chunk"])
    task = task_of(ports, name)
    if task.is_custom:
        raise CustomCode(f"{name} has code of its own")
    begun = ports.clock.now()
    reserve(ports.purse, task.purse, float(event["dollars"]), task.budget)
    verdicts: list[tuple[FoundRun, Judged]] = []
    runs = [FoundRun(*run) for run in event["runs"]]
    try:
        question = replace(
            task.question,
            timeout=seconds_for_run(task.question),
            bundles=ports.bundles,
            keeps_bundles=bool(ports.bundles),
        )
        pool = JudgingPool(question, 1)
        with closing(pool.judge_each(_in_time(ports, runs, begun), lambda location: "")) as answers:
            for _, run, judged in answers:
                verdicts.append((run, judged))
                if judged.bundle_problem:
                    log("A run was read without its bundle", run=run.path, problem=judged.bundle_problem)
        ports.bucket.write(rows_key(name, chunk), encoded_verdicts(verdicts))
    finally:
        settle(ports.purse, task.purse, event, ports.clock.now() - begun, ports.memory_mb)
    return {"chunk": chunk, "judged": len(verdicts), "left": len(runs) - len(verdicts)}


def task_of(ports: BacktestPorts, id: str) -> Task:
    """Return the task; `OtherVersion` if its verdicts would be those of other code."""
    task = read_task(ports.bucket, id)
    if task.version != smdebug.__version__:
        raise OtherVersion(
            f"The backtest was planned with version {task.version}, and version {smdebug.__version__} is "
            "deployed: deploy the other one, or install this one"
        )
    return task


def _in_time(ports: BacktestPorts, runs: list[FoundRun], begun: float) -> Iterator[FoundRun]:
    """Yield runs as long as there is time to judge one to the end."""
    for run in runs:
        if ports.clock.now() - begun > BEGIN_WITHIN:
            return
        yield run
