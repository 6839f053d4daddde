"""A rank that the others wait for at every step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from smdebug.numbers.rank_times import WINDOW, WindowTimes
from smdebug.rules import Finding
from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.base import Advice, DefaultRule

LEAST_SHARE = 0.023
"""The least share of a step for which the others wait."""
LEAST_RATIO = 1.06
"""How much longer the rank needs at least for what it does alone."""
SPREADS = 3.0
"""How many times the usual difference between ranks it needs more, at least."""
LEAST_WINDOWS = 3
MOST_WINDOWS = 12
LEAST_SECONDS = 5.0
"""For how long: a busy machine delays one process or another for shorter times."""
LEAST_STEPS = WINDOW // 2
"""How many steps of a window must have been measured."""
WARM_UP = 10
LEAST_TO_SPREAD = 4
_PARTS = ("data", "forward", "update")

Floats = NDArray[np.float64]


class Delay(NamedTuple):
    """What the others wait for a rank, of one window of steps."""

    share: float
    """Of a step."""
    ratio: float
    """How long the rank takes alone, of what the others do."""
    spread: float
    """How much other ranks differ from each other, as a share of a step; 0 if they are few."""
    more: tuple[float, ...]
    """By how many seconds its data, forward and update are longer than those of the others."""


class Streak(NamedTuple):
    """The last windows of one rank in a row in which the others waited for it."""

    windows: list[list[float]]
    """First step, seconds, share, ratio, spread, and by how much data, forward and update were longer."""

    def with_window(self, since: int, seconds: float, delay: Delay) -> Streak:
        """The streak with one more window, that began at this step and took so long."""
        rows = [*self.windows, [since, seconds, delay.share, delay.ratio, delay.spread, *delay.more]]
        if len(rows) > MOST_WINDOWS:
            (first, before, *_), (_, its_own, *its_delay), *rest = rows
            rows = [[first, before + its_own, *its_delay], *rest]
        return Streak(rows)

    def long(self) -> Streak | None:
        """The windows since which this rank delays the others; None if that is a busy moment of its machine.

        Such a moment may be in two windows, and noise in the third, so that all of the last three count.
        """
        least = np.min([row[2:4] for row in self.windows[-LEAST_WINDOWS:]], axis=0)
        rows = [*self.windows]
        while rows and rows[0][2] < max(LEAST_SHARE, least[0] / 2):
            del rows[0]
        if len(rows) < LEAST_WINDOWS or sum(row[1] for row in rows) < LEAST_SECONDS:
            return None
        if least[0] < LEAST_SHARE or least[1] < LEAST_RATIO:
            return None
        found = Streak(rows)
        return found if found.usual.share >= SPREADS * found.usual.spread else None

    @property
    def since(self) -> int:
        """The first step of its first window."""
        return int(self.windows[0][0])

    @property
    def seconds(self) -> float:
        """How long they took."""
        return sum(row[1] for row in self.windows)

    @property
    def usual(self) -> Delay:
        """What is usual of these windows."""
        _, _, share, ratio, spread, *more = (float(each) for each in np.median(self.windows, axis=0))
        return Delay(share, ratio, spread, tuple(more))


def delays(ranks: Sequence[WindowTimes]) -> list[Delay]:
    """How long the others wait for each rank.

    Ranks that wait for each other at every step all take as long for it. The slow one is the one that takes
    longer for what it does alone, and waits less. Ranks that do not wait for each other delay nobody.
    """
    total = np.array([rank.total for rank in ranks])
    step = float(np.median(total)) or 1.0
    alone = max(
        (
            _alone(total, np.array([getattr(rank, name) for rank in ranks]))
            for name in ("outside_backward", "outside_passes")
        ),
        key=lambda found: float(found[0].max()),
    )
    delay, own, usual = alone
    more = [_more(np.array([getattr(rank, part) for rank in ranks])) for part in _PARTS]
    spread = float(1.4826 * np.median(np.abs(own - np.median(own)))) if len(ranks) >= LEAST_TO_SPREAD else 0.0
    return [
        Delay(
            float(delay[at]) / step,
            float(own[at] / usual[at]) if usual[at] else 1.0,
            spread / step,
            tuple(float(each[at]) for each in more),
        )
        for at in range(len(ranks))
    ]


def _alone(total: Floats, own: Floats) -> tuple[Floats, Floats, Floats]:
    """The seconds of delay by each rank, what it takes alone, and what the others usually do."""
    usual = of_others(own)
    return np.minimum(own - usual, _more(-(total - own))), own, usual


def _more(values: Floats) -> Floats:
    return values - of_others(values)


def of_others(values: Floats) -> Floats:
    """The median of all other values, for each value."""
    ordered = np.sort(values)
    places = np.empty(len(values), int)
    places[np.argsort(values, kind="stable")] = np.arange(len(values))
    low, high = (len(values) - 2) // 2, (len(values) - 1) // 2
    without = [ordered[place + (places <= place)] for place in (low, high)]
    found: Floats = (without[0] + without[1]) / 2
    return found


class SlowRank(DefaultRule):
    """Fires when all ranks wait for the same one, for 30 steps and 5 seconds in a row.

    That is the rank that takes longer for data, forward and update, and less for the backward pass, in which
    gradients are exchanged. Medians of ten steps each are compared.
    """

    cause = "slow rank"
    advice: ClassVar[Advice] = {
        "slow rank": (
            "Look for what is different on its machine: other processes, its temperature, its clock rate.",
            "Give all ranks as much to do: rows of the same length, as much evaluation and logging.",
        )
    }

    def __init__(self, base_trial: Any, *, action_str: Any = None):
        super().__init__(base_trial, action_str)
        self.before: int | None = None
        """The step of the last check, of which files of other ranks may have come since."""
        self.waiting: dict[int, dict[str, list[float]]] = {}
        """Windows that are not judged yet, of each rank."""
        self.judged = -1
        self.streaks: dict[str, list[list[float]]] = {}

    def check(self, seen: ObservedStep) -> Iterator[Finding]:
        observations = self.base_trial.observations
        expected = observations.expected_workers
        if expected < 2:
            self.lacks("the run has a single worker")
            return
        before = {*self.waiting}
        if self.before is not None:
            self._read(self.before)
        self._read(seen.step)
        self.before = seen.step
        settled = [
            window
            for window in sorted(self.waiting)
            if window in before or len(self.waiting[window]) >= expected
        ]
        if not settled:
            self.looked = False
            return
        for window in settled:
            self._judge(window, expected)
        yield from self._found()

    def invoke_at_end(self, step: int) -> bool:
        """Judge what has come since the last check."""
        if self.before is not None:
            self._read(self.before)
        expected = self.base_trial.observations.expected_workers
        for window in sorted(self.waiting):
            self._judge(window, expected)
        self.findings = [*self._found()]
        return bool(self.findings)

    def _read(self, step: int) -> None:
        """Read the times that ranks have saved with a step, as far as they are not known."""
        for worker, windows in self.base_trial.observations.rank_times(step).items():
            for times in windows:
                if times.first > self.judged:
                    self.waiting.setdefault(times.first, {})[worker] = list(times)

    def _judge(self, window: int, expected: int) -> None:
        """Extend the streak of each rank that the others waited for in a window of steps."""
        self.judged = max(self.judged, window)
        rows = {worker: WindowTimes.of(row) for worker, row in self.waiting.pop(window).items()}
        measured = {worker: times for worker, times in rows.items() if times.steps >= LEAST_STEPS}
        if window < WARM_UP or len(measured) < 2 or 2 * len(measured) < expected:
            return
        for (worker, times), delay in zip(measured.items(), delays([*measured.values()]), strict=True):
            if delay.share < LEAST_SHARE / 2:
                self.streaks.pop(worker, None)
                continue
            streak = Streak(self.streaks.get(worker, [])).with_window(
                window + times.offset, times.steps * times.total, delay
            )
            self.streaks[worker] = streak.windows

    def _found(self) -> Iterator[Finding]:
        slow = {worker: long for worker, rows in self.streaks.items() if (long := Streak(rows).long())}
        for worker, streak in sorted(slow.items(), key=lambda each: -each[1].usual.share):
            share, ratio, _, more = streak.usual
            longer, part = max(zip(more, _PARTS, strict=True))
            yield self.finding(
                f"The other ranks wait {100 * share:.0f}% of each step for {worker}: what it does alone "
                f"takes it {ratio:.2f} times as long as them",
                since=streak.since,
                worker=worker,
                statistic="share of a step that the others wait",
                value=round(share, 4),
                limit=LEAST_SHARE,
                title=f"Rank {worker} delays the others",
                why=(
                    f"What it takes longest for, beside the others: {SAID[part]} ({_said(longer)} more)",
                    f"They have waited since step {streak.since}, for {_said(streak.seconds)} of training",
                ),
                advice=ADVICE[part],
            )


def _said(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds >= 1 else f"{1000 * seconds:.3g} ms"


SAID = {
    "data": "data, and what else the script does before a forward",
    "forward": "the forward pass",
    "update": "what follows the backward pass, up to the update",
}
ADVICE = {
    "data": (
        "Look at its data loading: its disk, its network, workers of its DataLoader, longer rows, and at "
        "what the script does on this rank alone, such as logging.",
    ),
    "forward": (),
    "update": ("Look at what the script does on this rank alone after the backward pass, such as logging.",),
}
