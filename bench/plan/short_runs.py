"""What watching adds to the processor time of short trainings, of which a seventh of the steps is saved.

    python -m bench.plan.short_runs [ROUNDS]       prints the table, and exits with 1 if a promise is missed

A training of 250 steps takes seconds, and what happens once, as looking for its optimizers, counts. Each is
run in a process of its own, with `smdebug.start` and without in turn; imports are not measured. All threads
count: what is measured and written in the background, too.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

STEPS = 250
LIMIT = 5.0
"""The promised share, in percent."""
KINDS = ("small_transformer", "unet")


def main(rounds: int) -> None:
    """Print the table of both trainings."""
    from bench.plan.plan_price import Promises

    promises = Promises(f"What smdebug.start adds to the processor time of {STEPS} steps")
    for kind in KINDS:
        pairs = [(seconds(kind, "alone"), seconds(kind, "watched")) for _ in range(rounds)]
        alone, watched = (statistics.median(times) for times in zip(*pairs, strict=True))
        added = 100 * (watched / alone - 1)
        promises.row(kind.replace("_", " "), added, "%", f"of {alone:.2f} s", limit=LIMIT)
    print(promises.table)
    if promises.missed:
        sys.exit("\n".join(promises.missed))


def seconds(kind: str, how: str) -> float:
    """The processor time of one training, in a process of its own."""
    finished = subprocess.run(
        [sys.executable, "-m", "bench.plan.short_runs", kind, how],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "SMDEBUG_LOG_LEVEL": "error", "OMP_NUM_THREADS": "1"},
    )
    return float(finished.stdout.splitlines()[-1])


def train(kind: str, how: str) -> None:
    """Train, watched or alone; print the seconds of processor time that all threads took."""
    import smdebug
    from bench.plan import plan_trainings

    folder = tempfile.mkdtemp(dir=plan_trainings.FOLDER)
    watched = smdebug.start(f"{folder}/run") if how == "watched" else None
    training = plan_trainings.Training(getattr(plan_trainings, kind))
    begin = time.process_time()
    for _ in range(STEPS):
        training.step()
    if watched is not None:
        watched.stop()
    print(time.process_time() - begin)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1] in KINDS:
        train(*sys.argv[1:3])
    else:
        main(int(sys.argv[1]) if sys.argv[1:] else 5)
