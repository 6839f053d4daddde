"""The process beside a training ends with it, and what it prints is safe, once, and its own."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

import smdebug
from smdebug.companion.alerts import Alerts, with_environment
from smdebug.companion.evaluation import report
from smdebug.companion.pipe import TrainingPipe

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


@pytest.fixture
def pipe() -> Iterator[tuple[TrainingPipe, int]]:
    """A pipe from this process to itself, and the training's end of it."""
    read, write = os.pipe()
    with os.fdopen(read, "rb") as stream:
        yield TrainingPipe(stream), write


def test_a_training_is_over_when_its_end_of_the_pipe_is_closed(pipe):
    """Its process is still there: a notebook, say."""
    of_companion, of_training = pipe
    os.write(of_training, b'{"place": "x"}\n')
    assert of_companion.first_line() == b'{"place": "x"}\n'
    assert of_companion.is_open_after(0)
    assert of_companion.is_open_after(0.01)
    os.close(of_training)
    assert not of_companion.is_open_after(60)  # at once
    assert not of_companion.is_open_after(60)


def test_a_training_that_ended_before_its_settings_has_none(pipe):
    of_companion, of_training = pipe
    os.close(of_training)
    assert of_companion.first_line() == b""


TRAINING = """
import subprocess, sys
companion = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdout=subprocess.PIPE)
companion.stdout.readline()  # it has begun; now the training ends
"""
COMPANION = """
import sys
from smdebug.companion.pipe import TrainingPipe
pipe = TrainingPipe(sys.stdin.buffer)
assert pipe.is_open_after(0)
print("begun", flush=True)
looks = 0
while pipe.is_open_after(0.01) and looks < 2000:
    looks += 1
print("over" if looks < 2000 else "still open", file=sys.stderr, flush=True)
"""


def test_a_training_is_over_when_its_process_is_although_another_holds_the_pipe():
    """A process that it forked, which goes on: here, the test."""
    process = subprocess.Popen(
        [sys.executable, "-c", TRAINING, COMPANION],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )
    assert process.stderr is not None
    assert process.stderr.read() == "over\n"  # the pipe of stdin is still open here
    assert process.wait() == 0
    assert process.stdin is not None
    assert not process.stdin.closed
    process.stdin.close()
    process.stderr.close()


@pytest.mark.parametrize(
    "text", ["\x1b[2J", "a\x07b", "\x1b]0;title\x07", "one\rtwo", "one\ntwo", "\x9b31m", "\u202eevil"]
)
def test_what_is_printed_has_no_control_characters(text, capsys):
    report(f"smdebug: {text}", text)
    printed = capsys.readouterr()
    assert printed.out == ""
    lines = printed.err.splitlines()
    assert len(lines) == 2
    assert all(line.isprintable() for line in lines)


def test_what_is_printed_has_no_secret(capsys):
    report("smdebug: runs/a: cannot be read: https://me:pl4nted@host/x", "password=pl4nted")
    assert capsys.readouterr().err == ("smdebug: runs/a: cannot be read: https://***@host/x\npassword=***\n")


@pytest.fixture
def apprise_log(caplog) -> Iterator[pytest.LogCaptureFixture]:
    """What the alert library logs; its logger is as it was before afterwards."""
    pytest.importorskip("apprise")
    logger = logging.getLogger("apprise")
    level = logger.level
    logger.setLevel(logging.DEBUG)
    yield caplog
    logger.setLevel(level)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # by the library's import
def test_the_log_of_the_alert_library_is_silent_as_it_names_addresses(apprise_log):
    reported: list[str] = []
    alerts = Alerts(
        ["json://user:secret@127.0.0.1:1/secret-path", "no-such-scheme://secret", "slack://secret"],
        reported.append,
    )
    alerts.send("title", "body")
    assert [record.getMessage() for record in apprise_log.records if record.name.startswith("apprise")] == []
    assert reported == [
        "smdebug: no alerts to no-such-scheme://: apprise cannot read the address. "
        "https://github.com/caronc/apprise/wiki has its form",
        "smdebug: no alerts to slack://: apprise cannot read the address. "
        "https://github.com/caronc/apprise/wiki has its form",
        "smdebug: an alert to json:// was not accepted. Check its address and token",
    ]


def test_an_alert_that_fails_in_any_way_stops_no_other():
    class Target:
        def __init__(self, answer):
            self.answer = answer
            self.sent = []

        def notify(self, *, title, body):
            self.sent.append((title, body))
            if isinstance(self.answer, Exception):
                raise self.answer
            return self.answer

    reported: list[str] = []
    alerts = Alerts([], reported.append)
    targets = [Target(OSError("secret")), Target(False), Target(True)]
    alerts._targets = list(zip(("a", "b", "c"), targets, strict=True))
    alerts.send("title", "body")
    assert [target.sent for target in targets] == [[("title", "body")]] * 3
    assert reported == [
        "smdebug: an alert to a:// failed: OSError",
        "smdebug: an alert to b:// was not accepted. Check its address and token",
    ]


@pytest.mark.parametrize(
    ("address", "filled", "missing"),
    [
        ("slack://$TOKEN/x", "slack://t0/x", []),
        ("slack://${TOKEN}x$EMPTY", "slack://t0x", []),
        ("$TOKEN://$NONE$OTHER", "t0://", ["NONE", "OTHER"]),
        ("slack://TOKEN", "slack://TOKEN", []),
    ],
)
def test_an_address_is_filled_from_the_environment(address, filled, missing, monkeypatch):
    monkeypatch.setenv("TOKEN", "t0")
    monkeypatch.setenv("EMPTY", "")
    for name in ("NONE", "OTHER"):
        monkeypatch.delenv(name, raising=False)
    assert with_environment(address) == (filled, missing)


RULES = """
from smdebug.rules import Rule

class Above(Rule):
    def __init__(self, base_trial, limit):
        super().__init__(base_trial)
        self.limit = float(limit)

    def invoke_at_step(self, step):
        return self.base_trial.tensor("loss").reduction_value(step, "mean") > self.limit

class Second(Above):
    pass
"""


def test_a_stop_is_asked_for_once_for_the_first_problem(tmp_path):
    (tmp_path / "own.py").write_text(RULES)
    stop = [{"name": "stoptraining"}]
    rules = [
        {"name": "none", "rule": "Above", "parameters": {"limit": "0"}},
        {"name": "first", "rule": "Above", "parameters": {"limit": "1"}, "actions": stop},
        {"name": "second", "rule": "Second", "parameters": {"limit": "3"}, "actions": stop},
    ]
    place = tmp_path / "run"
    save_config = smdebug.SaveConfig(save_interval=1)
    with smdebug.Hook(str(place), rules=rules, save_config=save_config, look_for_stop=0) as hook:
        for loss in (0.5, 2.0, 4.0, 8.0):
            with hook.step():
                hook.record("loss", loss)
    settings = {"place": str(place), "rule_file": str(tmp_path / "own.py")}
    companion = subprocess.run(
        [sys.executable, "-m", "smdebug.companion"],
        input=json.dumps(settings) + "\n",
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
        timeout=100,
        check=True,
    )
    asked = [line for line in companion.stderr.splitlines() if "stop requested" in line]
    assert asked == ["smdebug: stop requested: First, since step 1"]
    assert json.loads((place / "control" / "stop").read_bytes()) == {"reason": "First, since step 1"}
    assert "Second, " in companion.stderr


def test_without_settings_it_says_who_starts_it():
    companion = subprocess.run(
        [sys.executable, "-m", "smdebug.companion"],
        input="",
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        timeout=100,
        check=False,
    )
    assert companion.returncode == 2
    assert companion.stderr == "smdebug.companion is started by a hook with evaluate='here'\n"
