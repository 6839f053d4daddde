"""The log lines of a rule's function."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Protocol

from smdebug.secrets.texts import redacted
from smdebug.service.tables import PlainData, moment


@dataclass(frozen=True)
class LogLine(PlainData):
    """One line that a rule's function has logged."""

    columns: ClassVar = ("time", "level", "step", "message")

    time: datetime | None
    message: str
    level: str = ""
    step: int | None = None
    rule: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)  # the whole line


class LogReader(Protocol):
    """The logs of the functions."""

    def lines(self, run: str, rules: Sequence[str], since: float | None) -> Iterator[LogLine]:
        """Yield the lines about any of these rules on the run."""


def log_line(fields: Mapping[str, Any], milliseconds: float) -> LogLine:
    """The line with this JSON content, logged at that time."""
    step = fields.get("step")
    return LogLine(
        time=moment(milliseconds / 1000),
        message=redacted(str(fields.get("message", ""))),
        level=str(fields.get("level", "")),
        step=step if isinstance(step, int) and not isinstance(step, bool) else None,
        rule=str(fields.get("rule", "")),
        fields={name: redacted(value) if isinstance(value, str) else value for name, value in fields.items()},
    )
