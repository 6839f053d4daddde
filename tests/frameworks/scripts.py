"""Run training scripts that do not use this library, as a user does."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
PATHS = [ROOT / "layers" / "smdebug_core" / "python", ROOT / "rules"]
Python = Callable[..., subprocess.CompletedProcess[str]]


def environment_of(more: Mapping[str, str]) -> dict[str, str]:
    """The environment of a script, which can import the library."""
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, PATHS)),
        "SMDEBUG_LOG_LEVEL": "error",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        **more,
    }


def python(*words: object, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run Python on these words; the library can be imported there."""
    return subprocess.run(
        [sys.executable, *map(str, words)],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        env=environment_of(environment),
    )


def watched(script: Path, *options: object, arguments: tuple[object, ...] = (), run: Python = python) -> str:
    """What the script prints under `smdebug run`, which has to be what it prints alone."""
    alone = run(script, *arguments, cwd=script.parent)
    assert alone.returncode == 0, alone.stderr[-3000:]
    under_smdebug = run("-m", "smdebug.run", *options, script, *arguments, cwd=script.parent)
    assert under_smdebug.returncode == 0, under_smdebug.stderr[-3000:]
    assert under_smdebug.stdout == alone.stdout
    return under_smdebug.stdout
