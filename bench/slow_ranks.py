"""How often a slow rank is named, how soon, and how often one is named in a healthy training.

    python -m bench.slow_ranks                  # simulated times, with a fixed seed

Simulated ranks have what real ones have: batches that differ, moments in which their machine is busy, stalls
with a heavy tail, machines that are not quite alike, compilation, and a first rank that logs, evaluates,
saves checkpoints and observes.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smdebug.mode_keys import ModeKeys
from smdebug.numbers.rank_times import WINDOW, WindowTimes, window_row
from smdebug_default_rules.ranks.slow_rank import SlowRank

STEPS = 400
HEALTHY, SLOW = 1000, 1000
WITHIN = 50
"""So many steps after it began, a slow rank should have been named."""
KINDS = ("all", "data", "forward")
LATE = 0.02
"""How often the file of a rank arrives after the step is checked."""
Floats = NDArray[np.float64]


@dataclass
class Training:
    """The times of a simulated training, as its ranks write them."""

    random: np.random.Generator
    ranks: int
    slow: int | None = None
    """The rank that is slow, if one is."""
    since: int = 0
    factor: float = 1.0
    kind: str = "all"
    steps: int = STEPS
    expected_workers: int = field(init=False)
    has_facts: bool = True

    def __post_init__(self) -> None:
        self.expected_workers = self.ranks
        self._windows = self._rows(self._phases())
        self._late = self.random.random((self.steps // WINDOW + 2, self.ranks)) < LATE
        self.now = 0

    def rank_times(self, step: int) -> dict[str, list[WindowTimes]]:
        """What the ranks have saved with that step, as far as it has come."""
        window = step // WINDOW - 1
        if not 0 <= window < len(self._windows):
            return {}
        is_new = step == self.now
        return {
            f"worker_{rank}": [times]
            for rank, times in enumerate(self._windows[window])
            if not (is_new and self._late[window, rank])
        }

    def named(self) -> Iterator[tuple[int, str, int]]:
        """Yield at which steps the rule names which rank, and since when."""
        trial: Any = SimpleNamespace(observations=self)
        rule = SlowRank(trial)
        for step in range(WINDOW, self.steps + 1, WINDOW):
            self.now = step
            seen: Any = SimpleNamespace(step=step, mode=ModeKeys.TRAIN)
            for finding in rule.check(seen):
                yield step, str(finding.worker), int(finding.since or 0)

    def _phases(self) -> Floats:
        """The seconds of data, forward, own backward and update, by step and rank."""
        random, steps, ranks = self.random, self.steps, self.ranks
        step = np.exp(random.uniform(np.log(0.2), np.log(3.0)))
        shares = np.array(
            [random.uniform(0.01, 0.1), random.uniform(0.24, 0.34), 0.0, random.uniform(0.02, 0.08)]
        )
        shares[2] = 1 - shares.sum()
        usual = step * shares
        alike = np.exp(random.normal(0, 0.007, ranks))  # machines that are not quite alike
        found = usual * alike[:, None] * np.ones((steps, ranks, 4))
        jitter = np.exp(random.uniform(np.log(0.005), np.log(0.05)))
        found *= np.exp(random.normal(0, jitter, (steps, ranks, 1)))  # batches differ
        found *= np.exp(random.normal(0, 0.03, found.shape))
        found *= self._busy()[:, :, None]
        stalls = random.random((steps, ranks)) < 0.02
        found[:, :, 0] += stalls * np.minimum(random.pareto(1.5, (steps, ranks)), 100) * 0.1 * step
        found[:3] *= random.uniform(3, 20)  # compilation
        if random.random() < 0.3:  # and once more, for other shapes, on each rank in its time
            for rank in range(ranks):
                found[random.integers(20, steps), rank, 1] += 10 * step
        found[:, 0, 0] += random.uniform(0, 0.008) * step  # the first rank logs
        found[::10, 0, 1] += 0.3 * step  # and observes
        if random.random() < 0.5:
            found[random.integers(5, 60) :: random.integers(20, 100), 0, 3] += random.uniform(1, 10) * step
        if random.random() < 0.5:
            evaluated = slice(None) if random.random() < 0.5 else 0
            found[random.integers(5, 60) :: random.integers(20, 100), evaluated, 0] += (
                random.uniform(2, 20) * step
            )
        if self.slow is not None:
            self._slow_down(found[self.since :, self.slow], step)
        return found

    def _slow_down(self, of_rank: Floats, step: float) -> None:
        if self.kind == "all":
            of_rank *= self.factor
        elif self.kind == "forward":
            of_rank[:, 1] += (self.factor - 1) * step
        else:
            of_rank[:, 0] += (self.factor - 1) * step * self.random.uniform(0.5, 1.5, len(of_rank))

    def _busy(self) -> Floats:
        """Factors of each rank that stay for some steps, as when something else runs on its machine."""
        random = self.random
        found = np.ones((self.steps, self.ranks))
        for rank in range(self.ranks):
            for _ in range(random.poisson(0.5)):
                first = random.integers(0, self.steps)
                found[first : first + min(12, int(random.exponential(4))), rank] *= 1 + random.exponential(
                    0.4
                )
        return found

    def _rows(self, phases: Floats) -> list[list[WindowTimes]]:
        """What each rank has measured, if all end their backward passes together."""
        begins = phases[:, :, 0] + phases[:, :, 1]
        lags = np.zeros(self.ranks)  # updates differ, too, after all have ended the backward pass
        measured = phases.copy()
        for at in range(len(phases)):
            begun = lags + begins[at]
            ended = (begun + phases[at, :, 2]).max()
            measured[at, :, 2] = ended - begun
            lags = phases[at, :, 3]
        found = []
        for first in range(0, len(phases) - WINDOW + 1, WINDOW):
            rows = []
            for rank in range(self.ranks):
                steps = measured[first + (rank == 0) : first + WINDOW, rank].tolist()
                rows.append(WindowTimes.of(window_row(first, 0, steps)))
            found.append(rows)
        return found


def healthy(count: int, seed: int) -> tuple[int, int]:
    """Return in how many healthy trainings a rank is named, of how many."""
    alarms = 0
    for number in range(count):
        random = np.random.default_rng([seed, number])
        training = Training(random, int(random.choice([2, 3, 4, 8, 16, 64])))
        alarms += any(True for _ in training.named())
    return alarms, count


def slow(count: int, seed: int, kind: str, factor: float | None = None) -> tuple[int, int, int]:
    """Return how often the slow rank is named in time, and another one, of how many."""
    named = wrong = 0
    for number in range(count):
        random = np.random.default_rng([seed, number])
        ranks = int(random.choice([2, 3, 4, 8, 16, 64]))
        since, which = int(random.integers(40, 120)), int(random.integers(ranks))
        by = factor or float(np.exp(random.uniform(np.log(1.1), np.log(3))))
        training = Training(random, ranks, which, since, by, kind, steps=since + WITHIN)
        found = [*training.named()]
        named += any(worker == f"worker_{which}" for _, worker, _ in found)
        wrong += any(worker != f"worker_{which}" for _, worker, _ in found)
    return named, wrong, count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", type=int, default=HEALTHY)
    parser.add_argument("--slow", type=int, default=SLOW)
    given = parser.parse_args()
    alarms, count = healthy(given.healthy, given.seed)
    print(f"healthy: a rank is named in {alarms} of {count}")
    for kind in KINDS:
        for factor in (None, 1.1, 1.2, 1.5, 3.0):
            named, wrong, count = slow(given.slow, given.seed, kind, factor)
            said = f"{factor} x" if factor else "1.1 to 3 x"
            print(f"slow in {kind}, {said}: {named} of {count} named within {WITHIN} steps, {wrong} wrong")


if __name__ == "__main__":
    main()
