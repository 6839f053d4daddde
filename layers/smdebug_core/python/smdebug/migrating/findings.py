"""What a scan reports: findings with their place, and converted configurations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


class Verdict(Enum):
    """What a line means for the migration."""

    WORKS = "works"  # unchanged
    CHANGES = "changes"  # the replacement says how
    UNCLEAR = "unclear"  # its value is known only when the code runs
    UNREADABLE = "unreadable"  # neither Python nor a notebook


@dataclass(frozen=True, order=True)
class Place:
    """A line of a file; in a notebook, of one of its code cells."""

    file: str
    cell: int | None
    line: int

    def __str__(self) -> str:
        cell = f", cell {self.cell}" if self.cell is not None else ""
        return f"{self.file}{cell}, line {self.line}"


@dataclass(frozen=True)
class Finding:
    """One line and what becomes of it."""

    place: Place
    code: str
    verdict: Verdict
    message: str = ""
    replacement: str = ""


@dataclass(frozen=True)
class Conversion:
    """The files made of one estimator's debugger configuration."""

    name: str
    place: Place
    files: Mapping[str, str]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Scan:
    """The result of a scan."""

    files: tuple[str, ...]
    findings: tuple[Finding, ...]
    conversions: tuple[Conversion, ...]

    def count(self, verdict: Verdict) -> int:
        """Return the number of findings with that verdict."""
        return sum(finding.verdict is verdict for finding in self.findings)
