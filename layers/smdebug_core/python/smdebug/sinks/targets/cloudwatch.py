"""Lines in CloudWatch's embedded metric format: written to a log, they become metrics there.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Iterator, Mapping
from typing import IO, Any

from smdebug.amounts import counted
from smdebug.secrets.texts import redacted
from smdebug.sinks.names import Names
from smdebug.sinks.records import DiagnosisRecord, IssueRecord, NumbersRecord, Record
from smdebug.sinks.targets.json_lines import LineSink

NAMESPACE = "smdebug"
MOST_METRICS = 100
"""How many metrics one line may have."""
LONGEST_NAME = 255
LARGEST = 2.0**360
"""CloudWatch refuses values that are larger, or smaller than its negative."""
OLDEST_SECONDS = 14 * 24 * 3600
"""CloudWatch makes no metric of an older line."""
_FORBIDDEN = r"[^\x20-\x7e]|^[:]"
_OWN = re.compile(r"^(_aws|run|mode|step|record|title|problem|message|diagnosis)$")


class CloudWatchSink(LineSink):
    """Losses and metrics become metrics by run and mode, problems a metric and text.

    Statistics of tensors are left out: each would be a custom metric, which costs every month.
    """

    def __init__(self, file: str, *, whole: bool = False, stdout: IO[str] | None = None):
        super().__init__(file, whole=whole, stdout=stdout)
        self._names = Names(_FORBIDDEN, LONGEST_NAME)
        self._not_finite = 0
        self._statistics = 0
        self._old = 0
        self._problems: dict[str, bool] = {}

    @property
    def notes(self) -> list[str]:
        """Names that were changed, numbers that were left out, lines that are too old."""
        found = [self._names.in_words("CloudWatch")]
        if self._not_finite:
            found.append(
                "CloudWatch takes no NaN, no infinity and nothing beyond 2^360: "
                f"{counted(self._not_finite, 'value')} left out, and counted in the metric non_finite"
            )
        if self._statistics:
            found.append(
                f"{counted(self._statistics, 'statistic')} of tensors left out: in CloudWatch each name "
                "would be a custom metric, which costs every month"
            )
        if self._old:
            found.append(
                "CloudWatch makes no metrics of what is older than two weeks: "
                f"{counted(self._old, 'line')} will be text alone"
            )
        return [note for note in found if note]

    @notes.setter
    def notes(self, _: list[str]) -> None:
        """Notes are counted, not set."""

    def lines_of(self, record: Record) -> list[str]:
        """Return the lines of a record; most have one, and many metrics several."""
        return [json.dumps(line, ensure_ascii=False, allow_nan=False) for line in self._documents(record)]

    def _documents(self, record: Record) -> Iterator[dict[str, Any]]:
        now = time.time()
        if isinstance(record, NumbersRecord):
            when = now if record.time is None else record.time
            yield from self._of_numbers(record, when, now)
        elif isinstance(record, IssueRecord):
            self._problems[record.key] = record.state == "opened"
            text = {
                "record": "issue",
                "problem": record.key,
                "title": redacted(record.title),
                "message": redacted(record.issue.what),
                "step": record.step,
            }
            yield self._document(now, {"problems_open": float(sum(self._problems.values()))}, text)
        elif isinstance(record, DiagnosisRecord):
            numbers = {"problems_open": float(record.open), "rules_passed": float(len(record.passed))}
            yield self._document(now, numbers, {"record": "diagnosis", "diagnosis": redacted(record.summary)})

    def _of_numbers(self, record: NumbersRecord, when: float, now: float) -> Iterator[dict[str, Any]]:
        self._statistics += sum(map(len, record.statistics.values()))
        finite = {
            self._name(name): value
            for name, value in record.values.items()
            if math.isfinite(value) and abs(value) <= LARGEST
        }
        missing = len(record.values) - len(finite)
        if missing:
            self._not_finite += missing
            finite["non_finite"] = float(missing)
        items = list(finite.items())
        for start in range(0, len(items), MOST_METRICS):
            self._old += when < now - OLDEST_SECONDS
            yield self._document(
                when, dict(items[start : start + MOST_METRICS]), {"step": record.step}, record.mode
            )

    def _name(self, name: str) -> str:
        """Return the name of a metric, which is a field of the line: not that of another field."""
        allowed = self._names.allowed(name)
        return f"value_{allowed}" if _OWN.match(allowed) or allowed == "non_finite" else allowed

    def _document(
        self, when: float, numbers: Mapping[str, float], text: Mapping[str, Any], mode: str = ""
    ) -> dict[str, Any]:
        dimensions = {"run": self._names.allowed(self.run_name), **({"mode": mode} if mode else {})}
        directive = {
            "Namespace": NAMESPACE,
            "Dimensions": [[*dimensions]],
            "Metrics": [{"Name": name} for name in numbers],
        }
        return {
            "_aws": {"Timestamp": int(1000 * when), "CloudWatchMetrics": [directive]},
            **dimensions,
            **text,
            **numbers,
        }
