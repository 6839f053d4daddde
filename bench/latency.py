"""The latency of the debugger: from the upload of a step's last file to the event about it.

    make bench-latency                     100 steps at one a second, warm, and 5 cold starts
    make bench-latency ARGS="--steps 20 --cold 1"

Measured on the local stack: the real handlers under AWS's own runtime client, on this machine. This includes
moto's own time, and excludes AWS's (mostly S3's notifications).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from datetime import datetime

import numpy as np

from local_aws import LocalAws, LocalDebugger
from tests.functions.saver import FAILING, Saver

FOUND = "Rule Evaluation Condition Met"
RULE = {"name": "x", "rule": "ExplodingTensor", "repeat": "every_step"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=100, help="at one a second")
    parser.add_argument("--cold", type=int, default=5, help="number of stacks to start")
    arguments = parser.parse_args()
    cold = [first_step() for _ in range(arguments.cold)]
    warm = each_step(arguments.steps)
    print("\nPUT to event, in seconds         p50      p99      worst")
    report("warm, one step a second", warm, "p50 at most 0.4, p99 at most 1.5")
    report("first step of a cold stack", cold, "at most 2.5")


def each_step(steps: int) -> list[float]:
    """Return the latency of each step of a run that saves once a second, after warming up."""
    with LocalAws() as aws:
        run = Measured(aws)
        for step in range(5):
            run.save(step)
        took = []
        for step in range(5, 5 + steps):
            began = time.monotonic()
            took.append(run.save(step))
            time.sleep(max(0.0, 1.0 - (time.monotonic() - began)))
        return took


def first_step() -> float:
    """Return the latency of a stack's first step, for which every function has to start."""
    with LocalAws() as aws:
        return Measured(aws).save(0)


class Measured:
    """A run of one worker with a finding at every step."""

    def __init__(self, aws: LocalAws):
        self._debugger = LocalDebugger(aws)
        self._debugger.attach("run", [RULE])
        self._saver = Saver(self._debugger.storage("run")).begin()

    def save(self, step: int) -> float:
        """Save a step; return the seconds from its upload until its event is on the bus."""
        self._saver.save(step, FAILING)

        def latency() -> float | None:
            for event in self._debugger.events("run", FOUND):
                if event["detail"]["step"] == step:
                    uploaded = datetime.fromisoformat(event["detail"]["times"]["uploaded"])
                    return float(event["time"]) - uploaded.timestamp()
            return None

        what = f"the event of step {step}"
        took: float = self._debugger.aws.wait_until(latency, what=what, seconds=30)
        return took


def report(what: str, took: Sequence[float], promised: str) -> None:
    if took:
        p50, p99 = np.percentile(took, [50, 99])
        print(f"{what:<30}{p50:7.2f}  {p99:7.2f}  {max(took):9.2f}   (promised: {promised})")


if __name__ == "__main__":
    main()
