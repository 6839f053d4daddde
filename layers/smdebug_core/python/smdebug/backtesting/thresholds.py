"""What each threshold would have given: alarms on failing and healthy runs, by the number of each run."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
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


def distributions(rows: Iterable[Row]) -> list[Distribution]:
    """Return the distribution of each rule's number; none of a rule that names none."""
    of_rule: dict[str, _Numbers] = {}
    for row in rows:
        if row.rule:
            of_rule.setdefault(row.rule, _Numbers()).add(row)
    found = [numbers.distribution(rule) for rule, numbers in of_rule.items()]
    return [each for each in found if each.values]


class _Numbers:
    """What the rows of a rule say of its number."""

    def __init__(self) -> None:
        self._lowest: dict[str, array[float]] = {}  # of each run, by label; NaN where none is known
        self._highest: dict[str, array[float]] = {}
        self._limits: Counter[float] = Counter()
        self._names: Counter[str] = Counter()
        self._firing = self._firing_above = 0

    def add(self, row: Row) -> None:
        for numbers, value in ((self._lowest, row.lowest), (self._highest, row.highest)):
            numbers.setdefault(row.label, array("d")).append(math.nan if value is None else value)
        if row.limit is not None:
            self._limits[row.limit] += 1
            if row.fires:
                self._firing += 1
                self._firing_above += row.highest is not None and row.highest >= row.limit
        if row.statistic:
            self._names[row.statistic] += 1

    def distribution(self, rule: str) -> Distribution:
        # Findings are above the limit if most runs with findings say so.
        is_above = 2 * self._firing_above >= self._firing
        numbers = self._highest if is_above else self._lowest

        def of(label: str) -> tuple[float, ...]:
            return tuple(sorted(filter(math.isfinite, numbers.get(label, ()))))

        return Distribution(
            rule,
            self._names.most_common(1)[0][0] if self._names else "value",
            is_above,
            self._limits.most_common(1)[0][0] if self._limits else None,
            of(FAILING),
            of(HEALTHY),
            of(""),
        )


def _beyond(values: Sequence[float], limit: float, is_above: bool) -> int:
    return len(values) - bisect_right(values, limit) if is_above else bisect_left(values, limit)
