"""MLflow's own client reads back what the sink logged; a small server refuses, fails and hangs."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from smdebug.exceptions import SinkRefused, SinkUnavailable
from smdebug.export.sending import send_run, tool_sink
from smdebug.sinks.records import NumbersRecord
from smdebug.sinks.targets.mlflow import MlflowSink
from tests.sinks.made import FILE, OPENED, RESOLVED, RUN
from tests.sinks.servers import tracking_server, wait_until

mlflow = pytest.importorskip("mlflow", reason="make test-sinks runs it")
pytestmark = pytest.mark.filterwarnings("default")  # those of MLflow

TRAINING = """
import sys
import mlflow, smdebug
from tests.sinks import made

hook_class = smdebug.Hook
smdebug.Hook = lambda place, **options: hook_class(place, sinks=["mlflow"], **options)
with mlflow.start_run() as run:
    for step in range(30):
        mlflow.log_metric("loss", 1.0, step=step)
    made.failing_run(sys.argv[1])
print(run.info.run_id)
"""


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("mlflow")
    uri = f"sqlite:///{folder}/mlflow.db"
    client = mlflow.MlflowClient(tracking_uri=uri)
    client.create_experiment("watched", artifact_location=f"file://{folder}/artifacts")
    return uri


@pytest.fixture(autouse=True)
def experiment(monkeypatch: pytest.MonkeyPatch, environment: None) -> None:
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "watched")


def history(client, run_id: str, name: str) -> dict[int, float]:
    return {metric.step: metric.value for metric in client.get_metric_history(run_id, name)}


def test_a_run_arrives_with_its_numbers_problems_and_report(run, store):
    sink = tool_sink("mlflow", store)
    send_run(run, sink)
    client = mlflow.MlflowClient(tracking_uri=store)
    made = client.get_run(sink.run_id)
    assert (made.info.run_name, made.info.status) == ("run-a", "FINISHED")
    losses = history(client, sink.run_id, "training/loss")
    assert list(losses) == list(range(30))
    assert losses[0] == 1.0
    assert math.isnan(losses[25])
    assert history(client, sink.run_id, "validation/loss") == {9: 110.0, 19: 120.0, 29: 130.0}
    assert history(client, sink.run_id, "training/weight/rms")[0] == 0.0
    tags = made.data.tags
    assert "NaN" in tags["smdebug.problem.1"]
    assert "Try: " in tags["smdebug.problem.1"]
    assert tags["smdebug.problems"] == "1"
    assert tags["smdebug.diagnosis"].startswith("1 problem detected")
    assert tags["smdebug.path"] == str(run)
    assert tags["mlflow.note.content"].startswith(f"{tags['smdebug.diagnosis']}\n\nWatched by smdebug: ")
    assert "the loss is NaN since step" in tags["smdebug.diagnosis"]
    names = {file.path for file in client.list_artifacts(sink.run_id, "smdebug")}
    assert names == {"smdebug/report.html", "smdebug/diagnosis.json"}


def test_a_run_arrives_at_a_real_server_of_its_own(run, tmp_path):
    """The store of the other tests is the client's; this one is reached over HTTP, artifacts included."""
    with tracking_server(tmp_path) as address:
        sink = tool_sink("mlflow", address)
        send_run(run, sink)
        client = mlflow.MlflowClient(tracking_uri=address)
        made = client.get_run(sink.run_id)
        losses = history(client, sink.run_id, "training/loss")
        names = {file.path for file in client.list_artifacts(sink.run_id, "smdebug")}
        with pytest.raises(SinkRefused, match=r"No experiment|not exist|not found"):
            MlflowSink(address, "0" * 32).begin(RUN)  # the run of somebody's script, which was deleted
    assert made.info.status == "FINISHED"
    assert "NaN" in made.data.tags["smdebug.problem.1"]
    assert list(losses) == list(range(30))
    assert math.isnan(losses[25])
    assert names == {"smdebug/report.html", "smdebug/diagnosis.json"}
    assert sink.notes == []


def test_what_the_run_has_logged_arrives_as_files(run, store):
    sink = MlflowSink(store)
    sink.begin(RUN)
    sink.send([FILE])
    sink.end()
    client = mlflow.MlflowClient(tracking_uri=store)
    (file,) = client.list_artifacts(sink.run_id, "smdebug/logged/a")
    assert (file.path, file.file_size) == (f"smdebug/{FILE.path}", len(FILE.data))
    assert sink.notes == []


def test_names_that_mlflow_forbids_are_mapped_and_said(store):
    sink = MlflowSink(store)
    sink.begin(RUN)
    names = ["loss[0]", "loss(0)", "a//b", "../up", "x/../y", "end/", "n" * 300, "layer:0", "größe"]
    sink.send([NumbersRecord(0, "training", 1.0, {name: float(at) for at, name in enumerate(names)})])
    sink.end()
    metrics = mlflow.MlflowClient(tracking_uri=store).get_run(sink.run_id).data.metrics
    assert sorted(metrics.values()) == [float(at) for at in range(len(names))]
    assert any("does not allow all names" in note and "loss[0]" in note for note in sink.notes)


def test_more_numbers_than_a_request_takes_arrive_all(store):
    sink = MlflowSink(store)
    sink.begin(RUN)
    numbers = {f"n{at}": float(at) for at in range(2500)}
    sink.send([NumbersRecord(0, "training", 1.0, numbers)])
    sink.end()
    metrics = mlflow.MlflowClient(tracking_uri=store).get_run(sink.run_id).data.metrics
    assert metrics == {f"training/{name}": value for name, value in numbers.items()}


def test_infinity_is_said_to_be_kept_as_a_number(store):
    sink = MlflowSink(store)
    sink.begin(RUN)
    sink.send([NumbersRecord(0, "training", 1.0, {"loss": math.inf})])
    sink.end()
    (value,) = mlflow.MlflowClient(tracking_uri=store).get_run(sink.run_id).data.metrics.values()
    assert value == pytest.approx(1.7976931348623157e308)
    assert sink.notes == ["MLflow's databases keep infinity as the largest number, 1.8e308"]


def test_a_resolved_problem_keeps_its_tag(store):
    sink = MlflowSink(store)
    sink.begin(RUN)
    sink.send([OPENED])
    sink.send([RESOLVED])
    sink.end(is_complete=False)
    made = mlflow.MlflowClient(tracking_uri=store).get_run(sink.run_id)
    assert made.data.tags["smdebug.problem.1"].startswith("Resolved at step 80: Gradients vanish")
    assert "smdebug.problem.2" not in made.data.tags
    assert made.info.status == "FAILED"


def test_a_run_of_the_script_is_used_and_its_losses_are_not_logged_twice(tmp_path, store):
    done = subprocess.run(
        [sys.executable, "-c", TRAINING, str(tmp_path / "run")],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "MLFLOW_TRACKING_URI": store},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    run_id = done.stdout.split()[-1]
    client = mlflow.MlflowClient(tracking_uri=store)
    # The process beside the training may go on for a while; its last act is the report.
    wait_until(
        lambda: "smdebug/report.html" in {file.path for file in client.list_artifacts(run_id, "smdebug")}
    )
    made = client.get_run(run_id)
    assert len(history(client, run_id, "loss")) == 30
    assert {name for name in made.data.metrics if "loss" in name} == {"loss"}
    assert "smdebug/training/weight/rms" in made.data.metrics
    assert "NaN" in made.data.tags["smdebug.problem.1"]
    assert (
        len(client.search_runs([made.info.experiment_id], f"tags.`smdebug.path` = '{tmp_path / 'run'}'")) == 1
    )


@contextmanager
def server(status: int, release: threading.Event | None = None, body: bytes = b"no") -> Iterator[str]:
    """A server that gives every request the same answer, or none until it is released."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            if release is not None:
                release.wait(60)
                return
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=listening.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listening.server_port}"
    finally:
        if release is not None:
            release.set()
        listening.shutdown()
        listening.server_close()


@pytest.mark.parametrize(
    ("status", "error", "text"),
    [
        (401, SinkRefused, r"refuses the credentials \(401\).*MLFLOW_TRACKING_TOKEN"),
        (403, SinkRefused, r"refuses the credentials \(403\)"),
        (404, SinkRefused, "no tracking server of MLflow, or one that is too old"),
        (500, SinkUnavailable, "cannot be reached"),
    ],
)
def test_what_a_server_answers_decides_who_has_to_act(monkeypatch, status, error, text):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with server(status) as address, pytest.raises(error, match=text):
        MlflowSink(address).begin(RUN)


@pytest.mark.parametrize(
    ("status", "body", "error", "text"),
    [
        (
            401,
            b'{"message": "Unauthorized"}',
            SinkRefused,
            r"refuses the credentials \(401\).*MLFLOW_TRACKING",
        ),
        (403, b'{"message": "Forbidden"}', SinkRefused, r"refuses the credentials \(403\)"),
        (404, b'{"detail": "Not Found"}', SinkRefused, "no tracking server of MLflow"),
        (
            503,
            b'{"message": "Service Unavailable"}',
            SinkUnavailable,
            "cannot be reached|Service Unavailable",
        ),
        (
            404,
            b'{"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "Run x not found"}',
            SinkRefused,
            "Run x not found",
        ),
    ],
)
def test_what_a_gateway_answers_in_json_is_not_taken_for_the_server(monkeypatch, status, body, error, text):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with server(status, body=body) as address, pytest.raises(error, match=text):
        MlflowSink(address).begin(RUN)


def test_a_server_that_is_down_or_hangs_is_unavailable(monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")
    with server(200) as address:
        pass
    with pytest.raises(SinkUnavailable, match="cannot be reached"):
        MlflowSink(address).begin(RUN)
    with server(200, threading.Event()) as address, pytest.raises(SinkUnavailable, match="too slowly"):
        MlflowSink(address).begin(RUN)


def test_a_client_that_is_too_old_is_refused_with_the_version(monkeypatch):
    monkeypatch.setattr(mlflow, "__version__", "1.30.0")
    with pytest.raises(SinkRefused, match=r"too old, 1\.30\.0"):
        MlflowSink("sqlite:///x.db").begin(RUN)
