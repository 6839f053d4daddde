"""The two trainings of the demo, each in a process."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from local_aws.debugger import LocalDebugger
from local_aws.deployment.assembly import ROOT
from smdebug.rules.rule_sets import default_rules

SCRIPT = ROOT / "examples" / "train_numpy.py"
FAILING = "failing"
STEPS = {FAILING: 1200, "healthy": 300}
SAVE_INTERVAL, PAUSE = 10, 0.05
RULES: list[Any] = [{"name": name, "rule": name, "actions": ["stoptraining"]} for name in default_rules()]


@dataclass
class Run:
    """A training, and what the demo has shown of it."""

    name: str
    process: subprocess.Popen[bytes]
    output: Path
    shown_steps: set[int] = field(default_factory=set)
    shown_findings: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    shown_actions: set[str] = field(default_factory=set)
    end_is_shown: bool = False
    alerted_after: dict[str, float] = field(default_factory=dict)  # seconds, by finding
    alerts: list[dict[str, Any]] = field(default_factory=list)
    report: Path | None = None

    @property
    def has_ended(self) -> bool:
        return self.process.poll() is not None

    @property
    def was_stopped(self) -> bool:
        return "stopped" in self.output_text

    @property
    def ending(self) -> str:
        """`stopped`, `failed` or `finished`."""
        if self.was_stopped:
            return "stopped"
        return "failed" if self.process.returncode else "finished"

    @property
    def output_text(self) -> str:
        return self.output.read_text(encoding="utf-8", errors="replace")


@contextmanager
def training(name: str, debugger: LocalDebugger) -> Iterator[Run]:
    """Start a training that saves to the local bucket; kill it at the end."""
    command = [sys.executable, "-W", "ignore", str(SCRIPT), "--out-dir", debugger.path(name)]
    command += ["--steps", str(STEPS[name]), "--pause", str(PAUSE)]
    command += ["--statistics"]
    if name == FAILING:
        command.append("--failing")
    sources = [ROOT / "layers" / "smdebug_core" / "python", ROOT / "rules"]
    environment = {
        **os.environ,
        **debugger.aws.environment,
        "PYTHONPATH": os.pathsep.join(map(str, sources)),
        "SMDEBUG_LOG_LEVEL": "error",
        "OPENBLAS_NUM_THREADS": "1",
        "TMPDIR": debugger.aws.folder,  # the stack ends processes with its folder in the environment
    }
    with tempfile.TemporaryDirectory(prefix="training-", dir=debugger.aws.folder) as folder:
        output = Path(folder) / "output"
        with output.open("wb") as file:
            process = subprocess.Popen(  # noqa: S603 - our own example
                command, stdout=file, stderr=file, env=environment, start_new_session=True
            )
        try:
            yield Run(name, process, output)
        finally:
            process.kill()
            process.wait()
