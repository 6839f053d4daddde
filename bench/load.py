"""Many runs at once through the local stack: counts losses and measures latencies.

    make load-test                                     4 runs of 4 workers, 50 steps each
    make load-test ARGS="--runs 16 --workers 1 --steps 200"

The handlers are the real ones; moto and this machine's cores are the limit, not those of AWS.
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
from tests.functions.saver import FAILING, Saver

FOUND = "Rule Evaluation Condition Met"
# As in an account whose quota was raised: in the smallest one, 10 functions at once share all runs.
SETTINGS = {"account_concurrency": 1000}
RULE = {"name": "x", "rule": "ExplodingTensor", "repeat": "every_step"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--workers", type=int, default=4, help="of each run")
    parser.add_argument("--steps", type=int, default=50, help="of each run")
    arguments = parser.parse_args()
    names = [f"run-{number}" for number in range(arguments.runs)]
    with LocalAws(SETTINGS) as aws:
        debugger = LocalDebugger(aws)
        for name in names:
            debugger.attach(name, [RULE])
        began = time.monotonic()
        with ThreadPoolExecutor(arguments.runs) as trainings:
            list(trainings.map(lambda name: train(debugger, name, arguments), names))
        saved = time.monotonic() - began
        for number, name in enumerate(names):
            debugger.wait(name, through=arguments.steps - 1, seconds=600)
            progress(f"{number + 1} of {arguments.runs} runs are evaluated")
        with suppress(WaitedTooLong):  # reported below
            for name in names:
                complete = partial(is_complete, debugger, name, arguments.steps)
                aws.wait_until(complete, what="the events of every step", seconds=60)
        evaluated = time.monotonic() - began
        lost = [problem for name in names for problem in missing(debugger, name, arguments.steps)]
        took = [latency for name in names for latency in latencies(debugger, name)]
        calls = Counter(invocation.function for invocation in aws.invocations())
        dead = aws.dead_letters()
    progress("")
    steps = arguments.runs * arguments.steps
    print(f"\n{arguments.runs} runs of {arguments.workers} workers, {arguments.steps} steps each")
    print(f"{2 * steps * arguments.workers:>10,}  files, saved in {saved:.1f} s")
    print(f"{steps / evaluated:>10.1f}  steps a second, all evaluated after {evaluated:.1f} s")
    p50, p99 = np.percentile(took, [50, 99])
    print(f"{p50:>10.1f}  seconds from PUT to event (median), {p99:.1f} (99th percentile)")
    for function, count in calls.most_common():
        print(f"{count:>10,}  calls of {function}")
    print(f"{len(dead):>10}  dead letters")
    print(f"{len(lost):>10}  steps lost or published with several ids")
    for problem in lost[:10]:
        print(f"            {problem}")
    return 1 if lost or dead else 0


def train(debugger: LocalDebugger, name: str, arguments: argparse.Namespace) -> None:
    """Save with all workers of a run, as fast as possible."""
    place = debugger.storage(name)
    workers = [
        Saver(place, f"worker_{number}", num_workers=arguments.workers, run_id=name)
        for number in range(arguments.workers)
    ]
    workers[0].begin()
    for step in range(arguments.steps):
        for worker in workers:
            worker.save(step, FAILING)


def missing(debugger: LocalDebugger, name: str, steps: int) -> list[str]:
    """The steps without an event, or with events of several ids."""
    ids: dict[int, set[str]] = {}
    for event in debugger.events(name, FOUND):
        ids.setdefault(event["detail"]["step"], set()).add(event["detail"]["id"])
    return [f"{name}: step {step}" for step in range(steps) if len(ids.get(step, ())) != 1]


def is_complete(debugger: LocalDebugger, name: str, steps: int) -> bool:
    return not missing(debugger, name, steps)


def latencies(debugger: LocalDebugger, name: str) -> list[float]:
    """The seconds from the upload of each step's last file to its first event."""
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
