"""`make bench-expressions`: how long an expression on the series of many runs takes, and how much memory.

The series are in a kept index, as after an earlier backtest. First, the index alone is read and computed.
Then `smdebug backtest` looks at the folder of each run, too, to see whether it has changed. Each is a process
of its own, and the start of Python counts.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import numpy as np

import smdebug
from smdebug.backtesting.expressions.backtest_expression import Computed, ReadRun
from smdebug.backtesting.expressions.columns import Values
from smdebug.backtesting.expressions.grammar import parse
from smdebug.backtesting.expressions.kept_index import KeptIndex
from smdebug.backtesting.expressions.verdicts import read_keys
from smdebug.backtesting.identity import identity_of
from smdebug.files.names import COLLECTIONS_FOLDER, END_MARKER, INDEX_FOLDER
from smdebug.storage import open_storage

PROMISED_INDEX, PROMISED_FOLDERS = 3.0, 10.0
"""Seconds by the clock, of 5,000 runs with 200 steps of ten series, on two cores."""
PROMISED_MB = 500
_COMPUTES = "import sys; from bench.expressions import compute; compute(*sys.argv[1:])"


class Taken(NamedTuple):
    """What a command took: by the clock, of all processors, and the memory of its largest process."""

    seconds: float
    computing: float
    megabytes: float


def main() -> int:
    """Print what was measured; return 1 if a promise is not held."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=int, default=5_000)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--series", type=int, default=10)
    parser.add_argument("--function", default="rolling_median")
    parser.add_argument("--rounds", type=int, default=3, help="of which the fastest counts")
    asked = parser.parse_args()
    names = [f"s{number}" for number in range(asked.series)]
    text = " and ".join(f"{name} > 1.2 * {asked.function}({name}, 50)" for name in names)
    broken = []
    with tempfile.TemporaryDirectory() as folder:
        runs, index = Path(folder) / "runs", Path(folder) / "series.db"
        make_runs(runs, index, asked.runs, asked.steps, names)
        print(f"\n{asked.runs:,} runs, {asked.steps:,} steps, {asked.series} series with {asked.function}:")
        from_index = [sys.executable, "-c", _COMPUTES, str(index), str(runs), text]
        from_folders = [sys.executable, "-m", "smdebug", "backtest", str(runs), "--expr", text]
        for what, command, promised in (
            ("from the index", from_index, PROMISED_INDEX),
            ("with a look at each folder", [*from_folders, "--journal", str(index)], PROMISED_FOLDERS),
        ):
            taken = min(measured(command) for _ in range(asked.rounds))
            print(
                f"{taken.seconds:>8.1f} s {what} (promised: {promised:g}), "
                f"{taken.computing:.1f} s of all cores, {taken.megabytes:.0f} MB (promised: {PROMISED_MB})"
            )
            if taken.seconds > promised or taken.megabytes > PROMISED_MB:
                broken.append(what)
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    for what in broken:
        print(f"NOT HELD: {what}")
    if broken and load > cores + 2:  # this bench needs two
        print(f"Other programs were running (load {load:.0f} on {cores} cores): measure again when none is.")
    return bool(broken)


def make_runs(runs: Path, index: Path, number: int, steps: int, names: list[str]) -> None:
    """Write folders with the files that tell whether a run has changed, and an index with their series."""
    os.environ["SMDEBUG_LOG_LEVEL"] = "error"
    run = runs.parent / "run"
    with smdebug.Hook(str(run), save_config=smdebug.SaveConfig(save_interval=1)) as hook:
        for _ in range(steps):
            with hook.step():
                hook.record("loss", 1.0)
    random = np.random.default_rng(1)
    at = np.arange(steps, dtype=np.int64)
    with closing(KeptIndex(index)) as kept:
        for place in (runs / f"run-{each:05}" for each in range(number)):
            for part in (COLLECTIONS_FOLDER, INDEX_FOLDER):
                shutil.copytree(run / part, place / part, copy_function=os.link)
            os.link(run / END_MARKER, place / END_MARKER)
            storage = open_storage(place)
            columns = {f"series:{name}": Values(at, random.lognormal(size=steps)) for name in names}
            kept.keep(storage.location, identity_of(storage), columns)


def measured(command: list[str]) -> Taken:
    """Return what a command took that finds something."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    ended = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
    seconds = time.perf_counter() - begun
    if ended.returncode not in (0, 1):  # 1: there are findings
        raise SystemExit(f"{command[:4]} ended with {ended.returncode}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    computing = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Taken(seconds, computing, after.ru_maxrss / 1000)


def compute(index: str, runs: str, text: str) -> None:
    """Compute the expression for the runs that the index has."""
    condition = parse(text)
    keys = read_keys(condition)
    computed = Computed(condition)
    with closing(KeptIndex(Path(index))) as kept:
        for number, name in enumerate(sorted(os.listdir(runs))):  # noqa: PTH208 - names alone
            location = f"{runs}/{name}"
            if not kept.identity_of(location, keys):
                raise SystemExit(f"the index does not have {location}")
            computed.add(ReadRun(number, location, "", kept.columns_of(location, keys), ()))
    computed.in_order(None)


if __name__ == "__main__":
    sys.exit(main())
