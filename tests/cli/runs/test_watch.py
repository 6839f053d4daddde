"""`smdebug watch` follows runs in the terminal while they train."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

import smdebug
from smdebug.cli.runs import watch_command
from tests.cli.conftest import failing_run


@pytest.fixture
def watching() -> Iterator[list[subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        process.kill()
        process.communicate()


def start(started, *words):
    process = subprocess.Popen(
        [sys.executable, "-m", "smdebug", "watch", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        # The tests may have been started in a shell's background, where Ctrl-C is ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    started.append(process)
    return process


def until(process, event, **more):
    """Read events up to the first such one; the test's time limit ends the wait if none comes."""
    for line in process.stdout:
        payload = json.loads(line)
        if {"event": event, **more}.items() <= payload.items():
            return payload
    raise AssertionError(f"it ended without {event}: {process.stderr.read()}")


def test_a_run_that_has_not_begun_is_awaited_and_its_problem_is_an_event(tmp_path, watching):
    rule = ("--rule", "ExplodingTensor", "--interval", "0.1", "--json")
    process = start(watching, tmp_path / "run", *rule)
    assert until(process, "progress")["state"] == "awaited"
    config = smdebug.SaveConfig(save_interval=1)
    with smdebug.Hook(str(tmp_path / "run"), save_all=True, save_config=config) as hook:
        with hook.step():
            hook.record("loss", 1.0)
        hook.flush()
        progress = until(process, "progress", state="live")  # after "catching_up" on a busy machine
        assert (progress["last_step"], progress["loss"]) == (0, 1.0)
        with hook.step():
            hook.record("loss", float("nan"))
        hook.flush()
        opened = until(process, "opened")
        assert (opened["step"], opened["issue"]["since"]) == (1, 1)
        assert opened["issue"]["rules"] == ["ExplodingTensor"]
        assert opened["issue"]["try"]
    ended = until(process, "ended")
    assert (ended["last_step"], ended["loss"], ended["open"]) == (1, "NaN", 1)
    assert process.wait(60) == 1


def test_several_runs_of_a_folder_are_shown_once(tmp_path, ask):
    failing_run(tmp_path / "bad")
    failing_run(tmp_path / "more" / "short", steps=3)
    answer = ask("watch", tmp_path, "--once", "--rule", "VanishingGradient")
    assert answer.code == 1
    opened, ended, *state = [line for line in answer.out.splitlines() if not line.startswith("  ")]
    assert opened == f"✗ {tmp_path}/bad: Gradients vanish, since step 40"
    assert ended == f"✗ {tmp_path}/bad ended at step 90: 1 problem detected"
    assert state[0] == f"✓ {tmp_path}/more/short ended at step 20: 1 rule passed"
    assert state[1].startswith(f"{tmp_path}/bad  ended  step 90  loss 1.1 █")
    assert "Try       " in answer.out


def test_the_interrupt_of_a_person_is_the_usual_end(tmp_path, watching):
    process = start(watching, tmp_path / "run", "--interval", "0.1", "--json")
    until(process, "progress")
    process.send_signal(signal.SIGINT)
    assert (process.wait(60), process.stderr.read()) == (0, "")


@pytest.mark.parametrize(("is_terminal", "printed"), [(True, "\n"), (False, "")])
def test_after_an_interrupt_the_prompt_has_a_line_of_its_own(is_terminal, printed, capsys, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
    watch_command._Screen().interrupted()
    assert capsys.readouterr().out == printed


def test_a_run_of_which_nothing_was_checked_is_not_called_healthy(tmp_path, ask):
    failing_run(tmp_path / "run")
    answer = ask("watch", tmp_path / "run", "--once", "--rule", "Overfit")
    assert answer.out.startswith(f"– {tmp_path}/run ended at step 90: nothing was checked\n    Not checked:")
    assert answer.code == 3


def test_a_file_an_unknown_rule_and_a_negative_interval_are_refused(tmp_path, ask):
    (tmp_path / "file").write_text("")
    failing_run(tmp_path / "run")
    assert "is a file" in ask("watch", tmp_path / "file", "--once").err
    answer = ask("watch", tmp_path / "run", "--once", "--rule", "VanishingGradiant")
    assert answer.code == 2
    assert "VanishingGradient" in answer.err
    assert ask("watch", tmp_path / "run", "--interval", "-1").code == 2


def test_a_run_that_cannot_be_read_does_not_hide_the_others(tmp_path, ask):
    failing_run(tmp_path / "good", steps=2)
    failing_run(tmp_path / "bad", steps=2)
    for file in (tmp_path / "bad" / "collections").rglob("*.json"):
        file.write_text("{")
    answer = ask("watch", tmp_path, "--once", "--rule", "VanishingGradient")
    assert answer.code == 3
    assert f"{tmp_path}/good ended at step 10" in answer.out
    assert f"{tmp_path}/bad  cannot be read" in answer.out


def test_without_a_named_rule_those_of_the_file_are_evaluated(ask, tmp_path):
    failing_run(tmp_path / "run")
    (tmp_path / "own.py").write_text(
        "from smdebug.rules import Rule\n\n"
        "class Always(Rule):\n    def invoke_at_step(self, step):\n        return True\n"
    )
    words = ("--once", "--rule-file", tmp_path / "own.py")
    answer = ask("watch", tmp_path / "run", *words)
    assert (answer.code, "Always, since step" in answer.out) == (1, True), answer.out
    answer = ask("watch", tmp_path / "run", *words, "--rule", "UnchangedTensor")
    assert "Always" not in answer.out
