"""The messages of opentelemetry-proto read what a deployed debugger posts, whatever a run is called."""

from __future__ import annotations

import pytest

from functions.decisions.posting.posts import Form, body_of
from tests.functions.decisions.hostile_runs import HOSTILE, posted_of

pytest.importorskip("opentelemetry.proto", reason="make test-sinks runs it")

KINDS = {
    "found": ("smdebug.problem.opened", "WARN"),
    "resolved": ("smdebug.problem.resolved", "INFO"),
    "error": ("smdebug.rule.status", "WARN"),
    "no issues found": ("smdebug.rule.status", "INFO"),
    "finished": ("smdebug.run.state", "WARN"),
    "action": ("smdebug.action", "INFO"),
}


@pytest.mark.parametrize("run", HOSTILE)
@pytest.mark.parametrize("kind", KINDS)
def test_an_event_of_the_bus_is_an_event_of_the_log(run, kind):
    from google.protobuf.json_format import Parse
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

    event = posted_of(run, kind)
    request = Parse(body_of(Form.OTLP, event), ExportLogsServiceRequest())
    (logs,) = request.resource_logs
    resource = {item.key: item.value.string_value for item in logs.resource.attributes}
    assert resource == {"service.name": "smdebug", "smdebug.run": run, "smdebug.path": f"s3://{run}"}
    (record,) = logs.scope_logs[0].log_records
    assert (record.event_name, record.severity_text) == KINDS[kind]
    assert record.body.string_value == event["detail"]["text"]
    assert record.time_unix_nano == 1_795_262_402_700_000_000
    known = {item.key: item.value for item in record.attributes}
    if kind == "found":
        assert known["smdebug.problem"].string_value == "vanishing gradient"
        assert known["smdebug.step"].int_value == 400
        assert known["smdebug.rules"].string_value == "fc-gradients"
