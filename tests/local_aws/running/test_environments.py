"""Time-outs and memory of functions: a process of the local stack that exceeds them is ended, as by Lambda.

On moto alone a function needs Docker, or is never run (tests/local_aws/test_moto_fixes.py).
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from local_aws.clock import MovableClock
from local_aws.deployment.wheels import link_runtime
from local_aws.running import environments
from local_aws.running.environments import Environment
from local_aws.running.functions import Function, Runtime
from local_aws.running.starting import ProcessStarter

HANDLERS = """
import json
import os

def tells(event, context):
    return {"process": os.getpid(), "parent": os.getppid(), "variables": dict(os.environ)}

def answers(event, context):
    return {"event": event, "left": context.get_remaining_time_in_millis()}

def prints(event, context):
    for number in range(event):
        print("line", number)

def never_ends(event, context):
    print("begun", flush=True)
    while True:
        pass

def hoards(event, context):
    kept = []
    while True:
        kept.append(bytearray(b"x") * (16 << 20))
"""
Make = Callable[..., Environment]


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[Make]:
    """Make an environment for one of the handlers."""
    code, packages = tmp_path / "code", tmp_path / "packages"
    code.mkdir()
    (code / "handlers.py").write_text(HANDLERS)
    link_runtime(packages)
    runtime = Runtime(
        folder=tmp_path,
        packages=packages,
        wheels=tmp_path,
        endpoint="http://127.0.0.1:1",
        clock=MovableClock(tmp_path / "clock"),
        credentials=lambda *_: {},
        log=lambda *_: time.sleep(0.001),  # so that the thread that reads is later than the result
        begin=lambda *_: None,
    )
    starter, made = ProcessStarter(), []

    def make(handler: str, *, timeout: float = 60, memory_mb: int = 512, **variables: str) -> Environment:
        function = Function(
            handler,
            f"arn:aws:lambda:us-east-1:123456789012:function:{handler}",
            "role",
            f"handlers.{handler}",
            code,
            (),
            variables,
            timeout,
            memory_mb,
            "log",
            None,
        )
        made.append(Environment(function, runtime, starter))
        made[-1].start()
        return made[-1]

    yield make
    for each in made:
        each.close()
    starter.close()


def test_a_handler_knows_the_time_that_it_has_left(environment: Make):
    payload, error, _ = environment("answers", timeout=60).invoke(b'{"a": 1}', "request")
    answer = json.loads(payload)
    assert error is None
    assert answer["event"] == {"a": 1}
    assert 0 < answer["left"] <= 60_000


def test_the_log_of_a_warm_invocation_has_all_of_its_lines_and_no_others(environment: Make):
    printing = environment("prints")
    printed = []
    for count in (100, 3, 0, 100):
        _, _, log = printing.invoke(str(count).encode(), "request")
        printed.append([line for line in log if line.startswith("line")])
    assert printed == [[f"line {number}" for number in range(count)] for count in (100, 3, 0, 100)]


def test_a_function_is_ended_after_its_time_and_its_error_says_so(
    environment: Make, monkeypatch: pytest.MonkeyPatch
):
    slow = environment("never_ends", timeout=60)
    # Its time passes once it has begun, however long that takes here.
    clock = SimpleNamespace(monotonic=lambda: 61.0 * ("begun" in slow._lines))
    monkeypatch.setattr(environments, "time", clock)
    payload, error, log = slow.invoke(b"{}", "request")
    assert error == "Sandbox.Timedout"
    assert json.loads(payload)["errorType"] == "Sandbox.Timedout"
    assert "Task timed out after 60.00 seconds" in json.loads(payload)["errorMessage"]
    assert "begun" in log
    assert not slow.is_warm  # the next invocation starts another process


def test_a_function_that_takes_more_memory_than_it_has_is_killed(environment: Make):
    hoarding = environment("hoards", memory_mb=128)
    payload, error, _ = hoarding.invoke(b"{}", "request")
    assert error == "Runtime.ExitError"
    assert "signal: killed" in json.loads(payload)["errorMessage"]
    assert not hoarding.is_warm


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere each process is started by itself")
def test_the_processes_of_an_asset_are_forks_of_one_that_knows_no_function(environment: Make):
    first = said_by(environment("tells", ONLY_FIRST="1"))
    second = said_by(environment("tells", ONLY_SECOND="2"))
    assert first["parent"] == second["parent"] != os.getpid()
    assert first["process"] != second["process"]
    assert first["variables"]["ONLY_FIRST"] == "1"
    assert "ONLY_FIRST" not in second["variables"]
    known = Path(f"/proc/{first['parent']}/environ").read_bytes()
    assert b"ONLY_FIRST" not in known
    assert b"AWS_LAMBDA_FUNCTION_NAME" not in known


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere each process is started by itself")
def test_forks_end_with_their_template_and_the_next_start_makes_another(environment: Make):
    running = environment("tells")
    before = said_by(running)
    os.kill(before["parent"], signal.SIGKILL)
    until = time.monotonic() + 60
    while running.is_warm and time.monotonic() < until:
        time.sleep(0.01)
    assert not running.is_warm
    after = said_by(environment("tells"))
    assert after["parent"] != before["parent"]


def said_by(environment: Environment) -> dict[str, Any]:
    payload, error, _ = environment.invoke(b"{}", "request")
    assert error is None, payload
    return json.loads(payload)
