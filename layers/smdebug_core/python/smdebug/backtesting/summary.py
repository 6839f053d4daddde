"""The table in numbers: how many runs a rule would have stopped, and how many of them were fine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
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
        if self.failing or self.healthy:
            text += (
                f"; of failing runs {self.failing_found:,} of {self.failing:,} found, "
                f"of healthy runs {self.healthy_found:,} of {self.healthy:,}"
            )
        return f"{text}; {self.seconds:,.1f} s"

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {**vars(self), "others": self.others}


def summaries(rows: Iterable[Row]) -> list[RuleSummary]:
    """Return the numbers of each rule, in the order in which rules first appear."""
    of_rule: dict[str, list[Row]] = {}
    unread = []
    for row in rows:
        if row.rule:
            of_rule.setdefault(row.rule, []).append(row)
        else:
            unread.append(row)
    return [_summary(rule, [*known, *unread]) for rule, known in of_rule.items()]


def _summary(rule: str, rows: list[Row]) -> RuleSummary:
    def number(label: str, *, only_found: bool) -> int:
        return sum(row.label == label and row.has_verdict and (row.fires or not only_found) for row in rows)

    return RuleSummary(
        rule,
        runs=len(rows),
        fires=sum(row.fires for row in rows),
        passes=sum(row.has_verdict and not row.fires for row in rows),
        seconds=round(sum(row.seconds for row in rows), 3),
        failing=number(FAILING, only_found=False),
        failing_found=number(FAILING, only_found=True),
        healthy=number(HEALTHY, only_found=False),
        healthy_found=number(HEALTHY, only_found=True),
        changed=sum(row.changed is not None for row in rows),
    )
