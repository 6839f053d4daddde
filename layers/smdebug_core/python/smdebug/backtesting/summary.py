"""The table in numbers: how many runs a rule would have stopped, and how many of them were fine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from smdebug.amounts import counted
from smdebug.backtesting.labels import FAILING, HEALTHY
from smdebug.backtesting.rows import FOUND, PASSED, Row


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


@dataclass(frozen=True)
class Overview:
    """What one pass over the rows of a table shows."""

    rules: Sequence[RuleSummary]
    """In the order in which rules first appear."""
    notable: Sequence[Row]
    """The first rows with findings, and then the first without a verdict, of which a set may have much."""
    statuses: Set[str]
    is_labelled: bool


def overview(rows: Iterable[Row], most_notable: int = 0) -> Overview:
    """Go through the rows once, and keep at most so many of those that have not passed."""
    of_rule: dict[str, _Counts] = {}
    firing: list[Row] = []
    unjudged: list[Row] = []
    for row in rows:
        of_rule.setdefault(row.rule, _Counts()).add(row)
        kind = firing if row.fires else unjudged
        if row.status != PASSED and len(kind) < most_notable:
            kind.append(row)
    kinds = {kind for counts in of_rule.values() for kind in counts.of_kind}
    unread = of_rule.pop("", _Counts())
    return Overview(
        [(counts + unread).summary(rule) for rule, counts in of_rule.items()],
        [*firing, *unjudged][:most_notable],
        {status for _, status in kinds},
        is_labelled=any(label for label, _ in kinds),
    )


def summaries(rows: Iterable[Row]) -> Sequence[RuleSummary]:
    """Return the numbers of each rule, in the order in which rules first appear."""
    return overview(rows).rules


@dataclass
class _Counts:
    """How many rows there are of each label and status."""

    of_kind: Counter[tuple[str, str]] = field(default_factory=Counter)
    changed: int = 0
    seconds: float = 0.0

    def add(self, row: Row) -> None:
        self.of_kind[row.label, row.status] += 1
        self.changed += row.changed is not None
        self.seconds += row.seconds

    def __add__(self, other: _Counts) -> _Counts:
        return _Counts(
            self.of_kind + other.of_kind, self.changed + other.changed, self.seconds + other.seconds
        )

    def summary(self, rule: str) -> RuleSummary:
        def judged(label: str) -> int:
            return self.of_kind[label, FOUND] + self.of_kind[label, PASSED]

        def having(wanted: str) -> int:
            return sum(number for (_, status), number in self.of_kind.items() if status == wanted)

        return RuleSummary(
            rule,
            runs=self.of_kind.total(),
            fires=having(FOUND),
            passes=having(PASSED),
            seconds=round(self.seconds, 3),
            failing=judged(FAILING),
            failing_found=self.of_kind[FAILING, FOUND],
            healthy=judged(HEALTHY),
            healthy_found=self.of_kind[HEALTHY, FOUND],
            changed=self.changed,
        )
