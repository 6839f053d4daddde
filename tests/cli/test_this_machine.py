"""`smdebug demo`, `local`, `doctor` and `run`: commands about this machine."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from smdebug.cli import environment_checks
from tests.cli.processes import PATHS, in_a_shell


def test_demo_and_local_need_a_checkout(ask, monkeypatch, tmp_path):
    from smdebug.cli import checkout

    assert checkout.find_checkout() == Path(__file__).parents[2]
    monkeypatch.setattr(checkout, "_MARK", Path("nowhere"))
    for name in ("demo", "local"):
        said = ask(name)
        assert (said.code, "needs a checkout" in said.err) == (2, True)


def test_doctor_tells_what_is_there_and_what_is_not(ask):
    said = ask("doctor", "--offline", "--json")
    told = {one["what"]: one["state"] for one in said.json}
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    extras = set(project["project"]["optional-dependencies"]) - {"infra", "dev"}
    assert set(environment_checks._EXTRAS) == extras
    assert told["Python"] == told["numpy"] == told["checkout"] == "well"
    assert (said.code, "AWS account" in told) == (0, False)


def test_doctor_reaches_the_account_and_misses_the_stack(ask, aws):
    told = {one["what"]: one for one in ask("doctor", "--json").json}
    assert "us-east-1" in told["AWS account"]["found"]
    assert told["deployed debugger"]["state"] == "absent"
    said = ask("doctor", "--stack", "research")
    assert (said.code, "The stack research" in said.out) == (1, True)


def test_what_runs_from_the_checkout_ends_with_the_command_even_if_that_is_killed(tmp_path):
    (tmp_path / "naps.py").write_text(
        "import time\ndef nap():\n    print('up', flush=True)\n    time.sleep(60)\n"
    )
    script = (
        "from pathlib import Path\nfrom smdebug.cli import checkout\n"
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
        _, said = command.communicate(timeout=30)  # until both have let go of stderr
    assert said == "Interrupted. Nothing was left behind.\n"


@pytest.mark.parametrize(
    "words", [("none.py",), ("--config", "none.json", "train.py"), ("--json", "nowhere/x", "t.py")]
)
def test_a_script_or_a_file_for_it_that_is_not_there_is_a_mistake_of_the_command_line(words):
    said = in_a_shell("run", *words)
    assert (said.returncode, said.stdout) == (2, "")
    assert "Traceback" not in said.stderr
