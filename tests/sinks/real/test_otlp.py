"""The messages of opentelemetry-proto itself read what the sink sends."""

from __future__ import annotations

import math

import pytest

from smdebug.export.sending import send_run, tool_sink
from tests.sinks.collector import collector

pytest.importorskip("opentelemetry.proto", reason="make test-sinks runs it")


def test_a_run_is_read_by_the_protocols_own_messages(run):
    from google.protobuf.json_format import Parse
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

    with collector() as found:
        send_run(run, tool_sink("otlp", found.address))
    requests = [Parse(body, ExportMetricsServiceRequest()) for body in found.bodies("/v1/metrics")]
    losses = {}
    for request in requests:
        for resource in request.resource_metrics:
            for metric in resource.scope_metrics[0].metrics:
                if metric.name in ("megatron.training.loss", "smdebug.loss"):
                    for point in metric.gauge.data_points:
                        mode = {item.key: item.value.string_value for item in point.attributes}[
                            "smdebug.mode"
                        ]
                        losses.setdefault(mode, {})[point.time_unix_nano] = point.as_double
    assert len(losses["training"]) == 30
    assert math.isnan(list(losses["training"].values())[-1])
    assert list(losses["validation"].values()) == [110.0, 120.0, 130.0]

    (logs,) = [Parse(body, ExportLogsServiceRequest()) for body in found.bodies("/v1/logs")]
    events = logs.resource_logs[0].scope_logs[0].log_records
    assert [event.event_name for event in events] == ["smdebug.problem.opened", "smdebug.diagnosis"]
    assert "NaN" in events[0].body.string_value
