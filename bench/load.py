"""Many runs at once through the local stack: counts losses and measures latencies.

    make load-test                                     4 runs of 4 workers, 50 steps each
    make load-test ARGS="--runs 16 --workers 1 --steps 200"
    make load-test ARGS="--backtest 40"                the same without and with a backtest beside it
    make load-test ARGS="--backtest 40 --account 10"   in an account in which 10 functions may run at once

The handlers are the real ones; moto and this machine's cores are the limit, not those of AWS.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from functools import partial
from itertools import accumulate
from pathlib import Path

import numpy as np

from infra.backtesting.share import most_at_once
from local_aws import LocalAws, LocalDebugger
from local_aws.aws import Invocation
from local_aws.errors import WaitedTooLong
from smdebug.backtesting.backtest import Options
from smdebug.backtesting.deployed import plan
from smdebug.backtesting.deployed.account import DeployedOptions, backtest_in_account, cancel
from smdebug.backtesting.question import Question
from smdebug.service.backtests import connect_backtests
from tests.backtesting.many_runs import make_run, write_rule
from tests.functions.saver import FAILING, Saver

FOUND = "Rule Evaluation Condition Met"
JUDGING_AT_ONCE = 4
"""Calls that a backtest may have at once, where the account is large enough."""
RULE = {"name": "x", "rule": "ExplodingTensor", "repeat": "every_step"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--workers", type=int, default=4, help="of each run")
    parser.add_argument("--steps", type=int, default=50, help="of each run")
    parser.add_argument(
        "--backtest", type=int, default=0, metavar="RUNS", help="then again beside a backtest"
    )
    parser.add_argument(
        "--account", type=int, default=1000, metavar="N", help="how many functions it runs at once"
    )
    arguments = parser.parse_args()
    at_once = min(JUDGING_AT_ONCE, most_at_once(arguments.account, reserved=0))
    settings = {"account_concurrency": arguments.account}
    if arguments.backtest:
        settings["backtests_at_once"] = at_once
    with LocalAws(settings) as aws, aws.as_default():
        # The old runs are there from the beginning: the application looks at all that it knows.
        backtest = BesideBacktest(aws, arguments.backtest, at_once) if arguments.backtest else None
        problems = load(aws, "run", arguments)
        if backtest is not None:
            with backtest:
                problems += load(aws, "beside", arguments)
    return 1 if problems else 0


def load(aws: LocalAws, name: str, arguments: argparse.Namespace) -> list[str]:
    """Train runs whose names begin so, print what was measured, and return what was lost."""
    debugger = LocalDebugger(aws)
    names = [f"{name}-{number}" for number in range(arguments.runs)]
    for name in names:
        debugger.attach(name, [RULE])
    calls_before, throttled_before = len(aws.invocations()), Counter(aws.throttled())
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
    calls = Counter(invocation.function for invocation in aws.invocations()[calls_before:])
    throttled = Counter(aws.throttled()) - throttled_before
    dead = aws.dead_letters()
    progress("")
    steps = arguments.runs * arguments.steps
    print(f"\n{arguments.runs} runs of {arguments.workers} workers, {arguments.steps} steps each")
    print(f"{2 * steps * arguments.workers:>10,}  files, saved in {saved:.1f} s")
    print(f"{steps / evaluated:>10.1f}  steps a second, all evaluated after {evaluated:.1f} s")
    p50, p99 = np.percentile(took, [50, 99])
    print(f"{p50:>10.1f}  seconds from PUT to event (median), {p99:.1f} (99th percentile)")
    for function, count in calls.most_common():
        print(f"{count:>10,}  calls of {function}, refused {throttled[function]:,} times")
    print(f"{len(dead):>10}  dead letters")
    print(f"{len(lost):>10}  steps lost or published with several ids")
    for problem in lost[:10]:
        print(f"            {problem}")
    return [*lost, *map(str, dead)]


class BesideBacktest:
    """A backtest of old runs in the account, which is cancelled at the end of the block.

    Its rule waits and computes nothing: in an account, each call has a processor of its own.
    """

    def __init__(self, aws: LocalAws, runs: int, at_once: int):
        self._aws = aws
        self._at_once = at_once
        self._folder = tempfile.TemporaryDirectory()
        self._account = connect_backtests()
        rule = write_rule(Path(self._folder.name) / "waits.py", first="__import__('time').sleep(6)")
        self._question = Question(({"rule": "LossSpike", "parameters": {}},), rule)
        self._journal = Path(self._folder.name) / "journal.jsonl"
        self._thread = threading.Thread(target=self._judge, daemon=True)
        for number in range(runs):
            make_run(Path(self._folder.name) / "run", [2.0, 1.9, 1.8])
            LocalDebugger(aws, "old").put(Path(self._folder.name) / "run", f"run-{number:04}")
            shutil.rmtree(Path(self._folder.name) / "run")
        aws.settle()
        self._calls_before = 0

    def __enter__(self) -> None:
        self._calls_before = len(self._aws.invocations())
        self._thread.start()
        self._aws.wait_until(self._judges_at_once, what="the backtest to judge", seconds=120)

    def __exit__(self, *_: object) -> None:
        has_ended = not self._thread.is_alive()
        calls = self._calls()
        print(f"{len(calls):>10,}  runs were judged meanwhile, {highest(calls)} at once")
        if has_ended:
            print("            the backtest ended before the load did: give --backtest more runs")
        cancel(self._question, self._account, self._journal)
        self._thread.join()
        self._folder.cleanup()

    def _judge(self) -> None:
        plan.CHUNK_SECONDS = 0.1  # each run is a call, so that there are as many as may be
        backtest_in_account(
            self._question,
            [f"s3://{self._aws.bucket}/old"],
            self._account,
            Options(journal=self._journal),
            DeployedOptions(may_slow_live_runs=True, pause=partial(time.sleep, 1)),
        )

    def _judges_at_once(self) -> bool:
        return highest(self._calls()) >= self._at_once

    def _calls(self) -> list[Invocation]:
        calls = self._aws.invocations()[self._calls_before :]
        return [call for call in calls if call.function == "run_custom_rule"]


def highest(calls: Sequence[Invocation]) -> int:
    """Return how many calls there were at the moment with the most of them."""
    changes = sorted(
        [(call.began, 1) for call in calls] + [(call.began + call.seconds, -1) for call in calls]
    )
    return max(accumulate(change for _, change in changes), default=0)


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
