"""Run the command in a process of its own, as a shell does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PASSED_ON = {"run"}  # what it takes, the program behind it says
PATHS = [
    str(Path(__file__).parents[2] / "layers/smdebug_core/python"),
    str(Path(__file__).parents[2] / "rules"),
]


def in_a_shell(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "smdebug", *words],
        capture_output=True,
        text=True,
        check=False,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(PATHS),
            "PYTHONWARNINGS": "error",
            **environment,
        },
    )


def in_bash(script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", script],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(PATHS)},
    )
