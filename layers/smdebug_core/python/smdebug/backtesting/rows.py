"""A row of the table: what one rule says of one run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from typing import Any

from smdebug.amounts import counted
from smdebug.runs.evaluation.rule_results import RuleResult, StepFindings

FOUND, PASSED, NOT_CHECKED, FAILED = "IssuesFound", "NoIssuesFound", "NotChecked", "Error"
UNREAD, TIMED_OUT, INCOMPLETE = "Unread", "TimedOut", "Incomplete"
"""Of a run that is foreign or gone, of one on which the rule took too long, and of one in which it found
nothing while files are damaged or missing."""


@dataclass(frozen=True, slots=True)
class Row:
    """The verdict of a rule on a run."""

    run: str
    rule: str
    status: str
    first_finding: str = ""
    first_step: int | None = None
    """The step at which it was first found."""
    onset: int | None = None
    """The step since which the problem exists, by the first finding."""
    findings: int = 0
    steps_found: int = 0
    looked: int = 0
    seconds: float = 0.0
    note: str = ""
    """Why there is no verdict, or that the run has not ended."""
    statistic: str = ""
    lowest: float | None = None
    """The lowest and highest number that the rule compared with its limit."""
    highest: float | None = None
    limit: float | None = None
    label: str = ""
    changed: str | None = None
    """Compared with the older version: the first differing finding; None if nothing differs."""
    status_before: str | None = None

    @property
    def fires(self) -> bool:
        return self.status == FOUND

    @property
    def has_verdict(self) -> bool:
        """Whether the rule checked anything, to the end."""
        return self.status in (FOUND, PASSED)

    def labelled(self, label: str) -> Row:
        return self if self.label == label else replace(self, label=label)

    def at(self, path: str) -> Row:
        """Return the row with the run's path as it was named now."""
        return self if self.run == path else replace(self, run=path)

    def values(self) -> tuple[Any, ...]:
        """Return what `Row` takes, in the order of the columns."""
        return _VALUES(self)

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return dict(zip(COLUMNS, self.values(), strict=True))

    @classmethod
    def from_dict(cls, payload: Mapping[str, Any]) -> Row:
        return cls(**{name: payload[name] for name in COLUMNS if name in payload})


COLUMNS = tuple(field.name for field in fields(Row))
_VALUES: Callable[[Row], tuple[Any, ...]] = attrgetter(*COLUMNS)


def row_of(run: str, result: RuleResult, *, has_ended: bool) -> Row:
    """Return the row of a rule's result."""
    first = result.found[0] if result.found else None
    evidence = first.findings[0] if first and first.findings else {}
    values = [*(result.checked or ()), *_numbers(result, "value")]
    limits = _numbers(result, "threshold")
    note = result.error or result.not_checked
    if not note and result.damaged:
        note = f"{result.damaged} damaged steps left out"
    if not note and not has_ended:
        note = "the run has not ended"
    return Row(
        run,
        result.name,
        result.status.value,
        first_finding=str(evidence.get("message", "")) or ("the condition is met" if first else ""),
        first_step=first.step if first else None,
        onset=_onset(first, evidence) if first else None,
        findings=sum(max(1, findings.count) for findings in result.found),
        steps_found=len(result.steps_found),
        looked=result.looked,
        seconds=round(result.seconds, 3),
        note=note,
        statistic=str(evidence.get("statistic", "")),
        lowest=min(values, default=None),
        highest=max(values, default=None),
        limit=limits[0] if limits else None,
    )


def despite(row: Row, left_out: Sequence[str]) -> Row:
    """Return the row of a run of which these files were left out: it is incomplete if nothing was found."""
    saw_nothing = row.status == NOT_CHECKED and not row.looked
    if not left_out or not (row.status == PASSED or saw_nothing):
        return row
    files = counted(len(left_out), "file")
    return replace(row, status=INCOMPLETE, note=f"{files} left out: {left_out[0]}; run `smdebug verify`")


def unread_row(run: str, problem: str, status: str = UNREAD, rule: str = "") -> Row:
    """Return the row of a run that could not be judged."""
    return Row(run, rule, status, note=problem)


def first_difference(now: RuleResult, before: RuleResult) -> str | None:
    """Return the first step at which two versions of a rule differ, and how; None if they agree."""
    if now.error != before.error:
        return f"now: {now.error or 'no error'}; before: {before.error or 'no error'}"
    ours, theirs = _by_step(now), _by_step(before)
    for step in sorted({*ours, *theirs}):
        if ours.get(step) != theirs.get(step):
            said = (_in_words(found.get(step)) for found in (ours, theirs))
            return "step {}: now {}; before {}".format(step, *said)
    if now.status is not before.status:
        return f"now {now.status.value}, before {before.status.value}"
    return None


def _by_step(result: RuleResult) -> dict[int, StepFindings | None]:
    kept: dict[int, StepFindings | None] = dict.fromkeys(result.steps_found)
    kept.update({findings.step: findings for findings in result.found})
    return kept


def _in_words(findings: StepFindings | None) -> str:
    if findings is None:
        return "nothing"
    return str(findings.findings[0]["message"]) if findings.findings else "the condition is met"


def _onset(first: StepFindings, evidence: Mapping[str, Any]) -> int:
    since = evidence.get("since")
    if since is None:
        since = (evidence.get("details") or {}).get("found_since")
    return since if isinstance(since, int) else first.step


def _numbers(result: RuleResult, name: str) -> list[float]:
    """Return the numbers of that name in the worst finding of each step; those of the first statistic."""
    found: list[float] = []
    statistic = None
    for findings in result.found:
        evidence = findings.findings[0] if findings.findings else {}
        statistic = statistic or evidence.get("statistic")
        value = evidence.get(name)
        if isinstance(value, bool) or evidence.get("statistic") != statistic:
            continue
        if isinstance(value, int | float):
            found.append(float(value))
    return found
