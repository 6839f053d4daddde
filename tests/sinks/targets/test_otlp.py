"""OpenTelemetry over HTTP, at a small collector: what arrives, and what its answers mean."""

from __future__ import annotations

import json
import socket
import threading

import pytest

from smdebug.exceptions import SinkRefused, SinkUnavailable
from smdebug.sinks import requests
from smdebug.sinks.records import NumbersRecord
from smdebug.sinks.targets.otlp import OtlpSink
from tests.sinks.collector import collector
from tests.sinks.made import DIAGNOSIS, NUMBERS, OPENED, RESOLVED, RUN


@pytest.fixture(autouse=True)
def no_settings(monkeypatch):
    import os

    for name in os.environ:
        if name.startswith("OTEL_") or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


def attributes(found) -> dict:
    return {item["key"]: next(iter(item["value"].values())) for item in found}


def test_numbers_are_gauges_with_their_mode_and_tensor():
    with collector() as found:
        sink = OtlpSink(found.address)
        sink.begin(RUN)
        sink.send([NUMBERS])
        sink.end()
    (content,) = [json.loads(body)["resourceMetrics"] for body in found.bodies("/v1/metrics")[1:]]
    assert attributes(content[0]["resource"]["attributes"]) == {
        "service.name": "smdebug",
        "smdebug.run": "run-a",
        "smdebug.path": "/data/run-a",
    }
    metrics = {
        metric["name"]: metric["gauge"]["dataPoints"] for metric in content[0]["scopeMetrics"][0]["metrics"]
    }
    assert {name: point["asDouble"] for name, (point,) in metrics.items()} == {
        "smdebug.step": 40.0,
        "megatron.training.loss": 0.25,
        "smdebug.worst": "NaN",
        "smdebug.most": "Infinity",
        "smdebug.tensor.rms": 0.5,
        "smdebug.tensor.non_finite": 1.0,
    }
    (point,) = metrics["smdebug.tensor.rms"]
    assert attributes(point["attributes"]) == {
        "smdebug.mode": "training",
        "smdebug.tensor": "gradient/fc.weight",
    }
    assert point["timeUnixNano"] == "1700000000500000000"


def test_numbers_of_training_have_the_names_of_megatron_core_where_it_has_any():
    values = {"loss": 1.0, "learning_rate/0/0": 0.1, "learning_rate/0/1": 0.01, "grad_norm": 2.0}
    with collector() as found:
        sink = OtlpSink(found.address)
        sink.begin(RUN)
        sink.send([NumbersRecord(7, "training", 1.0, values), NumbersRecord(7, "validation", 1.0, values)])
    (content,) = json.loads(found.bodies("/v1/metrics")[-1])["resourceMetrics"][0]["scopeMetrics"]
    modes = {
        metric["name"]: [
            attributes(point["attributes"])["smdebug.mode"] for point in metric["gauge"]["dataPoints"]
        ]
        for metric in content["metrics"]
    }
    assert modes == {
        "smdebug.step": ["training", "validation"],
        "megatron.training.loss": ["training"],
        "megatron.training.learning_rate": ["training"],
        "megatron.training.grad_norm": ["training"],
        "smdebug.learning_rate/0/1": ["training", "validation"],
        "smdebug.loss": ["validation"],
        "smdebug.learning_rate/0/0": ["validation"],
        "smdebug.grad_norm": ["validation"],
    }


def test_steps_that_were_saved_at_once_have_times_of_their_own():
    with collector() as found:
        sink = OtlpSink(found.address)
        sink.begin(RUN)
        sink.send([NumbersRecord(step, "training", 1700000000.0, {"loss": 1.0}) for step in range(3)])
    (metric,) = [
        metric
        for metric in json.loads(found.bodies("/v1/metrics")[-1])["resourceMetrics"][0]["scopeMetrics"][0][
            "metrics"
        ]
        if metric["name"] == "megatron.training.loss"
    ]
    times = [int(point["timeUnixNano"]) for point in metric["gauge"]["dataPoints"]]
    assert times == [1700000000_000000000, 1700000000_001000000, 1700000000_002000000]


def test_many_numbers_take_several_requests():
    with collector() as found:
        sink = OtlpSink(found.address)
        sink.begin(RUN)
        sink.send([NumbersRecord(0, "training", 1.0, {f"n{at}": float(at) for at in range(2500)})])
    assert len(found.bodies("/v1/metrics")) == 1 + 3


def test_problems_and_the_diagnosis_are_events():
    with collector() as found:
        sink = OtlpSink(found.address)
        sink.begin(RUN)
        sink.send([OPENED, RESOLVED, DIAGNOSIS])
    (body,) = found.bodies("/v1/logs")
    events = json.loads(body)["resourceLogs"][0]["scopeLogs"][0]["logRecords"]
    assert [(event["eventName"], event["severityText"]) for event in events] == [
        ("smdebug.problem.opened", "WARN"),
        ("smdebug.problem.resolved", "INFO"),
        ("smdebug.diagnosis", "INFO"),
    ]
    assert events[0]["body"]["stringValue"] == "Gradients vanish, since step 40"
    known = attributes(events[0]["attributes"])
    assert known["smdebug.advice"] == "Add a residual connection"
    assert known["smdebug.step"] == "40"
    assert attributes(events[2]["attributes"])["smdebug.problems"] == "1"


def test_the_environment_names_the_endpoint_the_headers_and_the_service(monkeypatch):
    with collector() as found:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"{found.address}/")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Bearer%20abc, x-tenant=me")
        monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "team=vision,service.name=ignored")
        monkeypatch.setenv("OTEL_SERVICE_NAME", "trainer")
        sink = OtlpSink()
        sink.begin(RUN)
        sink.send([NUMBERS])
    path, headers, body = found.requests[-1]
    assert (path, headers["authorization"], headers["x-tenant"]) == ("/v1/metrics", "Bearer abc", "me")
    known = attributes(json.loads(body)["resourceMetrics"][0]["resource"]["attributes"])
    assert (known["service.name"], known["team"]) == ("trainer", "vision")


@pytest.mark.parametrize(
    ("status", "error", "text"),
    [
        (401, SinkRefused, r"refuses the credentials \(401\): set OTEL_EXPORTER_OTLP_HEADERS"),
        (404, SinkRefused, "no OTLP over HTTP"),
        (415, SinkRefused, "too old"),
        (400, SinkRefused, "status 400"),
        (429, SinkUnavailable, "status 429"),
        (503, SinkUnavailable, "status 503"),
    ],
)
def test_what_a_collector_answers_decides_who_has_to_act(status, error, text):
    with collector(status) as found, pytest.raises(error, match=text):
        OtlpSink(found.address).begin(RUN)


def test_a_collector_that_is_down_or_hangs_is_unavailable(monkeypatch):
    with collector() as found:
        pass
    with pytest.raises(SinkUnavailable, match="cannot be reached"):
        OtlpSink(found.address).begin(RUN)
    monkeypatch.setattr(requests, "SECONDS", 0.05)
    with collector(release=threading.Event()) as found, pytest.raises(SinkUnavailable, match="too slowly"):
        OtlpSink(found.address).begin(RUN)


def test_a_port_that_speaks_something_else_is_refused_with_the_right_port():
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(b"\x00\x00\x12\x04\x00settings of HTTP 2\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(SinkRefused, match="gRPC has port 4317, and HTTP 4318"):
            OtlpSink(f"http://127.0.0.1:{server.getsockname()[1]}").begin(RUN)
        thread.join()


@pytest.mark.parametrize("endpoint", ["localhost:4317", "file:///etc", "collector"])
def test_an_endpoint_without_http_is_refused(monkeypatch, endpoint):
    with pytest.raises(SinkRefused, match="begins with http"):
        OtlpSink(endpoint).begin(RUN)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", endpoint)
    with pytest.raises(SinkRefused, match="begins with http"):
        OtlpSink("http://127.0.0.1:9").begin(RUN)


def test_headers_follow_no_redirection(monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=secret")
    with collector() as other, collector(302, headers={"Location": other.address}) as found:
        with pytest.raises(SinkRefused, match="status 302"):
            OtlpSink(found.address).begin(RUN)
        assert len(found.requests) == 1
        assert other.requests == []


def test_what_the_collector_did_not_keep_is_said():
    answer = b'{"partialSuccess": {"rejectedDataPoints": "3", "errorMessage": "NaN is not supported"}}'
    with collector(answer=answer) as found:
        sink = OtlpSink(found.address)
        sink.begin(RUN)
        sink.send([NUMBERS])
    (note,) = sink.notes
    assert "did not keep 3 of the points" in note
    assert "NaN is not supported" in note


@pytest.mark.parametrize(
    "answer", [b"", b"[]", b"text", b'{"partialSuccess": null}', b'{"partialSuccess": 3}']
)
def test_any_other_answer_is_taken_for_a_yes(answer):
    with collector(answer=answer) as found:
        sink = OtlpSink(found.address)
        sink.begin(RUN)
    assert sink.notes == []
