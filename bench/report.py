"""`make bench-report`: how long the report of a long run takes, how large it is, what memory it needs."""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import smdebug

PROMISED_BYTES = 5_000_000
PROMISED_SECONDS = 30


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--steps", type=int, default=10_000)
    arguments.add_argument("--tensors", type=int, default=200)
    asked = arguments.parse_args()
    os.environ["SMDEBUG_LOG_LEVEL"] = "error"
    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        save(Path(folder) / "run", asked.steps, asked.tensors)
        saved = time.perf_counter() - begun
        print(f"{asked.steps:,} steps of {asked.tensors} tensors were saved in {saved:.0f} s.")
        page = Path(folder) / "report.html"
        command = [sys.executable, "-m", "smdebug", "report", str(Path(folder) / "run")]
        begun = time.perf_counter()
        subprocess.run([*command, "-o", str(page)], check=False)  # ends with 1 for a finding
        seconds = time.perf_counter() - begun
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(
            f"The report: {page.stat().st_size / 1e6:.2f} MB (promised: {PROMISED_BYTES / 1e6:.0f}) in "
            f"{seconds:.1f} s (promised: {PROMISED_SECONDS}), {used.ru_utime + used.ru_stime:.1f} s of them "
            f"computing; {used.ru_maxrss / 1000:.0f} MB of memory at most."
        )
        if page.stat().st_size > PROMISED_BYTES or seconds > PROMISED_SECONDS:
            print("NOT HELD")


def save(place: Path, steps: int, tensors: int) -> None:
    """Gradients that become smaller, and a loss."""
    rng = np.random.default_rng(0)
    values = {
        f"gradient/layer{at // 2}.{'weight' if at % 2 else 'bias'}": rng.normal(size=64).astype("f4")
        for at in range(tensors - 1)
    }
    config = smdebug.SaveConfig(save_interval=1)
    with smdebug.Hook(str(place), include_collections=["gradients"], save_config=config) as hook:
        for step in range(steps):
            with hook.step():
                hook.record("loss", 1 / (1 + step / 100) + 0.01 * rng.normal())
                hook.record_all({name: value / (1 + step) for name, value in values.items()})


if __name__ == "__main__":
    main()
