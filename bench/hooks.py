"""What a hook adds to a training, against the old library on the same torch: `make bench-hooks`.

Both run the same script, `hook_training.py`, in turn and in processes of their own; within each the training
is run with the hook and without it, in turn. What is compared is what is added.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from bench.measure import Table

ROOT = Path(__file__).parents[1]
RULES = ROOT / "rules"
"""Where the rules are that a child process judges a training with."""
OLD_HOME = ROOT / ".venv-old-hooks"
# What the old library works with on the Python of the frameworks.
OLD = ["smdebug==1.0.34", "protobuf==3.20.3", "numpy==1.26.4", "pandas", "psutil", "requests"]
TORCH = "torch==2.13.0"
PROMISED = {
    "nothing due, small": "<= 0.02 ms",
    "nothing due, medium": "<= 0.02 ms",
    "save_all every 10, small": "<= 1/4",
    "save_all every 10, medium": "<= 1/4",
    "TensorBoard, small": ">= 10 x",
    "TensorBoard, medium": ">= 10 x",
}
Found = dict[str, dict[str, float]]
# The training's own memory is kept for it, for both: else what is measured is whether malloc gave it back to
# the system between two iterations, which costs up to 2,000 page faults each.
KEPT_MEMORY = {"MALLOC_TRIM_THRESHOLD_": str(1 << 30), "MALLOC_MMAP_THRESHOLD_": str(1 << 30)}


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--rounds", type=int, default=9)
    asked.add_argument("--turns", type=int, default=3)
    asked.add_argument("--no-peer", action="store_true", help="measure this library alone")
    options = asked.parse_args()
    peer = None if options.no_peer else old_python()
    ours: list[Found] = []
    old: list[Found] = []
    for _ in range(options.turns):
        ours.append(measured(Path(sys.executable), options.rounds, str(library())))
        if peer is not None:
            old.append(measured(peer, options.rounds, ""))
    print(comparison_table(together(ours), together(old) if old else None))
    path = os.pathsep.join([str(library()), str(RULES)])
    codes = [
        subprocess.run(
            [sys.executable, "-m", module],
            check=False,
            cwd=ROOT,
            env={**os.environ, **KEPT_MEMORY, "PYTHONPATH": path},
        ).returncode
        for module in ("bench.plan.plan_price", "bench.plan.short_runs")
    ]
    sys.exit(max(codes))


def comparison_table(ours: Found, old: Found | None) -> Table:
    """Return a table of the time that each hook adds."""
    table = Table("What a hook adds to an iteration of a training on the CPU")
    for what, found in ours.items():
        peer = old[what] if old else None
        promised = PROMISED.get(what, "")
        if what.startswith("TensorBoard"):
            mine, others = f"{speed(found):,.0f} MB/s", f"{speed(peer):,.1f} MB/s" if peer else ""
            ratio = f"{speed(found) / speed(peer):.0f} x" if peer else ""
        else:
            mine = f"{found['added'] * 1e3:.3f} ms of {found['bare'] * 1e3:.2f}"
            others = f"{peer['added'] * 1e3:.3f} ms" if peer else ""
            is_ratio = peer is not None and peer["added"] > 0 and "ms" not in promised
            ratio = f"{found['added'] / peer['added']:.2f}" if peer and is_ratio else ""
        table.row(what, mine, others, f"{ratio} ({promised})".strip() if promised else ratio)
        if found.get("first"):
            table.row(
                "  the first step of it",
                f"{found['first'] * 1e3:.1f} ms",
                f"{peer['first'] * 1e3:.1f} ms" if peer else "",
            )
    return table


def speed(found: dict[str, Any]) -> float:
    """MB of parameters and gradients that are exported in a second."""
    return 2 * found["bytes"] / found["added"] / 1e6


def together(turns: list[Found]) -> Found:
    """The median turn, number by number."""
    return {
        what: {key: statistics.median(turn[what][key] for turn in turns) for key in first}
        for what, first in turns[0].items()
    }


def measured(python: Path, rounds: int, path: str) -> Found:
    finished = subprocess.run(
        [str(python), str(ROOT / "bench" / "hook_training.py"), str(rounds)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **KEPT_MEMORY, "PYTHONPATH": path},
    )
    found: Found = json.loads(finished.stdout.splitlines()[-1])
    return found


def library() -> Path:
    return ROOT / "layers" / "smdebug_core" / "python"


def old_python() -> Path | None:
    """The Python of an environment with the old library in it, made if it is not there."""
    python = OLD_HOME / "bin" / "python"
    if not python.exists():
        print("Installing the old library beside this one, once ...", flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(OLD_HOME)], check=True)
        install = [str(python), "-m", "pip", "install", "-q", *OLD, TORCH]
        if subprocess.run(install, check=False).returncode:
            print("The old library could not be installed: there is no peer.")
            return None
    return python


if __name__ == "__main__":
    main()
