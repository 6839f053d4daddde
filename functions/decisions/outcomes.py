"""The possible outcomes of evaluating a rule at a step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from smdebug.diagnosis.evidence import Evidence

NOT_CHECKED = "Not checked"  # begins the reason of a rule that had nothing to check


@dataclass(frozen=True)
class Found:
    """The condition was met; the evidence, each finding as by `Finding.to_dict`."""

    findings: tuple[Mapping[str, Any], ...] = ()
    evidence: tuple[Evidence, ...] = ()  # by cause, with the rule's advice if it is known


@dataclass(frozen=True)
class Clear:
    """The rule checked the step and found nothing."""


@dataclass(frozen=True)
class NothingToCheck:
    """The step held nothing for this rule, so it has no result."""

    missing: str = ""  # what the run lacks for the rule, if it says so


@dataclass(frozen=True)
class Raised:
    """The rule failed, with this message."""

    message: str


Outcome = Found | Clear | NothingToCheck | Raised
