"""The table in numbers: how many runs a rule would have stopped, and how many of them were fine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from smdebug.amounts import counted
from smdebug.backtesting.labels import FAILING, HEALTHY
from smdebug.backtesting.rows import Row


@dataclass(frozen=True)
class RuleSummary:
    """What one rule said of all runs."""

    rule: str
    runs: int
    fires: int
    passes: int
    seconds: float
    failing: int
    failing_found: int
    healthy: int
    healthy_found: int
    changed: int

    @property
    def others(self) -> int:
        """The number of runs without a verdict."""
        return self.runs - self.fires - self.passes

    def __str__(self) -> str:
        found = f"{self.fires:,} of {counted(self.runs, 'run')} with findings"
        text = f"{self.rule}: {found}, {self.passes:,} passed"
        if self.others:
            text += f", {self.others:,} without a verdict"
        groups = ("failing", self.failing_found, self.failing), ("healthy", self.healthy_found, self.healthy)
        labelled = [f"of {name} runs {found:,} of {runs:,}" for name, found, runs in groups if runs]
        if labelled:
            text += f"; {' found, '.join(labelled)}{' found' if len(labelled) == 1 else ''}"
        return f"{text}; {self.seconds:,.1f} s"

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {**vars(self), "others": self.others}


def summaries(rows: Iterable[Row]) -> list[RuleSummary]:
    """Return the numbers of each rule, in the order in which rules first appear."""
    of_rule: dict[str, _Counts] = {}
    for row in rows:
        of_rule.setdefault(row.rule, _Counts()).add(row)
    unread = of_rule.pop("", _Counts())
    return [(counts + unread).summary(rule) for rule, counts in of_rule.items()]


@dataclass
class _Counts:
    """How many rows there are of each label, with and without a verdict and findings."""

    of_kind: Counter[tuple[str, bool, bool]] = field(default_factory=Counter)
    changed: int = 0
    seconds: float = 0.0

    def add(self, row: Row) -> None:
        self.of_kind[row.label, row.has_verdict, row.fires] += 1
        self.changed += row.changed is not None
        self.seconds += row.seconds

    def __add__(self, other: _Counts) -> _Counts:
        return _Counts(
            self.of_kind + other.of_kind, self.changed + other.changed, self.seconds + other.seconds
        )

    def summary(self, rule: str) -> RuleSummary:
        def judged(label: str) -> int:
            return self.of_kind[label, True, True] + self.of_kind[label, True, False]

        fires = sum(number for (_, _, is_found), number in self.of_kind.items() if is_found)
        return RuleSummary(
            rule,
            runs=self.of_kind.total(),
            fires=fires,
            passes=sum(number for (_, is_judged, _), number in self.of_kind.items() if is_judged) - fires,
            seconds=round(self.seconds, 3),
            failing=judged(FAILING),
            failing_found=self.of_kind[FAILING, True, True],
            healthy=judged(HEALTHY),
            healthy_found=self.of_kind[HEALTHY, True, True],
            changed=self.changed,
        )
