"""OTLP's JSON: metrics, and events of the log. https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

INFO, WARN = 9, 13
"""Severities."""

Point = tuple[str, dict[str, Any]]


def metrics(points: Iterable[Point]) -> list[dict[str, Any]]:
    """Return the points as gauges by their names."""
    of_name: dict[str, list[dict[str, Any]]] = {}
    for name, found in points:
        of_name.setdefault(name, []).append(found)
    return [{"name": name, "gauge": {"dataPoints": found}} for name, found in of_name.items()]


def point(nanos: int, value: float, labels: Mapping[str, Any]) -> dict[str, Any]:
    """Return a point of a gauge."""
    return {"timeUnixNano": str(nanos), "asDouble": _double(value), "attributes": attributes(labels)}


def event(nanos: int, name: str, severity: int, text: str, known: Mapping[str, Any]) -> dict[str, Any]:
    """Return an event of the log; attributes that are empty are left out."""
    return {
        "timeUnixNano": str(nanos),
        "observedTimeUnixNano": str(nanos),
        "severityNumber": severity,
        "severityText": "WARN" if severity == WARN else "INFO",
        "eventName": name,
        "body": {"stringValue": text},
        "attributes": attributes({name: value for name, value in known.items() if value != ""}),
    }


def logs(
    resource: Mapping[str, Any], scope: Mapping[str, Any], events: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return a request with these events of one resource."""
    return {"resourceLogs": [{"resource": resource, "scopeLogs": [{"scope": scope, "logRecords": events}]}]}


def attributes(known: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return attributes as OTLP has them: whole numbers, or texts."""
    return [{"key": name, "value": _value(value)} for name, value in known.items()]


def _value(value: Any) -> dict[str, Any]:
    return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": str(value)}


def _double(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
