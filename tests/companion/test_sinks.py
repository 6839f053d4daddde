"""A training with sinks: another process delivers what it found, and the training is as without."""

from __future__ import annotations

import io
import math
import os
import subprocess
import sys
import threading
import types
from dataclasses import replace

import smdebug
from smdebug.companion import sinks as feeds
from smdebug.runs.evaluation.following import Following
from smdebug.runs.opening import open_run
from smdebug.saving.process.sinks import ScriptRuns
from smdebug.sinks.pipe import PipeSink, deliver_from
from smdebug.sinks.records import (
    DiagnosisRecord,
    IssueRecord,
    NumbersRecord,
    ReportRecord,
    RunRecord,
    from_line,
)
from smdebug.sinks.sink import SinkChoice
from smdebug.sinks.targets.json_lines import LineSink
from tests.sinks.made import DIAGNOSIS, NUMBERS, OPENED, RUN, failing_run

TRAINING = """
import sys
import smdebug
from tests.sinks import made

hook_class = smdebug.Hook
smdebug.Hook = lambda place, **options: hook_class(place, sinks=sys.argv[2:], **options)
made.failing_run(sys.argv[1])
"""


def test_a_hook_with_sinks_delivers_its_run_while_it_trains(tmp_path):
    file = tmp_path / "records.jsonl"
    done = subprocess.run(
        [sys.executable, "-c", TRAINING, str(tmp_path / "run"), f"jsonl:{file}"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    first, *records = [from_line(line) for line in file.read_text().splitlines()]
    assert isinstance(first, RunRecord)
    assert first.path == str(tmp_path / "run")
    losses = {
        (record.mode, record.step): record.values["loss"]
        for record in records
        if isinstance(record, NumbersRecord) and "loss" in record.values
    }
    assert {step for mode, step in losses if mode == "training"} == set(range(30))
    assert {step: value for (mode, step), value in losses.items() if mode == "validation"} == {
        9: 110.0,
        19: 120.0,
        29: 130.0,
    }
    assert math.isnan(losses["training", 20])
    (opened,) = [record for record in records if isinstance(record, IssueRecord)]
    assert opened.state == "opened"
    assert "NaN" in opened.title
    last = records[-1]
    assert isinstance(last, DiagnosisRecord)
    assert last.issues == (opened.issue,)


def test_a_sink_that_cannot_be_written_is_mentioned_and_the_run_is_whole(tmp_path):
    (tmp_path / "file").write_text("")
    done = subprocess.run(
        [sys.executable, "-c", TRAINING, str(tmp_path / "run"), f"jsonl:{tmp_path / 'file' / 'a.jsonl'}"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "a.jsonl: it cannot be written: File exists" in done.stderr
    assert f"Send it again: smdebug export jsonl {tmp_path / 'run'}" in done.stderr
    assert len(smdebug.diagnose(str(tmp_path / "run")).issues) == 1


def test_a_tool_that_hangs_keeps_no_other_from_ending_its_run(tmp_path, monkeypatch):
    release, ended = threading.Event(), threading.Event()

    class Hanging(LineSink):
        def begin(self, run: RunRecord) -> None:
            assert release.wait(60)

    class Ending(LineSink):
        def end(self, *, is_complete: bool = True) -> None:
            super().end(is_complete=is_complete)
            ended.set()

    kinds = {"otlp": Hanging, "jsonl": Ending}
    monkeypatch.setattr(
        feeds, "sink_for", lambda choice, **_: kinds[choice.name](str(tmp_path / choice.target))
    )
    said: list[str] = []
    feed = feeds.SinkFeed([{"name": "otlp", "target": "h"}, {"name": "jsonl", "target": "a"}], said.append)
    following = Following(open_run(failing_run(tmp_path / "run")))
    feed.advance(following, following.advance())
    finishing = threading.Thread(target=feed.finish, args=(following, 60.0))
    finishing.start()
    try:
        assert ended.wait(50)
    finally:
        release.set()
        finishing.join()


def test_the_report_goes_to_the_tools_that_keep_files_alone(tmp_path, monkeypatch):
    received: dict[str, list[type]] = {"otlp": [], "mlflow": []}

    class Receiving(LineSink):
        def send(self, records):
            received[self.place] += [type(record) for record in records]

    monkeypatch.setattr(feeds, "sink_for", lambda choice, **_: Receiving(choice.name))
    monkeypatch.chdir(tmp_path)
    feed = feeds.SinkFeed([{"name": name, "target": ""} for name in received], print)
    following = Following(open_run(failing_run(tmp_path / "run")))
    feed.advance(following, following.advance())
    feed.finish(following)
    assert [ReportRecord in of for of in received.values()] == [False, True]
    assert all(DiagnosisRecord in of for of in received.values())


class OpenRun:
    """A run that a script has open in W&B."""

    id = "abc"
    url = "https://wandb.ai/me/p/runs/abc"
    offline = False
    dir = "/tmp/run/files"
    project = "p"

    def __init__(self):
        self.rows: list[tuple[dict, bool]] = []
        self.alerts: list[dict] = []
        self.summary: dict = {}
        self.config = types.SimpleNamespace(update=lambda *_, **__: None)
        self.is_finished = False

    def define_metric(self, *_, **__):
        pass

    def log(self, row, commit):
        self.rows.append((row, commit))

    def alert(self, **alert):
        self.alerts.append(alert)

    def finish(self, **_):
        self.is_finished = True


def test_the_run_that_a_script_has_open_in_wandb_is_used_within_the_script(monkeypatch, tmp_path):
    run = OpenRun()
    monkeypatch.setitem(sys.modules, "wandb", types.SimpleNamespace(run=run))
    found = ScriptRuns([SinkChoice("wandb"), SinkChoice("jsonl", "a.jsonl")], "/data/run-a")
    assert found.needs_pipe
    assert [setting.get("relayed") for setting in found.settings] == ["yes", None]

    pipe = io.BytesIO(b"what a rule has printed\n")
    pipe.seek(0, io.SEEK_END)
    pipe.close = lambda: None  # type: ignore[method-assign]
    sink = PipeSink(pipe, "W&B")
    sink.begin(replace(RUN, path=str(tmp_path)))
    sink.send([NUMBERS, OPENED, DIAGNOSIS])
    pipe.seek(0)
    found.deliver_from(pipe)
    found.finish(30.0)

    ((row, commits),) = run.rows
    assert not commits  # the script's own rows keep their steps
    assert row == {
        "smdebug/training/gradient/fc.weight/rms": 0.5,
        "smdebug/training/gradient/fc.weight/non_finite": 1.0,
        "smdebug/training_step": 40,
    }  # and no loss, which the script logs itself
    (alert,) = run.alerts
    assert alert["title"] == "Gradients vanish, since step 40"
    assert "Try: Add a residual connection" in alert["text"]
    assert run.summary["smdebug/problems"] == 1
    assert not run.is_finished


def test_a_run_in_trackio_joins_the_project_that_the_script_has_open(monkeypatch):
    monkeypatch.delitem(sys.modules, "trackio.context_vars", raising=False)
    assert ScriptRuns([SinkChoice("trackio")], "/data/run-a").settings[0]["target"] == ""
    project = types.SimpleNamespace(get=lambda: "mine")
    monkeypatch.setitem(sys.modules, "trackio.context_vars", types.SimpleNamespace(current_project=project))
    for target, expected in (("", "mine"), ("other", "other")):
        (setting,) = ScriptRuns([SinkChoice("trackio", target)], "/data/run-a").settings
        assert setting == {"name": "trackio", "target": expected}


def test_without_an_open_run_the_tool_is_left_to_the_other_process(monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", types.SimpleNamespace(run=None))
    found = ScriptRuns([SinkChoice("wandb", "project")], "/data/run-a")
    assert not found.needs_pipe
    assert found.settings == [{"name": "wandb", "target": "project"}]


def test_the_active_run_of_mlflow_is_named_with_its_server(monkeypatch):
    active = types.SimpleNamespace(info=types.SimpleNamespace(run_id="r1"))
    tool = types.SimpleNamespace(active_run=lambda: active, get_tracking_uri=lambda: "http://host:5000")
    monkeypatch.setitem(sys.modules, "mlflow", tool)
    (setting,) = ScriptRuns([SinkChoice("mlflow")], "/data/run-a").settings
    assert setting == {"name": "mlflow", "run_id": "r1", "target": "http://host:5000"}


def test_a_tool_that_fails_when_it_is_asked_for_its_run_stops_nothing(monkeypatch):
    def fail():
        raise RuntimeError("no context")

    monkeypatch.setitem(sys.modules, "mlflow", types.SimpleNamespace(active_run=fail))
    (setting,) = ScriptRuns([SinkChoice("mlflow", "http://host")], "/data/run-a").settings
    assert setting == {"name": "mlflow", "target": "http://host"}


def test_a_pipe_without_records_delivers_nothing():
    run = OpenRun()
    deliver_from(io.BytesIO(b"text\n{}\n"), object(), print, "", 1.0)  # type: ignore[arg-type]
    assert run.rows == []


def test_the_made_run_is_what_these_tests_say(tmp_path):
    assert smdebug.diagnose(str(failing_run(tmp_path / "run"))).issues
