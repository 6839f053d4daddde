"""OpenTelemetry over HTTP: numbers as gauges, problems and the diagnosis as events of the log.

The encoding is OTLP's JSON, which needs no library. https://opentelemetry.io/docs/specs/otlp/#otlphttp
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import unquote, urlsplit
from urllib.request import Request

from smdebug.diagnosis.wording import sentence
from smdebug.exceptions import SinkRefused
from smdebug.files.names import FIRST_LEARNING_RATE
from smdebug.secrets.texts import redacted
from smdebug.sinks.names import Names
from smdebug.sinks.otlp_json import INFO, WARN, Point, attributes, event, logs, metrics, point
from smdebug.sinks.records import DiagnosisRecord, IssueRecord, NumbersRecord, Record, RunRecord
from smdebug.sinks.requests import Refusals, answer_to

DEFAULT_ENDPOINT = "http://localhost:4318"
MOST_POINTS = 1000
"""How many points one request has."""
_FORBIDDEN = r"[^A-Za-z0-9_.\-/]"
_LONGEST_NAME = 247  # 255 with the prefix
MEGATRON = "megatron.training."
OF_MEGATRON = {"loss": "loss", FIRST_LEARNING_RATE: "learning_rate", "grad_norm": "grad_norm"}
"""Numbers of a training step for which Megatron-core has names: dashboards that know them need no others."""
_REFUSALS = Refusals(
    "OTEL_EXPORTER_OTLP_HEADERS",
    "it does not speak HTTP: gRPC has port 4317, and HTTP 4318",
    {
        404: "it takes no OTLP over HTTP, as a collector does at port 4318",
        415: "it is too old to take OTLP as JSON",
    },
)
_MILLISECOND = 1_000_000


class OtlpSink:
    """Sends to a collector; the endpoint and the headers are those of the environment, unless named."""

    def __init__(self, endpoint: str = ""):
        self._endpoint = endpoint or os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT") or DEFAULT_ENDPOINT
        self._names = Names(_FORBIDDEN, _LONGEST_NAME)
        self._resource: dict[str, Any] = {}
        self._scope: dict[str, Any] = {}
        self._last_nanos = 0
        self._rejected: list[str] = []

    @property
    def place(self) -> str:
        """The endpoint."""
        return f"OpenTelemetry at {redacted(self._endpoint)}"

    @property
    def notes(self) -> list[str]:
        """Names that were changed, and what the collector did not keep."""
        changed = self._names.in_words("OpenTelemetry")
        return [*([changed] if changed else []), *self._rejected]

    def begin(self, run: RunRecord) -> None:
        """Say which run it is, and learn whether the collector is there."""
        of_environment = _pairs(os.environ.get("OTEL_RESOURCE_ATTRIBUTES", ""))
        name = os.environ.get("OTEL_SERVICE_NAME") or of_environment.pop("service.name", "smdebug")
        known = {"service.name": name, "smdebug.run": run.name, "smdebug.path": redacted(run.path)}
        self._resource = {"attributes": attributes({**of_environment, **known})}
        self._scope = {"name": "smdebug", "version": run.version}
        self._post("metrics", {"resourceMetrics": []})

    def send(self, records: Sequence[Record]) -> None:
        """Send the numbers as metrics, then the problems as events."""
        points = [found for record in records for found in self._points_of(record)]
        for start in range(0, len(points), MOST_POINTS):
            scoped = {"scope": self._scope, "metrics": metrics(points[start : start + MOST_POINTS])}
            self._post(
                "metrics",
                {"resourceMetrics": [{"resource": self._resource, "scopeMetrics": [scoped]}]},
            )
        events = [found for record in records for found in self._events_of(record)]
        if events:
            self._post("logs", logs(self._resource, self._scope, events))

    def end(self, *, is_complete: bool = True) -> None:
        """Do nothing: a collector knows no end of a run."""

    def _points_of(self, record: Record) -> Iterator[Point]:
        if not isinstance(record, NumbersRecord):
            return
        at = self._moment(record.time)
        mode = {"smdebug.mode": record.mode}
        yield "smdebug.step", point(at, float(record.step), mode)
        known = OF_MEGATRON if record.mode == "training" else {}
        for name, value in record.values.items():
            allowed = f"{MEGATRON}{known[name]}" if name in known else f"smdebug.{self._names.allowed(name)}"
            yield allowed, point(at, value, mode)
        for tensor, statistics in record.statistics.items():
            for statistic, value in statistics.items():
                labels = {**mode, "smdebug.tensor": tensor}
                yield f"smdebug.tensor.{statistic}", point(at, value, labels)

    def _moment(self, seconds: float | None) -> int:
        """Return the time of a record in nanoseconds, later than the one before.

        Several steps may have been saved at once, and a point replaces another of the same time.
        """
        nanos = int(1e9 * (time.time() if seconds is None else seconds))
        self._last_nanos = max(nanos, self._last_nanos + _MILLISECOND)
        return self._last_nanos

    def _events_of(self, record: Record) -> Iterator[dict[str, Any]]:
        if isinstance(record, IssueRecord):
            severity = WARN if record.state == "opened" else INFO
            known = {
                "smdebug.problem": record.key,
                "smdebug.step": record.step,
                "smdebug.what": redacted(sentence(record.issue.what)),
                "smdebug.advice": redacted(record.first_advice),
                "smdebug.rules": ", ".join(record.issue.rules),
            }
            yield event(
                time.time_ns(), f"smdebug.problem.{record.state}", severity, redacted(record.title), known
            )
        elif isinstance(record, DiagnosisRecord):
            known = {
                "smdebug.problems": len(record.issues),
                "smdebug.problems_open": record.open,
                "smdebug.rules_passed": len(record.passed),
                "smdebug.rules_failed": len(record.failed),
                "smdebug.step": record.last_step,
            }
            severity = WARN if record.open else INFO
            yield event(time.time_ns(), "smdebug.diagnosis", severity, redacted(record.summary), known)

    def _post(self, signal: str, content: dict[str, Any]) -> None:
        own = os.environ.get(f"OTEL_EXPORTER_OTLP_{signal.upper()}_ENDPOINT")
        address = own or f"{self._endpoint.rstrip('/')}/v1/{signal}"
        if urlsplit(address).scheme not in ("http", "https"):
            raise SinkRefused(self.place, "an endpoint begins with http:// or https://")
        headers = {
            **_pairs(os.environ.get("OTEL_EXPORTER_OTLP_HEADERS", "")),
            "Content-Type": "application/json",
        }
        body = json.dumps(content, ensure_ascii=False, allow_nan=False).encode(errors="replace")
        request = Request(address, body, headers)  # noqa: S310 - its scheme was checked
        self._note_rejected(answer_to(request, self.place, _REFUSALS))

    def _note_rejected(self, answer: bytes) -> None:
        try:
            partial = json.loads(answer or b"{}").get("partialSuccess") or {}
            count = int(partial.get("rejectedDataPoints") or partial.get("rejectedLogRecords") or 0)
            reason = str(partial.get("errorMessage") or "")
        except (ValueError, TypeError, AttributeError):
            return  # a collector may answer with anything
        text = f"OpenTelemetry: the collector did not keep {count:,} of the points of a request: {reason}"
        if count and text not in self._rejected:
            self._rejected.append(redacted(text[:300]))


def _pairs(text: str) -> dict[str, str]:
    """Return `name=value,name=value` as the environment has it, with its percent signs decoded."""
    parts = (part.partition("=") for part in text.split(",") if "=" in part)
    return {name.strip(): unquote(value.strip()) for name, _, value in parts}
