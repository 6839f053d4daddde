"""`make bench-live-share`: how long live runs wait for their events, without and beside a backtest.

An account runs so many functions at once and refuses more. Live steps arrive at a known rate, and each needs
a call that notes it and one that evaluates it. A refused call is repeated as the deployed workflow does.
Beside them are the calls of a backtest, as many at once as its share allows. The seconds of a call are those
of the real handlers on the clock of `make bench-cost`, and time passes on a clock of its own. The last row of
each account is a backtest without a share: if live runs did not notice it, the measurement would see nothing.
"""

from __future__ import annotations

import argparse
import functools
import heapq
import json
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bench.costs.cost import RULES, BilledWorld
from infra.backtesting.share import most_at_once, slows_live_runs
from smdebug.backtesting.deployed.plan import CHUNK_SECONDS
from tests.functions.saver import Saver

WORKFLOW = Path(__file__).parents[2] / "infra" / "workflow.asl.json"
ACCOUNTS = (10, 40, 200, 1000)
NOTIFIED = 0.1  # seconds, from the upload of a file to its message
SAVES_EVERY = 2.0  # seconds, of each run on average
STARTING_CHUNK = 0.1  # seconds, between two calls of a backtest
LOAD = 0.3
"""The calls of live runs, on average, as a part of what the account runs at once."""
NOTICED = 1.1
"""Live runs notice a backtest beside which 99 % of the steps take so many times as long."""
_MINUTES = 3
_BUSY, _REFUSED = "GroupBusy", "Lambda.TooManyRequestsException"


@functools.cache
def repeating(error: str) -> Mapping[str, Any]:
    """Return how the deployed workflow repeats an evaluation that ended with this error."""
    machine = json.loads(WORKFLOW.read_text(encoding="utf-8"))
    task = machine["States"]["Groups"]["ItemProcessor"]["States"]["Evaluate"]
    retry: Mapping[str, Any] = next(each for each in task["Retry"] if error in each["ErrorEquals"])
    return retry


def pause_after(error: str, attempt: int) -> float:
    """Return the longest pause after so many attempts."""
    retry = repeating(error)
    return float(
        min(retry.get("MaxDelaySeconds", 60), retry["IntervalSeconds"] * retry["BackoffRate"] ** attempt)
    )


@dataclass(frozen=True)
class CallSeconds:
    """The seconds of calls, as they were measured."""

    noting: Sequence[float]
    evaluating: Sequence[float]

    @property
    def of_step(self) -> float:
        return float(np.mean(self.noting) + np.mean(self.evaluating))


@dataclass
class Waited:
    """The seconds from the upload of each step to its event, and how many calls were refused."""

    steps: list[float] = field(default_factory=list)
    refused: int = 0
    most_judging: int = 0

    def at(self, percent: float) -> float:
        return float(np.percentile(self.steps, percent))


class Account:
    """An account that runs so many functions at once, and live runs in it that save for some minutes."""

    def __init__(self, limit: int, calls: CallSeconds, load: float = LOAD, minutes: float = _MINUTES):
        self._free = limit
        self._calls = calls
        self._end = 60 * minutes
        self._runs = max(1, round(load * limit / calls.of_step * SAVES_EVERY))
        self._chance = random.Random(limit)
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._entries = 0
        self._now = 0.0
        self._busy_until = [0.0] * self._runs
        self._judging = 0
        self._open: dict[int, float] = {}
        self.waited = Waited()

    @property
    def steps_a_second(self) -> float:
        """Return the rate at which live steps arrive."""
        return self._runs / SAVES_EVERY

    def live(self, *, judging_at_once: int = 0) -> Waited:
        """Return what live runs wait for, beside a backtest that has so many calls at once."""
        for run in range(self._runs):
            self._after(self._chance.uniform(0, SAVES_EVERY), functools.partial(self._save, run))
        for _ in range(judging_at_once):
            self._judge()
        while self._agenda and self._agenda[0][0] < self._end:
            self._now, _, act = heapq.heappop(self._agenda)
            act()
        self.waited.steps += [self._end - saved for saved in self._open.values()]  # at least
        return self.waited

    def _after(self, seconds: float, act: Callable[[], None]) -> None:
        self._entries += 1
        heapq.heappush(self._agenda, (self._now + seconds, self._entries, act))

    def _save(self, run: int) -> None:
        self._after(self._chance.expovariate(1 / SAVES_EVERY), lambda: self._save(run))
        step = self._entries
        self._open[step] = self._now
        note, evaluate = map(self._chance.choice, (self._calls.noting, self._calls.evaluating))

        def begin() -> None:
            self._call(note, lambda: self._evaluate(run, evaluate, step))

        self._after(NOTIFIED, begin)

    def _evaluate(self, run: int, seconds: float, step: int, attempt: int = 0) -> None:
        """Evaluate a step; of one run, one call at a time does, and another tries again later."""
        if self._busy_until[run] > self._now:
            pause = pause_after(_BUSY, attempt)
            self._after(pause, lambda: self._evaluate(run, seconds, step, attempt + 1))
            return

        def begun() -> None:
            self._busy_until[run] = self._now + seconds

        def published() -> None:
            self.waited.steps.append(self._now - self._open.pop(step))

        self._call(seconds, published, begun)

    def _judge(self) -> None:
        """Judge one chunk after the other."""
        seconds = CHUNK_SECONDS * self._chance.uniform(0.2, 1.0)

        def begun() -> None:
            self._judging += 1
            self.waited.most_judging = max(self.waited.most_judging, self._judging)

        def ended() -> None:
            self._judging -= 1
            self._after(STARTING_CHUNK, self._judge)

        self._call(seconds, ended, begun, counts=False)

    def _call(
        self,
        seconds: float,
        then: Callable[[], None],
        begun: Callable[[], None] = lambda: None,
        *,
        counts: bool = True,
        attempt: int = 0,
    ) -> None:
        """Call a function now, or when the workflow repeats a refused call; then go on."""
        if not self._free:
            self.waited.refused += counts
            pause = self._chance.uniform(0, pause_after(_REFUSED, attempt))
            again = attempt + 1
            self._after(pause, lambda: self._call(seconds, then, begun, counts=counts, attempt=again))
            return
        self._free -= 1
        begun()

        def ended() -> None:
            self._free += 1
            then()

        self._after(seconds, ended)


def measured_calls(steps: int = 60) -> CallSeconds:
    """Return the seconds of the calls of a run with ten rules, of which one finds something at each step."""
    world = BilledWorld()
    place = world.place("experiments/2026-11-21/mnist")
    rules = [{**RULES[number % len(RULES)], "name": f"rule {number}"} for number in range(10)]
    place.write("rules.json", json.dumps({"version": 1, "default_rules": False, "rules": rules}).encode())
    saver = Saver(place).begin()
    world.settle()
    noting, evaluating = [], []
    for step in range(steps + 3):
        saver.save(step, {name: np.ones(16, np.float32) for name in ("gradient/fc", "weight/fc", "loss")})
        bodies, world.bucket.notifications = world.bucket.notifications, []
        world.bill.used["seconds"] = 0
        world.ingest([bodies])
        noting.append(float(world.bill["seconds"]))
        world.bill.used["seconds"] = 0
        world.evaluate()
        evaluating.append(float(world.bill["seconds"]))
    return CallSeconds(noting[3:], evaluating[3:])


def main() -> int:
    """Print the table; return 1 if live runs notice a backtest that is allowed, or no other one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--accounts", type=int, nargs="*", default=ACCOUNTS, help="functions at once of each")
    parser.add_argument("--load", type=float, default=LOAD, help="of the account, by live runs")
    parser.add_argument("--minutes", type=float, default=_MINUTES)
    asked = parser.parse_args()
    calls = measured_calls()
    broken = []
    print(
        f"\nA live step: {np.mean(calls.noting):.2f} s to note it, {np.mean(calls.evaluating):.2f} s to "
        f"evaluate it. Live runs need {asked.load:.0%} of the account.\n"
    )
    heads = ("account", "steps/s", "backtest", "at once", "p50, s", "p99, s", "refused")
    print("".join(head.rjust(12) for head in heads))
    for limit in asked.accounts:
        share = most_at_once(limit, reserved=0)
        kinds = {
            "none": 0,
            "refused" if slows_live_runs(share, limit) else "its share": share,
            "no share": limit,
        }
        alone: Waited | None = None
        for kind, at_once in kinds.items():
            account = Account(limit, calls, asked.load, asked.minutes)
            waited = account.live(judging_at_once=at_once)
            numbers = (
                f"{limit:,}",
                f"{account.steps_a_second:,.1f}",
                kind,
                f"{waited.most_judging:,}",
                f"{waited.at(50):.2f}",
                f"{waited.at(99):.2f}",
                f"{waited.refused:,}",
            )
            print("".join(each.rjust(12) for each in numbers))
            alone = alone or waited
            is_noticed = waited.at(99) > NOTICED * alone.at(99)
            if kind == "its share" and is_noticed:
                broken.append(f"{limit:,} at once: live runs notice a backtest with its share")
            if kind == "no share" and not is_noticed:
                broken.append(f"{limit:,} at once: a backtest without a share is not noticed")
    for problem in broken:
        print(f"NOT HELD: {problem}")
    return bool(broken)


if __name__ == "__main__":
    sys.exit(main())
