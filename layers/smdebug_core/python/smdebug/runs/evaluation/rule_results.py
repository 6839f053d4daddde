"""The result of a rule on a saved run, and of the part of it evaluated so far."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from smdebug.amounts import counted
from smdebug.diagnosis.evidence import Evidence, evidence_of
from smdebug.exceptions import SMDebugError
from smdebug.service.records import RuleStatus

MOST_STEPS = 1000  # steps whose findings are kept
MOST_EVIDENCE = 20  # findings kept of one step


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

    def with_more(self, later: StepFindings) -> StepFindings:
        """Return these findings with others of the same step."""
        together = (*self.findings, *later.findings)[:MOST_EVIDENCE]
        return replace(self, count=self.count + later.count, findings=together)


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
    missing: str = ""  # what the run lacks for the rule, if it says so
    damaged: int = 0  # number of steps left out because a file is damaged
    cause: str = ""  # of findings that name none
    advice: Mapping[str, Sequence[str]] = field(default_factory=dict)  # what to try, by cause
    docs: str = ""
    selection: str = ""  # the tensors that it checks, in words
    checked: tuple[float, float] | None = None
    """The lowest and highest number that the rule compared with its limit, if it says so."""

    @property
    def has_found(self) -> bool:
        return bool(self.steps_found)

    @property
    def has_seen(self) -> bool:
        """Whether any step had data for the rule."""
        return self.has_found or self.looked > self.without_data

    @property
    def not_checked(self) -> str:
        """Why nothing was checked; "" if anything was, or if the rule failed."""
        if self.has_seen or self.error:
            return ""
        if self.missing:
            return self.missing
        if self.damaged and not self.looked:
            return f"{counted(self.damaged, 'step')} damaged"
        if not self.looked and not self.without_data:
            return "no steps to evaluate"
        wanted = self.selection or "data for it"
        return f"none of {counted(max(self.looked, self.without_data), 'step')} had {wanted}"

    def summary(self) -> str:
        """The result in a sentence."""
        if self.error:
            return f"{self.name} failed: {self.error}"
        steps = counted(self.looked, "step")
        damaged = f", {counted(self.damaged, 'damaged step')} left out" if self.damaged else ""
        if self.has_found:
            number = len(self.steps_found)
            first, last = self.steps_found[0], self.steps_found[-1]
            if number == 1:
                return f"{self.name} detected a problem at step {first} (1 of {steps}{damaged})."
            return f"{self.name} detected a problem at {number:,} of {steps} ({first} to {last}){damaged}."
        if self.not_checked:
            return f"{self.name} was not checked: {self.not_checked}."
        hint = f" ({self.without_data} had no data)" if self.without_data else ""
        return f"{self.name} passed at {steps}{hint}{damaged}."

    def evidence(self) -> list[Evidence]:
        """The findings by their cause, for `smdebug.diagnosis.fold`."""
        return evidence_of(
            self.name,
            [(found.step, found.findings) for found in self.found],
            advice=self.advice,
            docs=self.docs,
            cause=self.cause,
        )

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
            "not_checked": self.not_checked or None,
            "damaged_steps": self.damaged,
            "seconds": round(self.seconds, 3),
            "processes": self.processes,
        }


@dataclass
class PartialResult:
    """The result of a rule at some steps."""

    evaluated: int = 0
    without_data: int = 0
    found: list[StepFindings] = field(default_factory=list)
    steps_found: list[int] = field(default_factory=list)
    error: str = ""
    stopped: bool = False
    not_checked: str = ""
    damaged: int = 0
    damaged_files: dict[str, SMDebugError] = field(default_factory=dict)  # found by another process
    checked: tuple[float, float] | None = None  # the lowest and highest number compared with the limit

    def add(self, findings: StepFindings) -> None:
        """Add the findings of a step, after those of earlier ones or to those that it has already."""
        self._add(findings.step, findings)

    def join(self, later: PartialResult) -> None:
        """Add the result at the following steps, or at the end of the run."""
        self.evaluated += later.evaluated
        self.without_data += later.without_data
        kept = {findings.step: findings for findings in later.found}
        for step in later.steps_found:
            self._add(step, kept.get(step))
        self.error = later.error
        self.not_checked = later.not_checked or self.not_checked
        self.damaged += later.damaged
        self.damaged_files.update(later.damaged_files)
        self.stopped = later.stopped
        for value in later.checked or ():
            self.note_checked(value)

    def _add(self, step: int, findings: StepFindings | None) -> None:
        is_new = self.steps_found[-1:] != [step]
        if is_new:
            self.steps_found.append(step)
        if findings is None:
            return
        if not is_new and self.found and self.found[-1].step == step:
            self.found[-1] = self.found[-1].with_more(findings)
        elif len(self.found) < MOST_STEPS:
            self.found.append(findings)

    def note_checked(self, value: Any) -> None:
        """Add the numbers that the rule compared with its limit at a step; anything else is left out."""
        for number in value if isinstance(value, list) else [value]:
            self._note_checked(number)

    def _note_checked(self, value: Any) -> None:
        if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
            return
        lowest, highest = self.checked or (value, value)
        self.checked = (float(min(lowest, value)), float(max(highest, value)))

    def note_damage(self, known: dict[str, SMDebugError]) -> None:
        """List the damaged files that another process met with those that are known."""
        for file, error in self.damaged_files.items():
            known.setdefault(file, error)

    @property
    def is_over(self) -> bool:
        return bool(self.error) or self.stopped
