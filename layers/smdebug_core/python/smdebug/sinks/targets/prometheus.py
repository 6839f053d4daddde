"""The state of a run as text that Prometheus reads: the last value of each number, and what is open.

A file for the textfile collector of node_exporter, replaced as a whole. Numbers have no time of their own
there: Prometheus gives them that of its visit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO

from smdebug.diagnosis.issues import Issue
from smdebug.diagnosis.wording import title_of
from smdebug.exceptions import SinkRefused, SinkUnavailable
from smdebug.secrets.texts import redacted
from smdebug.sinks.records import DiagnosisRecord, IssueRecord, NumbersRecord, Record, RunRecord
from smdebug.storage.whole_file import whole_file

STDOUT = "-"
_HELP = {
    "smdebug_step": "The last step of each mode, in training steps.",
    "smdebug_value": "The last value of a loss, a metric or another scalar.",
    "smdebug_tensor": "The last value of a statistic of a tensor.",
    "smdebug_problem_open": "1 while a problem is detected, 0 once it is resolved.",
    "smdebug_problems_open": "How many problems are detected now.",
    "smdebug_rules_passed": "How many rules checked something and found nothing.",
    "smdebug_rules_failed": "How many rules failed themselves.",
    "smdebug_saved_timestamp_seconds": "When the last of these steps was saved.",
}

_Labels = tuple[tuple[str, str], ...]


class PrometheusSink:
    """Writes the file after each delivery, or once with `whole`; `-` is `stdout`, at the end."""

    def __init__(self, file: str, *, whole: bool = False, stdout: IO[str] | None = None):
        self.notes: list[str] = []
        self._file = file
        self._stdout = stdout if file == STDOUT else None
        self._at_end = whole
        self._run: RunRecord | None = None
        self._samples: dict[str, dict[_Labels, float]] = {}
        self._problems: dict[str, Issue] = {}
        self._open: dict[str, bool] = {}

    @property
    def place(self) -> str:
        """The file."""
        return self._file if self._stdout is None else "standard output"

    def begin(self, run: RunRecord) -> None:
        """Write a file without numbers, so that one that cannot be written is known at once."""
        self._run = run
        self._samples["smdebug_problems_open"] = {(): 0}
        if not self._at_end:
            self._write()

    def send(self, records: Sequence[Record]) -> None:
        """Take the last values, and write the file."""
        for record in records:
            if isinstance(record, NumbersRecord):
                self._note_numbers(record)
            elif isinstance(record, IssueRecord):
                self._note_problem(record.issue, is_open=record.state == "opened")
            elif isinstance(record, DiagnosisRecord):
                self._samples["smdebug_rules_passed"] = {(): len(record.passed)}
                self._samples["smdebug_rules_failed"] = {(): len(record.failed)}
        if not self._at_end:
            self._write()

    def end(self, *, is_complete: bool = True) -> None:
        """Write the file, if that was not done before."""
        if self._at_end and is_complete:
            self._write()

    def text(self) -> str:
        """Return the text, in the exposition format."""
        run = "" if self._run is None else self._run.name
        lines: list[str] = []
        for name, help_text in _HELP.items():
            samples = self._samples.get(name)
            if samples:
                lines += [f"# HELP {name} {help_text}", f"# TYPE {name} gauge"]
                lines += [
                    f"{name}{_labels((('run', run), *labels))} {_number(value)}"
                    for labels, value in samples.items()
                ]
        return "".join(f"{line}\n" for line in lines)

    def _note_numbers(self, record: NumbersRecord) -> None:
        mode = ("mode", record.mode)
        self._set("smdebug_step", (mode,), record.step)
        if record.time is not None:
            self._set("smdebug_saved_timestamp_seconds", (), record.time)
        for name, value in record.values.items():
            self._set("smdebug_value", (mode, ("name", name)), value)
        for tensor, statistics in record.statistics.items():
            for statistic, value in statistics.items():
                labels = (mode, ("tensor", tensor), ("statistic", statistic))
                self._set("smdebug_tensor", labels, value)

    def _note_problem(self, issue: Issue, *, is_open: bool) -> None:
        cause = issue.cause or ", ".join(issue.rules)
        self._problems.setdefault(cause, issue)
        self._open[cause] = is_open
        title = redacted(title_of(self._problems[cause]))
        labels = (("cause", cause), ("title", title), ("since", str(self._problems[cause].since)))
        self._set("smdebug_problem_open", labels, float(is_open))
        self._samples["smdebug_problems_open"] = {(): sum(self._open.values())}

    def _set(self, name: str, labels: _Labels, value: float) -> None:
        self._samples.setdefault(name, {})[labels] = value

    def _write(self) -> None:
        if self._stdout is not None:
            self._stdout.write(self.text())
            return
        try:
            with whole_file(self._file) as place:
                Path(place).write_bytes(self.text().encode(errors="replace"))
        except FileExistsError as error:
            raise SinkRefused(self.place, f"it cannot be written: {error.strerror}") from error
        except OSError as error:
            kind = SinkRefused if isinstance(error, PermissionError | IsADirectoryError) else SinkUnavailable
            raise kind(self.place, f"it cannot be written: {error.strerror}") from error


def _labels(labels: Iterable[tuple[str, str]]) -> str:
    shown = (f'{name}="{_escaped(value)}"' for name, value in labels)
    return f"{{{','.join(shown)}}}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _number(value: float) -> str:
    if math.isfinite(value):
        return repr(float(value))
    return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
