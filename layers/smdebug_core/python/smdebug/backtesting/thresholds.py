"""What each threshold would have given: alarms on failing and healthy runs, by the number of each run."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from smdebug.backtesting.labels import FAILING, HEALTHY
from smdebug.backtesting.rows import Row

_SPREAD = 12


@dataclass(frozen=True)
class Threshold:
    """The runs that a rule with this limit would have stopped, by their label."""

    limit: float
    failing: int
    healthy: int
    unlabelled: int

    @property
    def alarms(self) -> int:
        return self.failing + self.healthy + self.unlabelled


@dataclass(frozen=True)
class Distribution:
    """The most extreme number of each run that a rule compared with its limit, by the run's label."""

    rule: str
    statistic: str
    is_above: bool
    """Whether numbers above the limit are findings, and not those below."""
    limit: float | None
    """The limit that the rule had."""
    failing: tuple[float, ...]
    healthy: tuple[float, ...]
    unlabelled: tuple[float, ...]
    without: int
    """The number of runs of which no number is known."""

    @property
    def values(self) -> tuple[float, ...]:
        return tuple(sorted((*self.failing, *self.healthy, *self.unlabelled)))

    def at(self, limit: float) -> Threshold:
        """Return what this limit would have given."""
        groups = (self.failing, self.healthy, self.unlabelled)
        return Threshold(limit, *(_beyond(values, limit, self.is_above) for values in groups))

    def thresholds(self, most: int = 400) -> list[Threshold]:
        """Return what each limit that changes anything would have given, at most so many of them."""
        values = sorted(set(self.values))
        between = [(low + high) / 2 for low, high in pairwise(values)]
        if len(between) > most:
            between = [between[place * len(between) // most] for place in range(most)]
        return [self.at(limit) for limit in between]

    def worth_a_look(self) -> list[Threshold]:
        """Return the fewest alarms on healthy runs for each number of failing runs that can be found.

        Without failing runs, return some evenly spread limits.
        """
        if not self.failing:
            return self.thresholds(_SPREAD)
        best: dict[int, Threshold] = {}
        for threshold in self.thresholds(10_000):
            known = best.get(threshold.failing)
            if known is None or (threshold.healthy, threshold.unlabelled) < (known.healthy, known.unlabelled):
                best[threshold.failing] = threshold
        return [best[found] for found in sorted(best, reverse=True) if found]


def distributions(rows: Sequence[Row]) -> list[Distribution]:
    """Return the distribution of each rule's number; none of a rule that names none."""
    found = [_distribution(rule, [row for row in rows if row.rule == rule]) for rule in _rules(rows)]
    return [each for each in found if each.values]


def _rules(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(row.rule for row in rows if row.rule))


def _distribution(rule: str, rows: list[Row]) -> Distribution:
    is_above = _is_above(rows)
    numbers = [(row.label, row.highest if is_above else row.lowest) for row in rows]

    def of(label: str) -> tuple[float, ...]:
        return tuple(
            sorted(
                value for at, value in numbers if at == label and value is not None and math.isfinite(value)
            )
        )

    limits = Counter(row.limit for row in rows if row.limit is not None)
    names = Counter(row.statistic for row in rows if row.statistic)
    return Distribution(
        rule,
        names.most_common(1)[0][0] if names else "value",
        is_above,
        limits.most_common(1)[0][0] if limits else None,
        of(FAILING),
        of(HEALTHY),
        of(""),
        without=sum(value is None for _, value in numbers),
    )


def _is_above(rows: list[Row]) -> bool:
    """Return whether findings are above the limit: what most runs with findings say."""
    firing = [row for row in rows if row.fires and row.limit is not None]
    above = sum(
        row.highest is not None and row.limit is not None and row.highest >= row.limit for row in firing
    )
    return 2 * above >= len(firing)


def _beyond(values: Sequence[float], limit: float, is_above: bool) -> int:
    return len(values) - bisect_right(values, limit) if is_above else bisect_left(values, limit)
