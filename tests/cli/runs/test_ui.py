"""`smdebug ui`: what it prints where there is a browser, where there is none, and for what does not exist."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from smdebug.cli.this_machine.browser import has_browser, way_here
from tests.support.answers import check_answer


@pytest.fixture
def shown(tmp_path):
    """Start the command, and return its first lines once it has printed so many."""
    started = []

    def show(*words, lines, until=lambda: True, **environment):
        own = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path), **environment}
        command = [sys.executable, "-m", "smdebug", "ui", str(tmp_path), *words]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        # Tests that a script runs in the background inherit that Ctrl-C is ignored.
        process = subprocess.Popen(
            command, env=own, text=True, cwd=tmp_path, preexec_fn=_heed_ctrl_c, **pipes
        )
        started.append(process)
        assert process.stdout is not None
        printed = [process.stdout.readline().rstrip("\n") for _ in range(lines)]
        while not until():
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=60)
        return printed, rest, errors

    yield show
    for process in started:
        with process:  # which closes its pipes
            process.kill()


def _heed_ctrl_c() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_without_a_browser_it_says_the_address_and_how_to_forward_it_and_nothing_else(shown):
    connection = "10.0.0.7 51000 10.0.0.9 2222"
    (address, way), rest, errors = shown(lines=2, SSH_CONNECTION=connection, USER="ada", LOGNAME="ada")
    port = address.split(":")[2].split("/")[0]
    assert address.startswith("http://127.0.0.1:")
    assert way == f"From your own machine: ssh -p 2222 -N -L {port}:127.0.0.1:{port} ada@10.0.0.9"
    assert (rest, errors) == ("", "")


def test_a_browser_gets_the_address_and_its_own_output_is_dropped(shown, tmp_path):
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho noise >&2\nprintf %s "$1" > {tmp_path}/opened.part\n'
                       f"mv {tmp_path}/opened.part {tmp_path}/opened\n")  # fmt: skip
    browser.chmod(0o755)
    (address,), rest, errors = shown(lines=1, until=(tmp_path / "opened").exists, BROWSER=f"{browser} %s")
    assert (rest, errors) == ("", "")
    assert (tmp_path / "opened").read_text() == address


def test_json_has_the_address_alone(shown):
    (line,), rest, errors = shown("--json", lines=1)
    assert line.startswith('{"address": "http://127.0.0.1:')
    check_answer(["ui", "--json"], line)
    assert (rest, errors) == ("", "")


def test_what_does_not_exist_is_refused(ask, tmp_path):
    answer = ask("ui", str(tmp_path / "nope"))
    assert answer.code == 3
    assert "nope: it does not exist" in answer.err


@pytest.mark.parametrize(
    ("environment", "platform", "has_one"),
    [
        ({}, "linux", False),
        ({"DISPLAY": ""}, "linux", False),
        ({"BROWSER": "firefox"}, "linux", True),
    ],
)
def test_a_window_needs_a_display(environment, platform, has_one):
    assert has_browser(environment, platform) is has_one


def test_an_address_that_others_can_reach_needs_no_way():
    assert way_here("0.0.0.0", 80, {}) == ""
    assert way_here("127.0.0.1", 80, {"SSH_CONNECTION": "broken"}).startswith(
        "From your own machine: ssh -N -L 80:"
    )
