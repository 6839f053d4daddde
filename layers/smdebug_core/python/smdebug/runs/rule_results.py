"""The result of a rule on a saved run, and of the part of it evaluated so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from smdebug.rules.state import RuleState
from smdebug.service.records import RuleStatus

MOST_STEPS = 1000  # steps whose findings are kept


@dataclass(frozen=True)
class StepFindings:
    """The findings of a rule at one step: their number, and the first of them."""

    step: int
    mode: str | None
    mode_step: int | None
    count: int
    findings: tuple[Mapping[str, Any], ...]  # as `Finding.to_dict` returns them

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "findings": [dict(finding) for finding in self.findings]}


@dataclass(frozen=True)
class RuleResult:
    """The result of one rule on a run."""

    name: str
    rule: str
    parameters: Mapping[str, Any]
    status: RuleStatus
    looked: int = 0  # number of steps evaluated
    without_data: int = 0  # number of steps without data for the rule
    first_step: int | None = None
    last_step: int | None = None
    found: tuple[StepFindings, ...] = ()
    steps_found: tuple[int, ...] = ()
    error: str = ""
    seconds: float = 0.0
    processes: int = 1

    @property
    def has_found(self) -> bool:
        return bool(self.steps_found)

    @property
    def has_seen(self) -> bool:
        """Whether any step had data for the rule."""
        return self.has_found or self.looked > self.without_data

    def summary(self) -> str:
        """The result in a sentence."""
        if self.error:
            return f"{self.name} failed: {self.error}"
        if not self.looked:
            return f"{self.name}: no steps to evaluate."
        steps = f"{self.looked:,} step{'s' * (self.looked != 1)}"
        if self.has_found:
            number = len(self.steps_found)
            first, last = self.steps_found[0], self.steps_found[-1]
            if number == 1:
                return f"{self.name} detected a problem at step {first} (1 of {steps})."
            return f"{self.name} detected a problem at {number:,} of {steps} ({first} to {last})."
        if self.without_data >= self.looked:
            return f"{self.name} had no data at any of {steps}."
        hint = f" ({self.without_data} had no data)" if self.without_data else ""
        return f"{self.name} passed at {steps}{hint}."

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "name": self.name,
            "rule": self.rule,
            "parameters": dict(self.parameters),
            "status": self.status.value,
            "looked": self.looked,
            "without_data": self.without_data,
            "first_step": self.first_step,
            "last_step": self.last_step,
            "steps_found": list(self.steps_found),
            "found": [findings.to_dict() for findings in self.found],
            "error": self.error or None,
            "seconds": round(self.seconds, 3),
            "processes": self.processes,
        }


@dataclass
class PartialResult:
    """The result of a rule at some steps, and its state after them."""

    evaluated: int = 0
    without_data: int = 0
    found: list[StepFindings] = field(default_factory=list)
    steps_found: list[int] = field(default_factory=list)
    state: RuleState = field(default_factory=lambda: RuleState(b""))
    error: str = ""
    stopped: bool = False

    def add(self, findings: StepFindings) -> None:
        """Add the findings of a step, after those of earlier ones."""
        self.steps_found.append(findings.step)
        if len(self.found) < MOST_STEPS:
            self.found.append(findings)

    def join(self, later: PartialResult) -> None:
        """Add the result at the following steps."""
        self.evaluated += later.evaluated
        self.without_data += later.without_data
        self.steps_found += later.steps_found
        self.found += later.found[: max(0, MOST_STEPS - len(self.found))]
        self.state = later.state
        self.error = later.error
        self.stopped = later.stopped

    @property
    def is_over(self) -> bool:
        return bool(self.error) or self.stopped
