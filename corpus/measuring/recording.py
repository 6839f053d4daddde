"""Recorded runs: each training in a child process, once for each state of the code that saves it."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from corpus.measuring.ways import DEFAULT
from corpus.measuring.zoo import Trained

ROOT = Path(__file__).parents[2]
DATA = ROOT / "corpus" / "programs" / "data.py"
LIBRARY = ROOT / "layers" / "smdebug_core" / "python" / "smdebug"
SAVING = (
    "files",
    "numbers",
    "storage",
    "config",
    "saving",
    "pytorch",
    "tensorflow",
    "xgboost",
    "jax",
    "launching",
    "run.py",
    "mode_keys.py",
)
"""The rooms and modules that what a run holds depends on."""
NOTE = "recorded.json"
TIME_LIMIT = 600


@dataclass(frozen=True)
class Recorded:
    """The runs of one training, one for each seed, as the child process noted them."""

    trained: Trained
    runs: tuple[tuple[int, str], ...]
    """Seed and place of each run."""
    error: str = ""
    seeds: int = 0
    commit: str = ""
    """The commit whose code recorded them."""

    @property
    def missing(self) -> list[int]:
        """The seeds whose training left no run."""
        return sorted(set(range(self.seeds)) - {seed for seed, _ in self.runs})


def is_recorded(trained: Trained, seeds: int, folder: Path) -> bool:
    """Whether recordings of all these seeds are kept, whatever code made them."""
    return _noted(_place(trained, folder), seeds, None) is not None


def record(
    trained: Trained, seeds: int, folder: Path, *, way: str = DEFAULT, stale_is_fine: bool = False
) -> Recorded:
    """Record the training with seeds 0, 1 …, or return what was recorded by the same code before.

    With `stale_is_fine` a recording is used whatever code made it.
    """
    place = _place(trained, folder)
    code = code_of(trained)
    known = _noted(place, seeds, None if stale_is_fine else code)
    if known is None:
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        error = _train(trained, seeds, place, way)
        known = {"code": code, "seeds": seeds, "error": error, "runs": _runs(place, seeds)}
        known["commit"] = commit()
        (place / NOTE).write_text(json.dumps(known))
    # Below the folder as it is named now: recordings may be kept in another place than they were made in.
    runs = tuple((int(seed), str(place / Path(where).name)) for seed, where in known["runs"] if seed < seeds)
    return Recorded(trained, runs, str(known["error"]), seeds, str(known.get("commit", "")))


def _place(trained: Trained, folder: Path) -> Path:
    return folder / trained.kind / trained.case.name.replace(" ", "-")


@cache
def commit() -> str:
    """The commit of this code, with a `+` if it was changed since; nothing outside of a repository."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--exclude=*", "--dirty=+"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def _noted(place: Path, seeds: int, code: str | None) -> dict[str, Any] | None:
    """What was recorded there, if that is enough and not of other code."""
    try:
        known: dict[str, Any] = json.loads((place / NOTE).read_text())
    except (OSError, ValueError):
        return None
    is_same = code is None or known["code"] == code
    return known if is_same and known["seeds"] >= seeds and not known["error"] else None


def _train(trained: Trained, seeds: int, place: Path, way: str) -> str:
    """Train in a child process, all seeds one after another; the end of its output if it failed."""
    path = [str(ROOT / "layers/smdebug_core/python"), str(ROOT / "rules"), str(ROOT)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(path)}
    command = [sys.executable, "-m", "corpus.measuring.child", trained.case.name, trained.kind]
    try:
        done = subprocess.run(
            [*command, str(seeds), str(place), way],
            env=environment,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT,
        )
    except subprocess.TimeoutExpired:
        return f"not finished after {TIME_LIMIT} s"
    (place / "output.txt").write_text(done.stdout + done.stderr)
    return "" if done.returncode == 0 else (done.stdout + done.stderr)[-2000:] or "no output"


def _runs(place: Path, seeds: int) -> list[tuple[int, str]]:
    return [
        (seed, str(run))
        for seed in range(seeds)
        for run in sorted(place.glob(f"seed-{seed}*"))
        if run.is_dir()
    ]


def code_of(trained: Trained) -> str:
    """A hash of the code that decides what the recorded run holds."""
    return hashlib.sha256((_saving_code() + _program_code(trained)).encode()).hexdigest()[:16]


@cache
def _saving_code() -> str:
    code = hashlib.sha256()
    for name in SAVING:
        place = LIBRARY / name
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            code.update(path.read_bytes())
    return code.hexdigest()


def _program_code(trained: Trained) -> str:
    """The program, the data, and what the program's module has beside other programs."""
    name = trained.case.train.__name__
    module = Path(trained.case.train.__code__.co_filename)
    kept = []
    for node in _statements(module):
        if not isinstance(node, ast.FunctionDef) or not node.decorator_list:
            kept.append(ast.unparse(node))
        elif node.name == name:  # without its decorator, which says what is known of it
            kept += map(ast.unparse, node.body)
    return "\n".join([*kept, DATA.read_text()])


@cache
def _statements(module: Path) -> tuple[ast.stmt, ...]:
    return tuple(ast.parse(module.read_text()).body)
