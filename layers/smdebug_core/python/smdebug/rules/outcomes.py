"""What came of evaluating a rule at a step: the same six outcomes wherever the rule is evaluated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from smdebug.diagnosis.evidence import Evidence


@dataclass(frozen=True)
class Found:
    """The condition was met; the evidence, each finding as by `Finding.to_dict`."""

    findings: tuple[Mapping[str, Any], ...] = ()
    evidence: tuple[Evidence, ...] = ()  # by cause, with the rule's advice if it is known
    is_last: bool = False  # the rule asked to be evaluated no further
    error: BaseException | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Passed:
    """The rule checked the step and found nothing."""


@dataclass(frozen=True)
class NothingToCheck:
    """The step held nothing for this rule, so it has no result."""

    missing: str = ""  # what the run lacks for the rule, if it says so


@dataclass(frozen=True)
class NotSaved:
    """The step, or a tensor that the rule asked for, was not saved or is damaged."""

    reason: str
    is_damaged: bool = False
    is_over: bool = False  # the run has ended before the step
    error: BaseException | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Behind:
    """The rule has to wait, as a run that it compares with has not reached the step."""

    problem: str


@dataclass(frozen=True)
class Failed:
    """The rule failed, with this message."""

    message: str
    error: BaseException | None = field(default=None, compare=False, repr=False)


Outcome = Found | Passed | NothingToCheck | NotSaved | Failed
