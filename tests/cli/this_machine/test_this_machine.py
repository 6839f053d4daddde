"""`smdebug demo`, `local`, `doctor` and `run`: commands about this machine."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from smdebug.cli.this_machine import environment_checks
from tests.cli.processes import PATHS, in_a_shell


def test_demo_and_local_need_the_sources_of_the_application(ask, monkeypatch, tmp_path):
    from smdebug.cli.this_machine import checkout

    assert checkout.find_checkout() == Path(__file__).parents[3]
    monkeypatch.setattr(checkout, "_MARK", Path("nowhere"))
    for name in ("demo", "local"):
        answer = ask(name)
        assert (answer.code, "needs the sources of the application" in answer.err) == (2, True)
        assert "[local]" in answer.err


@pytest.mark.parametrize(
    ("setting", "code", "problem"),
    [
        ("backtests_at_once=3", 3, "use at most 2"),  # of the account's 10: it has reached the stack
        ("backtest_at_once=2", 3, "did you mean 'backtests_at_once'"),
        ("account_concurrency=many", 3, "is not a whole number"),
        ("backtests_at_once", 2, "--set takes NAME=VALUE"),
    ],
)
def test_the_local_stack_takes_the_settings_of_a_deployment(setting: str, code: int, problem: str):
    ended = in_a_shell("local", "--set", setting, PYTHONWARNINGS="")
    assert (ended.returncode, problem in ended.stderr) == (code, True)
    assert "Traceback" not in ended.stderr


def test_doctor_reports_what_is_installed_and_what_is_missing(ask):
    answer = ask("doctor", "--offline", "--json")
    payload = {item["what"]: item["state"] for item in answer.json}
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())
    extras = set(project["project"]["optional-dependencies"]) - {"infra", "dev"}
    assert set(environment_checks._EXTRAS) == extras
    assert payload["Python"] == payload["numpy"] == payload["checkout"] == "well"
    assert (answer.code, "AWS account" in payload) == (0, False)


def test_doctor_reaches_the_account_and_misses_the_stack(ask, aws):
    payload = {item["what"]: item for item in ask("doctor", "--json").json}
    assert "us-east-1" in payload["AWS account"]["found"]
    assert payload["deployed debugger"]["state"] == "absent"
    answer = ask("doctor", "--stack", "research")
    assert (answer.code, "The stack research" in answer.out) == (1, True)


def test_doctor_checks_a_live_stack_from_outside(ask, aws):
    answer = ask("doctor", "--deployed", "--stack", "research", "--json")
    payload = {item["what"]: item for item in answer.json}
    assert list(payload) == ["AWS account", "stack"]
    assert (answer.code, payload["stack"]["state"]) == (1, "wrong")
    assert "--stack NAME" in payload["stack"]["hint"]
    assert ask("doctor", "--deployed", "--offline").code == 2


def test_what_runs_from_the_checkout_ends_with_the_command_even_if_that_is_killed(tmp_path):
    (tmp_path / "naps.py").write_text(
        "import time\ndef nap():\n    print('up', flush=True)\n    time.sleep(600)\n"
    )
    script = (
        "from pathlib import Path\nfrom smdebug.cli.this_machine import checkout\n"
        f"checkout.find_checkout = lambda: Path({str(tmp_path)!r})\n"
        "checkout.run_from_checkout('naps', 'nap')\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(PATHS)},
    ) as command:
        assert command.stdout is not None
        assert command.stdout.readline() == "up\n"
        command.kill()
        _, output = command.communicate(timeout=120)  # until both have let go of stderr
    assert output == "Interrupted. Nothing was left behind.\n"


@pytest.mark.parametrize(
    "words", [("none.py",), ("--config", "none.json", "train.py"), ("--json", "nowhere/x", "t.py")]
)
def test_a_script_or_a_file_for_it_that_is_not_there_is_a_mistake_of_the_command_line(words):
    result = in_a_shell("run", *words)
    assert (result.returncode, result.stdout) == (2, "")
    assert "Traceback" not in result.stderr
