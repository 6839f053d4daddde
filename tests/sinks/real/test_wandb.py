"""W&B offline: its own messages, read from its own file, hold what the sink logged."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from smdebug.exceptions import SinkRefused, SinkUnavailable
from smdebug.export.sending import send_run, tool_sink
from smdebug.importing.formats.leveldb_log import records_in
from smdebug.importing.records import Details
from smdebug.sinks.targets.wandb import WandbSink
from tests.sinks.collector import collector
from tests.sinks.made import FILE, RUN, failing_run

wandb = pytest.importorskip("wandb", reason="make test-sinks runs it")
pytestmark = pytest.mark.filterwarnings("default")  # those of W&B

TRAINING = """
import sys
import smdebug, wandb
from tests.sinks import made

run = wandb.init(project="p", settings=wandb.Settings(silent=True, console="off"))
hook_class = smdebug.Hook
smdebug.Hook = lambda place, **options: hook_class(place, sinks=["wandb"], **options)
for step in range(5):
    run.log({"loss": float(step)}, step=step)
made.failing_run(sys.argv[1])
for step in range(5, 10):
    run.log({"loss": float(step)}, step=step)
run.finish()
"""


def messages(folder: Path) -> Iterator[Any]:
    """Yield the messages of the only run in the folder, once W&B's own process has written all of them."""
    wandb.teardown()
    from wandb.proto import wandb_internal_pb2

    (file,) = folder.glob("wandb/offline-run-*/*.wandb")
    for content in records_in(file, Details()):
        yield wandb_internal_pb2.Record.FromString(content)


def rows(found: list[Any]) -> list[dict[str, Any]]:
    return [
        {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in record.history.item}
        for record in found
        if record.WhichOneof("record_type") == "history"
    ]


def of(found: list[Any], kind: str) -> list[Any]:
    return [getattr(record, kind) for record in found if record.WhichOneof("record_type") == kind]


def summary(found: list[Any]) -> dict[str, Any]:
    return {
        item.key or "/".join(item.nested_key): json.loads(item.value_json)
        for update in of(found, "summary")
        for item in update.update
    }


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_MODE", "offline")


def test_a_run_arrives_with_its_numbers_an_alert_and_the_report(tmp_path, offline):
    run = failing_run(tmp_path / "run-a")
    sink = tool_sink("wandb", "debugging")
    assert send_run(run, sink).problems == 1
    found = list(messages(tmp_path))
    (made,) = of(found, "run")
    assert (made.project, made.display_name) == ("debugging", "run-a")
    logged = rows(found)
    training = {row["training_step"]: row["training/loss"] for row in logged if "training/loss" in row}
    assert list(training) == list(range(30))
    assert training[0] == 1.0
    assert training[25] != training[25] or training[25] == "NaN"
    validation = {row["training_step"]: row["validation/loss"] for row in logged if "validation/loss" in row}
    assert validation == {9: 110.0, 19: 120.0, 29: 130.0}
    (alert,) = of(found, "alert")
    assert "NaN" in alert.title
    assert "Try: " in alert.text
    assert alert.level == "WARN"
    assert summary(found)["problems"] == 1
    assert "1 problem" in summary(found)["diagnosis"]
    assert any(file.path == "smdebug-report.html" for files in of(found, "files") for file in files.files)
    assert any("wandb sync" in note for note in sink.notes)


def test_another_export_to_the_project_sends_no_alert_again(tmp_path, offline, monkeypatch):
    run = failing_run(tmp_path / "run-a")
    for project, alerts in (("debugging", 1), ("debugging", 0), ("other", 1)):
        folder = tmp_path / f"{project}-{alerts}"
        folder.mkdir()
        monkeypatch.chdir(folder)
        send_run(run, tool_sink("wandb", project))
        found = list(messages(folder))
        assert len(of(found, "alert")) == alerts
        assert summary(found)["problems"] == 1


def execute(script: str, run: Path) -> subprocess.CompletedProcess[str]:
    """Execute a script that saves this run, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", script, str(run)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done


def test_a_run_of_the_script_keeps_its_rows_and_gets_the_rest(tmp_path, offline):
    execute(TRAINING, tmp_path / "run")
    found = list(messages(tmp_path))
    logged = rows(found)
    assert [row["loss"] for row in logged] == [float(step) for step in range(10)]
    assert [row["_step"] for row in logged] == list(range(10))
    names = {name for row in logged for name in row if name.startswith("smdebug/")}
    assert "smdebug/training/weight/rms" in names
    assert not any("loss" in name for name in names)
    (alert,) = of(found, "alert")
    assert "NaN" in alert.title
    assert summary(found)["smdebug/problems"] == 1


LEFT_OPEN = """
import sys
import smdebug, wandb

hook = smdebug.Hook(sys.argv[1], sinks=["wandb"], system_metrics=False)  # before W&B begins, as callbacks are
run = wandb.init(project="p", settings=wandb.Settings(silent=True, console="off"))
for step in range(30):
    with hook.step():
        hook.record("loss", float("nan") if step >= 20 else 1.0)
    run.log({"loss": 1.0}, step=step)
"""


def test_a_run_that_the_process_ends_gets_what_was_found_before_its_own_end(tmp_path, offline):
    done = execute(LEFT_OPEN, tmp_path / "run")
    found = list(messages(tmp_path))
    (alert,) = of(found, "alert")
    assert "NaN" in alert.title
    assert summary(found)["smdebug/problems"] == 1
    assert "did not arrive" not in done.stdout + done.stderr


def test_missing_credentials_are_refused_with_both_ways_out():
    with pytest.raises(SinkRefused, match=r"set WANDB_API_KEY, or WANDB_MODE=offline"):
        WandbSink().begin(RUN)


@pytest.mark.parametrize("of_script", [False, True])
def test_wandb_that_is_switched_off_is_said_with_the_way_out(run, monkeypatch, of_script):
    monkeypatch.setenv("WANDB_MODE", "disabled")
    sink = WandbSink(run=wandb.init()) if of_script else tool_sink("wandb")
    with pytest.raises(SinkRefused, match="switched off: unset WANDB_MODE"):
        send_run(str(run), sink)


def test_a_server_that_cannot_be_reached_is_unavailable(monkeypatch):
    monkeypatch.setenv("WANDB_API_KEY", "0" * 40)
    monkeypatch.setenv("WANDB_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setattr("smdebug.sinks.targets.wandb._SECONDS_TO_BEGIN", 3)
    with pytest.raises(SinkUnavailable, match="cannot be reached"):
        WandbSink().begin(RUN)


@pytest.mark.parametrize(
    "body",
    [b'{"errors": [{"message": "user is not logged in"}]}', b'{"message": "Unauthorized"}'],
    ids=["W&B", "a gateway"],
)
def test_refused_credentials_are_named_and_not_tried_again(monkeypatch, body):
    monkeypatch.setenv("WANDB_API_KEY", "0" * 40)
    with collector(401, body) as gateway:
        monkeypatch.setenv("WANDB_BASE_URL", gateway.address)
        with pytest.raises(SinkRefused, match="refuses the credentials: set WANDB_API_KEY"):
            WandbSink().begin(RUN)


def test_a_client_that_is_too_old_is_refused_with_the_version(monkeypatch):
    monkeypatch.setattr(wandb, "__version__", "0.15.3")
    with pytest.raises(SinkRefused, match=r"too old, 0\.15\.3"):
        WandbSink().begin(RUN)


@pytest.fixture(autouse=True)
def forget_settings() -> Iterator[None]:
    """W&B reads its environment once in a process."""
    yield
    wandb.teardown()


def test_what_the_run_has_logged_arrives_as_files(tmp_path, offline):
    sink = WandbSink("debugging")
    sink.begin(RUN)
    sink.send([FILE])
    sink.end()
    saved = [file.path for files in of(list(messages(tmp_path)), "files") for file in files.files]
    assert f"smdebug/{FILE.path}" in saved
