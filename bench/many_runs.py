"""`make bench-many-runs`: the memory that a backtest of a million runs takes, and how long each part does.

Each part is a process of its own: listing the runs of a bucket, whose answers are computed here; looking up
all of their verdicts in a journal and writing the table in each form; and planning a backtest in the account
for as many runs as one takes.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

from smdebug.backtesting import finding_runs
from smdebug.backtesting.backtest import Backtest, listing_of
from smdebug.backtesting.deployed import account
from smdebug.backtesting.deployed.plan import MOST_RUNS, Capacity, PlannedRun, chunks_of, estimate
from smdebug.backtesting.deployed.task import Task, write_task
from smdebug.backtesting.finding_runs import FoundRun
from smdebug.backtesting.journal import Journal
from smdebug.backtesting.judging import Judged
from smdebug.backtesting.kept_rows import RowWriter
from smdebug.backtesting.question import Question
from smdebug.backtesting.rows import PASSED, Row
from smdebug.backtesting.summary import overview
from smdebug.backtesting.table_files import write_table
from smdebug.cli.runs.backtest_command import print_verdicts
from smdebug.storage import open_storage
from tests.backtesting.listed_runs import ListedRuns

PROMISED_MB = 600
"""Of one process: 500 and 100 for each core."""
ON_A_PAGE = 1000
PARTS = ("listed", "since", "limited", "table", "planned")
QUESTION = Question(({"rule": "Overfit", "parameters": {}},))


def main() -> int:
    """Print what each part took; return 1 if one took more memory than is promised."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--part", choices=PARTS, action="append")
    asked = parser.parse_args()
    broken = False
    for part in asked.part or PARTS:
        calls = f"import bench.many_runs as bench; bench.measure('{part}', {asked.runs})"
        said = subprocess.run([sys.executable, "-c", calls], stderr=subprocess.PIPE, text=True, check=False)
        print(said.stderr.rstrip(), flush=True)
        broken |= said.returncode != 0
    return broken


def measure(part: str, runs: int) -> None:
    """Do a part, and say on stderr what it took; end with 1 if that is too much."""
    begun = time.perf_counter()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # where the table is printed
    what = {"table": table, "planned": planned}.get(part) or listed
    done = what(runs, part)
    megabytes = most_memory() / 1000
    taken = f"{time.process_time():.0f} s of a core, {time.perf_counter() - begun:.0f} s by the clock"
    memory = f"{megabytes:.0f} MB (promised: {PROMISED_MB})"
    print(f"{part:<8} {done:>9,} runs: {memory}, {taken}", file=sys.stderr)
    raise SystemExit(megabytes > PROMISED_MB)


def most_memory() -> int:
    """Return the most kilobytes that this process has had; the one that started it does not count."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def listed(runs: int, part: str) -> int:
    """List all runs, as a backtest does that judges them meanwhile."""
    storage = ListedRuns(runs, ON_A_PAGE).storage()
    question = QUESTION if part != "since" else Question(QUESTION.rules, since=1.0)
    with patch.object(finding_runs, "open_storage", lambda _: storage):
        return sum(1 for _ in listing_of(question, ["s3://runs"], runs // 2 if part == "limited" else None))


def table(runs: int, _: str) -> int:
    """Look every verdict up in a journal, and write the table in each form."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "journal"
        with Journal(place, "digest") as journal:
            for run in found(runs):
                row = Row(run.path, "Overfit", PASSED, looked=200, seconds=0.1, highest=len(run.path) / 7)
                journal.add(run.location, "as it is", (row,))
        rows = RowWriter()
        with Journal(place, "digest") as journal:
            for number, run in enumerate(found(runs)):
                assert journal.identity_of(run.location) == "as it is"
                label = "failing" if number % 10 == 3 else "healthy"
                rows.add(number, [row.labelled(label) for row in journal.rows_of(run.location)])
        judged = Backtest(rows.in_order(), runs=runs)
        print_verdicts(judged, overview(judged.rows), QUESTION, all_runs=True)
        for name in ("table.json", "table.parquet", "table.html"):
            write_table(judged, Path(folder) / name)
    return runs


def planned(runs: int, _: str) -> int:
    """Look at the runs, divide them into calls and write the manifest."""
    runs = min(runs, MOST_RUNS)

    def look(_: Question, run: FoundRun) -> Any:
        return account._Looked(run, 2_000, f"{run.name:>64}", Judged())

    with patch.multiple(account, find_runs=lambda _: found(runs), _look=look):
        looked = account._looked_at(QUESTION, [], None)
    missing = [PlannedRun(each.run, each.steps, identity=each.identity) for each in looked]
    chunks = chunks_of(missing, 1)
    estimate(chunks, 1, Capacity(500, 1024), custom=False)
    with tempfile.TemporaryDirectory() as folder:
        write_task(open_storage(folder), "id", Task.of(QUESTION, 5.0), ((chunk, 0.1) for chunk in chunks))
    return runs


def found(runs: int) -> Iterator[FoundRun]:
    """Yield so many runs."""
    for number in range(runs):
        name = f"team/project/run-{number:07}"
        yield FoundRun(f"s3://bucket/{name}", name, f"s3://bucket/{name}")


if __name__ == "__main__":
    sys.exit(main())
