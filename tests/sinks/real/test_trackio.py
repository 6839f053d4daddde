"""trackio on this machine: its own command and its own client read back what the sink logged."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from smdebug.exceptions import SinkRefused, SinkUnavailable
from smdebug.sinks.targets.trackio import TrackioSink
from tests.sinks.made import RUN, failing_run
from tests.sinks.servers import trackio_server

trackio = pytest.importorskip("trackio", reason="make test-sinks runs it")
pytestmark = pytest.mark.filterwarnings("default")  # those of trackio


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder of trackio, which it reads once in a process."""
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    return tmp_path / "trackio"


def sent(run: Path, *, times: int = 1) -> None:
    """Export the run in processes of their own."""
    command = [sys.executable, "-m", "smdebug.cli", "export", "trackio", str(run), "--to", "debugging"]
    for _ in range(times):
        done = subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=300)
        assert done.returncode == 0, done.stderr


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


def asked(*words: str) -> Any:
    """What trackio's own command answers."""
    command = [str(Path(sys.executable).with_name("trackio")), *words, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def values(metric: str) -> dict[int, float]:
    answer = asked("get", "metric", "--project", "debugging", "--run", "run-a", "--metric", metric)
    return {row["step"]: row["value"] for row in answer["values"]}


def alerts() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = asked("get", "alerts", "--project", "debugging")["alerts"]
    return found


def test_a_run_arrives_with_its_numbers_an_alert_the_diagnosis_and_the_report(tmp_path, place):
    sent(failing_run(tmp_path / "run-a"))
    losses = values("training/loss")
    assert list(losses) == list(range(30))
    assert losses[0] == 1.0
    assert math.isnan(losses[25])
    assert values("validation/loss") == {9: 110.0, 19: 120.0, 29: 130.0}
    assert values("problems") == {29: 1}
    (alert,) = alerts()
    assert "NaN" in alert["title"]
    assert "Try: " in alert["text"]
    assert alert["level"] == "warn"
    reports = asked("get", "report", "--project", "debugging", "--run", "run-a", "--report", "diagnosis")
    assert "1 problem" in json.dumps(reports)
    artifact = asked("get", "artifact", "--project", "debugging", "--name", "smdebug-report")
    assert "report.html" in json.dumps(artifact)


def test_another_export_sends_no_alert_again(tmp_path, place):
    sent(failing_run(tmp_path / "run-a"), times=2)
    runs = asked("list", "runs", "--project", "debugging")
    assert json.dumps(runs).count("run-a") >= 2
    assert len(alerts()) == 1


TRAINING = """
import sys
import smdebug, trackio
from tests.sinks import made

run = trackio.init(project="p", name="mine", embed=False)
hook_class = smdebug.Hook
smdebug.Hook = lambda place, **options: hook_class(place, sinks=["trackio"], **options)
for step in range(5):
    run.log({"loss": float(step)}, step=step)
made.failing_run(sys.argv[1])
run.log({"loss": 5.0}, step=5)
trackio.finish()
"""


def test_the_run_of_a_script_is_left_alone_and_ours_is_in_the_same_project(tmp_path, place):
    done = subprocess.run(
        [sys.executable, "-c", TRAINING, str(tmp_path / "run-a")],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=300,
    )
    assert done.returncode == 0, done.stderr

    def of(run: str, metric: str) -> list[float]:
        answer = asked("get", "metric", "--project", "p", "--run", run, "--metric", metric)
        return [row["value"] for row in answer["values"]]

    assert of("mine", "loss") == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert len(of("run-a", "training/loss")) == 30
    (alert,) = asked("get", "alerts", "--project", "p")["alerts"]
    assert (alert["run"], "NaN" in alert["title"]) == ("run-a", True)


def test_a_server_of_ones_own_gets_the_run_with_the_right_token_alone(tmp_path, place, monkeypatch):
    run = failing_run(tmp_path / "run-a")
    with trackio_server(tmp_path / "server", "right") as address:
        monkeypatch.setenv("TRACKIO_SERVER_URL", address)
        monkeypatch.setenv("TRACKIO_WRITE_TOKEN", "wrong")
        with pytest.raises(SinkRefused, match=r"refuses the credentials: set TRACKIO_WRITE_TOKEN$"):
            TrackioSink().begin(RUN)
        monkeypatch.setenv("TRACKIO_WRITE_TOKEN", "right")
        sent(run)
        monkeypatch.delenv("TRACKIO_SERVER_URL")  # its own command reads the folder of the server
        monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "server"))
        losses = values("training/loss")
        (alert,) = alerts()
    assert list(losses) == list(range(30))
    assert math.isnan(losses[25])
    assert "NaN" in alert["title"]


def test_a_server_that_is_away_is_not_begun_with(monkeypatch, place):
    """trackio would wait for a minute, and an alert that it keeps counts as sent."""
    monkeypatch.setenv("TRACKIO_SERVER_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("TRACKIO_WRITE_TOKEN", "any")
    with pytest.raises(SinkUnavailable, match="cannot be reached"):
        TrackioSink().begin(RUN)
    assert not place.exists()


def test_a_client_that_is_too_old_is_refused_with_the_version(monkeypatch):
    monkeypatch.setattr(trackio, "__version__", "0.9.1")
    with pytest.raises(SinkRefused, match=r"too old, 0\.9\.1"):
        TrackioSink().begin(RUN)
