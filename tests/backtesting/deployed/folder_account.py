"""The deployed application over a folder: the functions of a backtest, called as its state machine does."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from functions.adapters.in_memory import HandClock, MemoryItems, MemoryLender
from functions.backtests.judging import judge_chunk
from functions.backtests.ports import BacktestPorts
from functions.backtests.sandboxed import keep_verdicts, prepare_chunk
from functions.backtests.spending import PurseInTable
from functions.custom_rules.running import run as run_in_sandbox
from smdebug.backtesting.deployed.plan import manifest_key
from smdebug.service.backtests import Execution
from smdebug.storage import open_storage


@dataclass
class FolderAccount:
    """A bucket that is a folder, and an execution that judges at once what it is to judge."""

    folder: Path
    chunks_until_it_fails: int = 1_000
    capacity: Mapping[str, Any] = field(default_factory=lambda: {"at_once": 2, "memory_mb": 1024})
    executions: dict[str, Execution] = field(default_factory=dict)
    judged: list[str] = field(default_factory=list)
    lender: MemoryLender = field(default_factory=MemoryLender)
    clock: HandClock = field(default_factory=HandClock)
    before_chunk: Callable[[], Any] = lambda: None
    has_bundles: bool = True
    late_after: int = 1_000
    """How many jobs of the sandbox begin in time, in each chunk."""

    def __post_init__(self) -> None:
        self.bucket = open_storage(str(self.folder))
        purse = PurseInTable(MemoryItems(), self.clock.now)
        bundles = str(self.folder / "backtests" / "bundles") if self.has_bundles else ""
        self.ports = BacktestPorts(
            self.bucket, purse, self.clock, self.lender, memory_mb=1024, bundles=bundles
        )

    def start(self, id: str) -> None:
        entries = json.loads(bytes(self.bucket.read(manifest_key(id))))
        self.executions[id] = Execution("RUNNING")
        for number, entry in enumerate(entries):
            if number >= self.chunks_until_it_fails:
                self.executions[id] = Execution("FAILED", "killed")
                return
            self.before_chunk()
            try:
                self._judge(entry)
            except Exception as problem:
                self.executions[id] = Execution("FAILED", f"{type(problem).__name__}: {problem}")
                return
            self.judged += [run[1] for run in entry["runs"]]
        self.executions[id] = Execution("SUCCEEDED")

    def execution(self, id: str) -> Execution | None:
        return self.executions.get(id)

    def stop(self, id: str) -> None:
        self.executions[id] = Execution("ABORTED", "Cancelled")

    def _judge(self, entry: dict[str, Any]) -> None:
        if not entry["custom"]:
            judge_chunk(self.ports, entry)
            return
        work = prepare_chunk(self.ports, entry)
        answers: list[Mapping[str, Any]] = [
            {"late": True}
            if number >= self.late_after
            else run_in_sandbox(
                {
                    "run": job["run"][2],
                    "judge": job["run"],
                    "credentials": job["credentials"],
                    "task": work["task"],
                    "rule": {"name": "backtest"},
                }
            )
            for number, job in enumerate(work["jobs"])
        ]
        keep_verdicts(self.ports, {"chunk": entry, "begun": work["begun"], "answers": answers})
