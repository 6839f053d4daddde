"""The command as a whole: help, errors, exit codes, and what it does not load."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys

import pytest
from click.testing import CliRunner

from smdebug.cli import exit_codes
from smdebug.cli.commands import _GROUPS, COMMANDS
from smdebug.cli.commands import smdebug as command_line
from smdebug.cli.error_messages import message_for
from smdebug.exceptions import AccessDenied, SMDebugError, StorageUnavailable
from tests.cli.processes import PASSED_ON, PATHS, in_a_shell, in_bash
from tests.support.looking import each


def test_every_command_is_listed_once():
    assert sorted(name for _, names in _GROUPS.values() for name in names) == sorted(COMMANDS)


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - PASSED_ON))
def test_every_command_has_help_with_examples_and_answers_in_json(name):
    result = CliRunner().invoke(command_line, [name, "--help"])
    assert result.exit_code == 0
    assert "Examples:" in result.output
    assert f"smdebug {name}" in result.output.split("Examples:")[1]
    assert "--json" in result.output


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - PASSED_ON))
def test_the_examples_of_a_command_can_be_parsed(name):
    command = command_line.get_command(None, name)  # type: ignore[arg-type]
    text = (command.help or "").split("Examples:")[1]
    pattern = rf"^\s*(?:eval \"\$\()?smdebug {name} ?(.*?)(?:\s+[#|>&].*|\)\".*)?$"
    for line in each(re.findall(pattern, text, re.MULTILINE)):
        command.make_context(name, shlex.split(line), resilient_parsing=False)


def test_help_lists_the_exit_codes():
    result = CliRunner().invoke(command_line, ["--help"]).output
    for code in (
        exit_codes.PASSED,
        exit_codes.FOUND,
        exit_codes.USAGE_ERROR,
        exit_codes.FAILED,
        exit_codes.INTERNAL_ERROR,
    ):
        assert re.search(rf"^ +{code} +\w", result, re.MULTILINE)


def test_a_command_that_is_mistyped_is_recognized(ask):
    answer = ask("inspct", "x")
    assert (answer.code, "Did you mean inspect?" in answer.err) == (2, True)
    assert ask("inspect").code == 2
    for name in ("export", "completion"):  # which list what there is to choose from
        assert len(ask(name).err.splitlines()) == 2
    assert ask("inspect", "x", "--nope").code == 2


def test_a_bug_is_one_sentence_and_a_traceback_only_on_request(ask, failing, monkeypatch):
    import smdebug.runs.overview as overview

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("it broke")

    monkeypatch.setattr(overview, "overview_of", broken)
    answer = ask("inspect", failing)
    assert answer.code == 4
    assert "smdebug itself failed: RuntimeError: it broke" in answer.err
    assert "Traceback" not in answer.err
    assert "Traceback" in ask("inspect", failing, "--debug").err


@pytest.mark.parametrize(
    ("error", "code", "hint"),
    [
        (AccessDenied("s3://b", "no"), 3, "doctor"),
        (StorageUnavailable("s3://b", "later"), 3, "again"),
        (SMDebugError("x"), 3, ""),
        (OSError(28, "No space left on device", "/x"), 3, "disk is full"),
        (OSError(98, "Address already in use"), 3, "--port"),
        (MemoryError(), 3, "fewer tensors"),
        (KeyError("x"), 4, "This is a bug"),
    ],
)
def test_every_kind_of_failure_has_its_code_and_its_hint(error, code, hint):
    message = message_for(error)
    assert message.code == code
    assert hint in message.hint
    assert "\n" not in message.sentence


def test_ctrl_c_ends_with_130(ask, failing, monkeypatch):
    import smdebug.runs.overview as overview

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(overview, "overview_of", interrupted)
    answer = ask("inspect", failing)
    assert (answer.code, answer.err.strip()) == (130, "interrupted")


def test_it_runs_as_a_module_and_prints_its_version():
    result = in_a_shell("--version")
    assert (result.returncode, result.stderr) == (0, "")
    assert re.fullmatch(r"smdebug \d+\.\d+\.\d+\n", result.stdout)


def test_in_a_shell_answers_are_on_stdout_and_errors_on_stderr(failing):
    well = in_a_shell("inspect", str(failing), "--json")
    assert (well.returncode, well.stderr) == (0, "")
    wrong = in_a_shell("inspect", str(failing / "nope"))
    assert (wrong.returncode, wrong.stdout) == (3, "")
    assert "Traceback" not in wrong.stderr


def test_help_loads_neither_numpy_nor_boto3_and_the_library_no_click():
    script = (
        "import sys, smdebug.trials, smdebug.rules, smdebug.saving.hooks.hook\n"
        "assert 'click' not in sys.modules\n"
    )
    subprocess.run(
        [sys.executable, "-c", script],
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(PATHS)},
    )
    script = (
        "import sys\nfrom smdebug.cli.main import main\n"
        "main(['--help'])\n"
        "print(sorted({'numpy', 'boto3', 'matplotlib', 'smdebug.trials'} & set(sys.modules)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", script],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(PATHS)},
    )
    assert result.stdout.splitlines()[-1] == "[]"


def test_a_closed_pipe_is_not_an_error(failing):
    # `true` is gone before a word was output, whichever the command, and whatever it is about to say.
    for words in (
        f"inspect {failing} --json",
        f"inspect {failing}",
        "--help",
        f"inspect {failing} --json",
    ):
        result = in_bash(f"set -o pipefail; {sys.executable} -m smdebug {words} | true")
        assert (result.returncode, result.stderr) == (0, "")


def test_the_exit_code_is_right_even_if_nothing_can_be_printed(failing):
    command = f"{sys.executable} -m smdebug inspect"
    for closed in ("2>&-", "2>/dev/full"):
        assert in_bash(f"{command} {failing} {closed}").returncode == 0
        assert in_bash(f"{command} {failing}/nope {closed}").returncode == 3
        assert in_bash(f"{command} {failing}/nope --json {closed}").returncode == 3
    assert in_bash(f"{command} {failing} >/dev/full").returncode == 3
