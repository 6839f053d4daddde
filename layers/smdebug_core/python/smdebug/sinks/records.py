"""The records that sinks take: what a run is, its numbers, its problems as they come and go, its diagnosis.

    {"record": "numbers", "step": 40, "mode": "training", "values": {"loss": 0.25}, ...}

Each is a frozen value, and a line of JSON. The step of numbers counts training steps, as people do: an
evaluation belongs to the training step before it. The steps of a problem are those of the run, as everywhere.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from smdebug.diagnosis.issues import Issue
from smdebug.diagnosis.wording import headline, summary
from smdebug.exceptions import SMDebugValueError

IssueState = Literal["opened", "resolved"]


@dataclass(frozen=True)
class RunRecord:
    """Which run the records after it belong to."""

    name: str
    path: str
    tags: tuple[str, ...] = ()
    version: str = ""
    """The version of this library."""

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"record": "run", **vars(self), "tags": list(self.tags)}

    @classmethod
    def from_dict(cls, payload: Mapping[str, Any]) -> RunRecord:
        tags = tuple(map(str, payload.get("tags") or ()))
        return cls(str(payload["name"]), str(payload["path"]), tags, str(payload.get("version") or ""))


@dataclass(frozen=True)
class NumbersRecord:
    """What was measured at a step of one mode: `training`, `validation` or `prediction`."""

    step: int
    mode: str
    time: float | None = None
    """When the step was saved, in seconds since 1970."""
    values: Mapping[str, float] = field(default_factory=dict)
    """Losses, metrics and other scalars, by name. A value of validation is the mean of one evaluation."""
    statistics: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Statistics of tensors: by the tensor's name, then by the statistic's."""

    def __len__(self) -> int:
        """How many numbers it has."""
        return len(self.values) + sum(map(len, self.statistics.values()))

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it; NaN and infinity are text."""
        return {
            "record": "numbers",
            "step": self.step,
            "mode": self.mode,
            "time": self.time,
            "values": _as_json(self.values),
            "statistics": {name: _as_json(found) for name, found in self.statistics.items()},
        }

    @classmethod
    def from_dict(cls, payload: Mapping[str, Any]) -> NumbersRecord:
        time = payload.get("time")
        return cls(
            int(payload["step"]),
            str(payload["mode"]),
            None if time is None else float(time),
            _floats(payload.get("values") or {}),
            {str(name): _floats(found) for name, found in (payload.get("statistics") or {}).items()},
        )


@dataclass(frozen=True)
class IssueRecord:
    """A problem that was opened or resolved. It is opened once, whatever the number of its findings."""

    state: IssueState
    step: int
    """The first step at which it was detected, or the step at which its rule passed again."""
    issue: Issue

    @property
    def key(self) -> str:
        """The identity of the problem among those of its run."""
        return self.issue.cause or ", ".join(self.issue.rules)

    @property
    def title(self) -> str:
        """`Gradients vanish, since step 40`; of a resolved problem the step of its end as well."""
        title = headline(self.issue)
        return title if self.state == "opened" else f"Resolved at step {self.step}: {title}"

    @property
    def first_advice(self) -> str:
        """What to try first; "" if nothing is known."""
        return next(iter(self.issue.advice), "")

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "record": "issue",
            "state": self.state,
            "step": self.step,
            "title": self.title,
            "issue": self.issue.to_dict(),
        }

    @classmethod
    def from_dict(cls, payload: Mapping[str, Any]) -> IssueRecord:
        state: IssueState = "resolved" if payload["state"] == "resolved" else "opened"
        return cls(state, int(payload["step"]), Issue.from_dict(payload["issue"]))


@dataclass(frozen=True)
class DiagnosisRecord:
    """The diagnosis of the run up to its last step that was evaluated."""

    last_step: int
    issues: tuple[Issue, ...] = ()
    """Every problem, those that are resolved as well."""
    open: int = 0
    """How many of them were still detected at the last check."""
    passed: tuple[str, ...] = ()
    not_checked: tuple[str, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)
    """The rules that failed themselves, with their errors."""

    @property
    def summary(self) -> str:
        """The diagnosis in a sentence: the problems, or what passed, or that nothing was checked."""
        if self.issues:
            return summary(self.issues)
        if self.passed:
            return f"No problem detected: {len(self.passed)} rules passed."
        return "Nothing was checked."

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "record": "diagnosis",
            "summary": self.summary,
            "last_step": self.last_step,
            "issues": [issue.to_dict() for issue in self.issues],
            "open": self.open,
            "passed": list(self.passed),
            "not_checked": list(self.not_checked),
            "failed": dict(self.failed),
        }

    @classmethod
    def from_dict(cls, payload: Mapping[str, Any]) -> DiagnosisRecord:
        return cls(
            int(payload["last_step"]),
            tuple(map(Issue.from_dict, payload["issues"])),
            int(payload["open"]),
            tuple(map(str, payload["passed"])),
            tuple(map(str, payload["not_checked"])),
            {str(name): str(error) for name, error in payload["failed"].items()},
        )


@dataclass(frozen=True)
class ReportRecord:
    """The report of the run: one page of HTML. Tools that keep files get it."""

    html: str

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"record": "report", "html": self.html}

    @classmethod
    def from_dict(cls, payload: Mapping[str, Any]) -> ReportRecord:
        return cls(str(payload["html"]))


@dataclass(frozen=True)
class FileRecord:
    """A file that the run holds, such as an image that was logged. Tools that keep files get it."""

    path: str
    """Where the tool keeps it: plain names between `/`."""
    data: bytes

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"record": "file", "path": self.path, "data": base64.b64encode(self.data).decode()}

    @classmethod
    def from_dict(cls, payload: Mapping[str, Any]) -> FileRecord:
        return cls(str(payload["path"]), base64.b64decode(payload["data"]))


Record = RunRecord | NumbersRecord | IssueRecord | DiagnosisRecord | ReportRecord | FileRecord

_KINDS: dict[str, Any] = {
    "run": RunRecord,
    "numbers": NumbersRecord,
    "issue": IssueRecord,
    "diagnosis": DiagnosisRecord,
    "report": ReportRecord,
    "file": FileRecord,
}


def as_line(record: Record) -> str:
    """Return the record as one line of JSON, without its end."""
    return json.dumps(record.to_dict(), ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def from_line(line: str | bytes) -> Record:
    """Return the record in a line that `as_line` wrote; raise `SMDebugValueError` if it holds none."""
    try:
        payload = json.loads(line)
        record: Record = _KINDS[payload["record"]].from_dict(payload)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SMDebugValueError(f"not a record of a run: {line[:80]!r}") from error
    return record


def _as_json(numbers: Mapping[str, float]) -> dict[str, float | str]:
    return {name: value if math.isfinite(value) else _name_of(value) for name, value in numbers.items()}


def _name_of(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _floats(numbers: Mapping[str, Any]) -> dict[str, float]:
    return {str(name): float(value) for name, value in numbers.items()}
