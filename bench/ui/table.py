"""The table of the measurement: what was measured, the budget, and whether it holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Line(NamedTuple):
    """One measurement, its budget, and what TensorBoard or another peer needs for the same."""

    what: str
    value: float
    unit: str
    budget: float | None = None
    at_least: bool = False
    peer: str = ""
    or_holds: bool = False
    """Whether another budget holds that may hold instead."""

    @property
    def holds(self) -> bool:
        if self.budget is None or self.or_holds:
            return True
        return self.value >= self.budget if self.at_least else self.value <= self.budget

    @property
    def cells(self) -> tuple[str, str, str, str, str]:
        """The texts of a row."""
        sign = "≥" if self.at_least else "≤"
        budget = "" if self.budget is None else f"{sign} {round(self.budget, 1):,.6g} {self.unit}"
        verdict = "" if self.budget is None else "ok" if self.holds else "OVER"
        return self.what, in_words(self.value, self.unit), self.peer, budget, verdict


def in_words(value: float, unit: str) -> str:
    """Return a number as it is read."""
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:,.{digits}f} {unit}"


def as_text(lines: Sequence[Line]) -> str:
    """Return the table."""
    rows = [("", "smdebug ui", "peer", "budget", ""), *(line.cells for line in lines)]
    widths = [max(len(row[at]) for row in rows) for at in range(5)]
    texts = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    rule = "-" * max(map(len, texts))
    return "\n".join([texts[0], rule, *texts[1:]])
