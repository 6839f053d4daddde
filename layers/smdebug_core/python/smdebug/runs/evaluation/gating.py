"""Whether a run passes a gate of a pipeline: what its rules found, and how old its newest step is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from smdebug.amounts import counted
from smdebug.diagnosis import Issue
from smdebug.diagnosis.wording import headline
from smdebug.exceptions import SMDebugValueError

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*([smhd]?)", re.ASCII)


class GateOutcome(Enum):
    """What a gate says of a run. Only `PASSED` lets it through."""

    PASSED = "passed"
    FAILING = "failing"
    UNREADABLE = "unreadable"
    """Part of the run cannot be read, or a rule failed."""
    NOT_CHECKED = "not_checked"
    """No rule had anything to check."""
    STALE = "stale"
    """Its newest step is too old: it has stalled, or it is not the run of this pipeline."""
    NOT_ENDED = "not_ended"
    """It has failed, or it has no end marker: it is still training, or was killed."""


@dataclass(frozen=True)
class Age:
    """How old the newest step of a run is, and how old it may be."""

    seconds: float | None
    """None if the run does not record it."""
    limit: float | None = None
    """None if any age will do."""

    @property
    def is_beyond(self) -> bool:
        """Whether the step is too old; one whose age is unknown is."""
        return self.limit is not None and (self.seconds is None or self.seconds > self.limit)


@dataclass(frozen=True)
class GatedRun:
    """What is known of a run when its gate decides."""

    issues: Sequence[Issue]
    passed: Sequence[str]
    """The rules that checked something and found nothing."""
    failed: Sequence[str]
    """The rules that failed."""
    left_out: int
    """How many files and gaps were left out."""
    last_step: int | None
    has_ended: bool
    has_found: bool
    """Whether any rule has findings."""
    has_failed: bool = False
    """Whether the training raised an error or was terminated."""


@dataclass(frozen=True)
class Decision:
    """The outcome, and why, in a sentence."""

    outcome: GateOutcome
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"outcome": self.outcome.value, "reason": self.reason}


def decide(run: GatedRun, age: Age, *, must_have_ended: bool = False) -> Decision:
    """Return whether the run passes.

    Findings count first. Then nothing may be unread or too old, the training must not have failed, and
    something must have been checked.
    """
    if run.issues:
        more = f", and {counted(len(run.issues) - 1, 'other problem')}" if len(run.issues) > 1 else ""
        return Decision(GateOutcome.FAILING, f"{headline(run.issues[0])}{more}.")
    if run.has_found:
        return Decision(GateOutcome.FAILING, "A rule has detected a problem.")
    if run.failed:
        return Decision(GateOutcome.UNREADABLE, f"{', '.join(run.failed)} failed.")
    if run.left_out:
        return Decision(GateOutcome.UNREADABLE, "Part of the run is missing or damaged.")
    if age.is_beyond:
        return Decision(GateOutcome.STALE, _why_stale(run, age))
    if run.has_failed:
        return Decision(
            GateOutcome.NOT_ENDED, "The training has failed: it raised an error or was terminated."
        )
    if must_have_ended and not run.has_ended:
        return Decision(
            GateOutcome.NOT_ENDED, "The run has not ended: it is still training, or it was killed."
        )
    if not run.passed:
        return Decision(GateOutcome.NOT_CHECKED, "No rule had anything to check.")
    return Decision(GateOutcome.PASSED, f"{counted(len(run.passed), 'rule')} passed.")


def _why_stale(run: GatedRun, age: Age) -> str:
    limit = in_words(age.limit or 0.0)
    if run.last_step is None:
        return "No step was saved."
    if age.seconds is None:
        return f"The run does not record when step {run.last_step} was saved, which must be within {limit}."
    was = f"its newest step ({run.last_step}) was saved {in_words(age.seconds)} ago, more than {limit}"
    return f"The run is too old: {was}." if run.has_ended else f"The run has stalled: {was}."


def seconds_of(text: str) -> float:
    """Return the seconds of a duration such as `90s`, `10m`, `2h`, `1d` or `90`."""
    found = _DURATION.fullmatch(text.strip().lower())
    if not found:
        raise SMDebugValueError(f"A duration is a number with s, m, h or d, such as 10m, not {text[:40]!r}")
    return float(found[1]) * _UNITS[found[2] or "s"]


def in_words(seconds: float) -> str:
    """Return a duration in its largest unit that fits: `90 s`, `10 min`, `3.5 h`, `2 days`."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    if seconds < 172800:
        return f"{seconds / 3600:.3g} h"
    return f"{seconds / 86400:.0f} days"
