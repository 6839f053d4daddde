"""Many runs at once through the whole stack, on this machine: is anything lost, and how long does it take?

    make load-test                                     4 runs of 4 workers, 50 steps each
    make load-test ARGS="--runs 16 --workers 1 --steps 200"

The local stack with its real handlers; moto and this machine's cores are the limit, not what AWS would take.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from functools import partial

import numpy as np

from local_aws import LocalAws, LocalDebugger
from local_aws.errors import WaitedTooLong
from tests.functions.saver import ILL, Saver

FOUND = "Rule Evaluation Condition Met"
RULE = {"name": "x", "rule": "ExplodingTensor", "repeat": "every_step"}


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--runs", type=int, default=4)
    arguments.add_argument("--workers", type=int, default=4, help="of each run")
    arguments.add_argument("--steps", type=int, default=50, help="of each run")
    asked = arguments.parse_args()
    names = [f"run-{number}" for number in range(asked.runs)]
    with LocalAws() as aws:
        debugger = LocalDebugger(aws)
        for name in names:
            debugger.attach(name, [RULE])
        began = time.monotonic()
        with ThreadPoolExecutor(asked.runs) as trainings:
            list(trainings.map(lambda name: train(debugger, name, asked), names))
        saved = time.monotonic() - began
        for number, name in enumerate(names):
            debugger.wait(name, through=asked.steps - 1, seconds=600)
            progress(f"{number + 1} of {asked.runs} runs are evaluated")
        with suppress(WaitedTooLong):  # what is missing is told below
            for name in names:
                all_told = partial(all_are_told, debugger, name, asked.steps)
                aws.wait_until(all_told, what="the events of every step", seconds=60)
        evaluated = time.monotonic() - began
        lost = [problem for name in names for problem in missing(debugger, name, asked.steps)]
        took = [latency for name in names for latency in latencies(debugger, name)]
        calls = Counter(invocation.function for invocation in aws.invocations())
        dead = aws.dead_letters()
    progress("")
    steps = asked.runs * asked.steps
    print(f"\n{asked.runs} runs of {asked.workers} workers, {asked.steps} steps each")
    print(f"{2 * steps * asked.workers:>10,}  files, saved in {saved:.1f} s")
    print(f"{steps / evaluated:>10.1f}  steps a second, all evaluated after {evaluated:.1f} s")
    p50, p99 = np.percentile(took, [50, 99])
    print(f"{p50:>10.1f}  seconds from PUT to event in the middle, {p99:.1f} at most for 99 of 100")
    for function, count in calls.most_common():
        print(f"{count:>10,}  calls of {function}")
    print(f"{len(dead):>10}  dead letters")
    print(f"{len(lost):>10}  steps lost or told of with another id")
    for problem in lost[:10]:
        print(f"            {problem}")
    return 1 if lost or dead else 0


def train(debugger: LocalDebugger, name: str, asked: argparse.Namespace) -> None:
    """All workers of a run save as fast as they can."""
    place = debugger.storage(name)
    workers = [
        Saver(place, f"worker_{number}", num_workers=asked.workers, run_id=name)
        for number in range(asked.workers)
    ]
    workers[0].begin()
    for step in range(asked.steps):
        for worker in workers:
            worker.save(step, ILL)


def missing(debugger: LocalDebugger, name: str, steps: int) -> list[str]:
    """The steps of which no event tells, or more than one id."""
    ids: dict[int, set[str]] = {}
    for event in debugger.events(name, FOUND):
        ids.setdefault(event["detail"]["step"], set()).add(event["detail"]["id"])
    return [f"{name}: step {step}" for step in range(steps) if len(ids.get(step, ())) != 1]


def all_are_told(debugger: LocalDebugger, name: str, steps: int) -> bool:
    return not missing(debugger, name, steps)


def latencies(debugger: LocalDebugger, name: str) -> list[float]:
    """From the upload of a step's last file to its first event."""
    first: dict[int, float] = {}
    for event in debugger.events(name, FOUND):
        uploaded = datetime.fromisoformat(event["detail"]["times"]["uploaded"]).timestamp()
        first.setdefault(event["detail"]["step"], float(event["time"]) - uploaded)
    return list(first.values())


def progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r{text:<60}", end="" if text else "\r", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
