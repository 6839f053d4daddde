"""The command without a subcommand."""

import subprocess
import sys

import pytest

from smdebug.cli.commands import COMMANDS
from tests.cli.processes import in_a_shell


def test_without_arguments_it_prints_a_short_help():
    done = in_a_shell()
    printed = done.stdout + done.stderr
    assert done.returncode == 2
    assert printed.startswith("Usage: smdebug RUN ")
    assert len(printed.splitlines()) < 16
    assert max(map(len, printed.splitlines())) <= 90
    named = [line.split()[0] for line in printed.splitlines() if line.startswith("  ") and line[2] != " "]
    assert named
    assert set(named) <= set(COMMANDS)


@pytest.mark.parametrize("module", ["smdebug", "smdebug.cli"])
def test_the_command_runs_as_a_module(module: str):
    done = subprocess.run(
        [sys.executable, "-m", module, "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("smdebug ")
