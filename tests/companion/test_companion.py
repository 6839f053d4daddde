"""An evaluation beside the training: another process that reads the run's own files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

import smdebug
from smdebug.exceptions import SMDebugTypeError, SMDebugValueError
from smdebug.trials import create_trial

TRAINING = """
import os, sys, time
import smdebug

place, spike, *options = sys.argv[1:]
hook = smdebug.Hook(
    place, save_all=True, save_config=smdebug.SaveConfig(save_interval=1), look_for_stop=0,
    rules=[{"rule": "ExplodingTensor", "actions": [{"name": "stoptraining"}] if "stop" in options else []}],
    evaluate="here", alerts=[option for option in options if "://" in option],
)
print(os.getpid(), flush=True)
with hook:
    for step in range(1_000_000):
        with hook.step():
            hook.record("loss", float("nan") if str(step) == spike else 1 / (step + 1))
        if "endless" not in options and step >= 20:
            break
        if step >= 20:
            time.sleep(0.02)
"""


@pytest.fixture
def train(tmp_path) -> Iterator[Any]:
    started: list[subprocess.Popen[str]] = []

    def run(*options: str, **environment: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", TRAINING, str(tmp_path / "run"), *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
        )
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def inbox() -> Iterator[Any]:
    """A web service that stores what is sent to it."""
    received: list[dict[str, Any]] = []

    class Service(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.append({"token": self.headers.get("token"), **json.loads(body)})
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Service)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    server.received = received
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_problem_is_printed_before_the_training_has_returned(train, tmp_path):
    process = train("7")
    output, errors = process.communicate(timeout=100)
    assert process.returncode == 0, errors
    assert f"smdebug: {tmp_path / 'run'}: Values explode, at step 7" in errors
    assert "    Try " in errors
    assert f"1 problem detected in 21 saved steps. Again: smdebug evaluate {tmp_path / 'run'}" in errors
    assert "smdebug: " not in output


def test_a_healthy_training_gets_one_line(train, tmp_path):
    _, errors = train("none").communicate(timeout=100)
    lines = [line for line in errors.splitlines() if line.startswith("smdebug")]
    assert lines == [
        f"smdebug: {tmp_path / 'run'}: 3 rules passed in 21 saved steps. "
        f"Again: smdebug evaluate {tmp_path / 'run'}"
    ]


def test_a_rule_with_that_action_stops_the_training(train):
    process = train("7", "endless", "stop")
    _, errors = process.communicate(timeout=100)
    assert "smdebug: stop requested: Values explode, at step 7" in errors
    assert "The script does not catch TrainingStopped" in errors.splitlines()[-1]
    assert "Traceback" not in errors
    assert process.returncode == 1


def test_an_alert_is_sent_once_per_problem_with_its_secret_from_the_environment(train, inbox):
    address = f"json://127.0.0.1:{inbox.server_port}/?+token=$ALERT_TOKEN"
    process = train("7", address, ALERT_TOKEN="top-secret")
    output, errors = process.communicate(timeout=100)
    (alert,) = inbox.received
    assert alert["title"].endswith("Values explode, at step 7")
    assert "Try " in alert["message"]
    assert alert["token"] == "top-secret"
    assert "top-secret" not in output + errors


def test_an_address_that_fails_is_named_by_its_scheme_alone(train, inbox):
    port = inbox.server_port
    inbox.shutdown()
    inbox.server_close()
    process = train("7", f"json://127.0.0.1:{port}/secret-path", "slack://$NO_SUCH_TOKEN")
    _, errors = process.communicate(timeout=100)
    assert process.returncode == 0
    assert "no alerts to slack://: the environment has no NO_SUCH_TOKEN" in errors
    assert "an alert to json:// was not accepted" in errors
    assert "secret-path" not in errors


def test_it_ends_when_the_training_is_killed(train, tmp_path):
    process = train("7", "endless")
    process.stdout.readline()
    for line in process.stderr:
        if "Values explode, at step 7" in line:
            break
    process.send_signal(signal.SIGKILL)
    # The pipe of stderr ends when its last holder has: the process beside the training.
    assert "1 problem detected" in process.stderr.read()


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"evaluate": "there"}, SMDebugValueError, 'evaluate must be "here"'),
        ({"alerts": ["json://host"]}, SMDebugValueError, 'add evaluate="here"'),
        ({"evaluate": "here", "alerts": ["hunter2"]}, SMDebugValueError, "not text without ://"),
        ({"evaluate": "here", "alerts": [7]}, SMDebugValueError, "not int"),
        ({"evaluate": "here", "alerts": 7}, SMDebugTypeError, "must be a list"),
        ({"rule_file": __file__}, SMDebugValueError, 'add evaluate="here"'),
        ({"evaluate": True, "rule_file": "no.py"}, SMDebugValueError, "there is no file no.py"),
    ],
)
def test_what_cannot_work_is_refused_before_the_training(tmp_path, options, error, text):
    with pytest.raises(error, match=text) as refused:
        smdebug.Hook(str(tmp_path / "run"), **options)
    assert "hunter2" not in str(refused.value)


def test_a_run_in_memory_cannot_be_read_by_another_process():
    with pytest.raises(SMDebugValueError, match="Save to a folder or to S3"):
        smdebug.Hook("memory://here", evaluate=True)


def test_a_run_without_a_step_is_not_called_healthy(tmp_path, capfd):
    with smdebug.Hook(str(tmp_path / "run"), evaluate=True):
        pass
    assert "nothing was checked in 0 saved steps" in capfd.readouterr().err


def test_an_evaluation_that_died_is_reported_once_and_the_training_continues(tmp_path, capsys):
    with smdebug.Hook(str(tmp_path / "run"), evaluate="here") as hook:
        with hook.step():
            hook.record("loss", 1.0)
        process = hook.companion._process
        process.kill()
        process.wait()
        for _ in range(5):
            with hook.step():
                hook.record("loss", 1.0)
    printed = capsys.readouterr().out
    assert printed.count("has ended early (signal 9); the training continues") == 1
    assert f"smdebug evaluate {tmp_path / 'run'}" in printed
    assert len(create_trial(str(tmp_path / "run")).steps()) == 6


def test_rules_that_cannot_be_read_are_reported_once(tmp_path, capfd):
    place = tmp_path / "run"
    with smdebug.Hook(str(place), evaluate="here") as hook:
        place.mkdir(exist_ok=True)
        (place / "rules.json").write_text("{")
        for _ in range(5):
            with hook.step():
                hook.record("loss", 1.0)
    errors = capfd.readouterr().err
    assert errors.count(f"smdebug: {place} cannot be evaluated now: ") == 1
    assert "rules.json" in errors


RULES = """
from smdebug.rules import Finding, Rule

class HighLoss(Rule):
    def invoke_at_step(self, step):
        print("of the rule")
        loss = self.base_trial.tensor("loss").reduction_value(step, "mean")
        if loss > 2:
            self.findings.append(Finding("loss", "value", float(loss), 2.0))
        return loss > 2

class Fails(Rule):
    def invoke_at_step(self, step):
        raise KeyError("\\x1b[31m")
"""


def test_the_rules_of_a_file_are_evaluated_and_one_that_fails_stops_no_other(tmp_path, capfd, monkeypatch):
    (tmp_path / "own rules.py").write_text(RULES)
    monkeypatch.chdir(tmp_path)
    config = smdebug.SaveConfig(save_interval=1)
    with smdebug.Hook("run", save_config=config, evaluate="here", rule_file="own rules.py") as hook:
        monkeypatch.chdir("/")  # a relative path is that of the script when the hook was made
        for loss in (1.0, 3.0):
            with hook.step():
                hook.record("loss", loss)
    printed = capfd.readouterr()
    assert f"smdebug: {tmp_path / 'run'}: HighLoss, at step 1" in printed.err
    assert "smdebug: Fails failed: at step 0: KeyError: '\\x1b[31m'" in printed.err
    assert f"--rule-file '{tmp_path / 'own rules.py'}'" in printed.err
    assert "of the rule" not in printed.out + printed.err


def test_a_rule_of_the_file_stops_the_training_by_its_action(tmp_path, capfd):
    (tmp_path / "own.py").write_text(RULES)
    with (
        smdebug.Hook(
            str(tmp_path / "run"),
            rules=[{"rule": "HighLoss", "actions": [{"name": "stoptraining"}]}],
            rule_file=tmp_path / "own.py",
            evaluate="here",
        ) as hook,
        hook.step(),
    ):
        hook.record("loss", 3.0)
    errors = capfd.readouterr().err
    assert "smdebug: stop requested: HighLoss, at step 0" in errors
    assert (tmp_path / "run" / "control" / "stop").exists()


def test_a_file_that_cannot_be_loaded_leaves_the_other_rules(tmp_path, capfd):
    (tmp_path / "own.py").write_text("import no_such_module")
    with (
        smdebug.Hook(
            str(tmp_path / "run"),
            rules=["ExplodingTensor", "NoSuchRule"],
            save_all=True,
            rule_file=tmp_path / "own.py",
            evaluate=True,
        ) as hook,
        hook.step(),
    ):
        hook.record("loss", float("nan"))
    errors = capfd.readouterr().err
    assert "own.py cannot be loaded: ModuleNotFoundError" in errors
    assert "Values explode, at step 0" in errors
    assert "smdebug: NoSuchRule failed: There is no built-in rule" in errors
    assert "1 problem detected in 1 saved step" in errors


def test_what_fails_unexpectedly_is_one_line_and_not_a_traceback(tmp_path, capfd, monkeypatch):
    (tmp_path / "smdebug_rules").mkdir()  # a package of the user's that hides the library's rules
    (tmp_path / "smdebug_rules" / "__init__.py").write_text("raise RuntimeError('hidden')")
    monkeypatch.syspath_prepend(str(tmp_path))
    with smdebug.Hook(str(tmp_path / "run"), evaluate="here") as hook, hook.step():
        hook.record("loss", 1.0)
    printed = capfd.readouterr()
    assert "cannot be evaluated beside the training: RuntimeError: hidden" in printed.err
    assert "Traceback" not in printed.err
    assert "has ended early (exit code 1)" in printed.out


def is_running(process):
    """Whether there is such a process, and it has not ended."""
    with suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


STARTS_SLOWLY = """
import sys, time
if "rule_process" in " ".join(sys.orig_argv):
    time.sleep(5.0)
"""
HANGS = """
import os, time
from pathlib import Path
from smdebug.rules import Rule

class Hangs(Rule):
    def invoke_at_step(self, step):
        Path(__file__).with_name("process").write_text(str(os.getpid()))
        while True:
            time.sleep(60)
"""


def test_a_rule_that_hangs_is_given_up_when_the_training_has_ended(tmp_path):
    (tmp_path / "own.py").write_text(HANGS)
    # A busy machine, on which the rule's process starts more slowly than the patience lasts.
    (tmp_path / "sitecustomize.py").write_text(STARTS_SLOWLY)
    with smdebug.Hook(str(tmp_path / "run")) as hook, hook.step():
        hook.record("loss", 1.0)
    settings = {"place": str(tmp_path / "run"), "rule_file": str(tmp_path / "own.py")}
    companion = subprocess.Popen(
        [sys.executable, "-m", "smdebug.companion"],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])},
    )
    _, errors = companion.communicate(json.dumps({**settings, "patience": 4.0}) + "\n", timeout=100)
    assert companion.returncode == 1
    assert f"makes no progress, at {tmp_path / 'own.py'}, line 10, and is given up" in errors
    assert f"smdebug evaluate {tmp_path / 'run'} --rule-file {tmp_path / 'own.py'}" in errors
    its_process = int((tmp_path / "own.py").with_name("process").read_text())
    for _ in range(600):
        if not is_running(its_process):
            break
        time.sleep(0.1)
    assert not is_running(its_process), "the rule outlives the evaluation"
