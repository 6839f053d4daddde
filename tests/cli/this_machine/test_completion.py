"""`smdebug completion`: commands, rules and paths, in bash, zsh and fish."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import click
import pytest

from smdebug.cli.commands import COMMANDS
from smdebug.cli.commands import smdebug as command_line
from tests.cli.processes import PASSED_ON, in_a_shell, in_bash
from tests.support.looking import each


def test_the_shell_completes_commands_and_rules():
    result = in_a_shell(
        _SMDEBUG_COMPLETE="bash_complete",
        COMP_WORDS="smdebug evaluate . --rule vanish",
        COMP_CWORD="4",
    )
    assert (result.stdout.split(), result.stderr) == (["plain,VanishingGradient"], "")
    for words in ("inspect ./my", "compare one ot", "attach run ru", "evaluate r --other-run x"):
        result = in_a_shell(
            _SMDEBUG_COMPLETE="bash_complete",
            COMP_WORDS=f"smdebug {words}",
            COMP_CWORD=str(len(words.split())),
        )
        # As the shell does it: with a completion of its own a command takes that away from it.
        assert (result.stdout, result.stderr) == (f"file,{words.split()[-1]}\n", "")
    for shell in ("bash", "zsh", "fish"):
        assert "_SMDEBUG_COMPLETE" in in_a_shell("completion", shell).stdout


NAMES_PLACES = {"PATH", "FILE", "FOLDER", "PLACE", "ONE", "OTHER", "JOB", "RULES"}
TAKES_ONE_RULE = {"replay"}
IS_NO_PLACE = {("status", "run"), ("detach", "rules")}  # of a deployed debugger


def offered_by(name: str, parameter: click.Parameter, incomplete: str) -> set[tuple[str, str]]:
    command = command_line.get_command(None, name)  # type: ignore[arg-type]
    found = parameter.shell_complete(click.Context(command, info_name=name), incomplete)
    return {(finding.type, finding.value) for finding in found}


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - PASSED_ON))
def test_whatever_takes_a_place_completes_paths_and_whatever_takes_a_rule_completes_rules(name):
    command = command_line.get_command(None, name)  # type: ignore[arg-type]
    asks_a_stack = any(param.name == "stack" for param in command.params)
    for param in each(command.params, at_least=3):
        named = param.metavar or ("" if isinstance(param, click.Option) else (param.name or "").upper())
        if named in NAMES_PLACES and (name, param.name) not in IS_NO_PLACE:
            assert {kind for kind, _ in offered_by(name, param, "x")} <= {"file", "dir"}, param.name
            assert offered_by(name, param, "x"), param.name
        if "--rule" in param.opts and not (asks_a_stack and name != "report"):
            assert ("plain", "AllZero") in offered_by(name, param, "al")
            assert (("plain", "all") in offered_by(name, param, "al")) == (name not in TAKES_ONE_RULE)


def completed(line: str, shell: str = "bash") -> list[str]:
    asked = {"COMP_WORDS": line, "COMP_CWORD": "0", "_SMDEBUG_COMPLETE": f"{shell}_complete"}
    result = in_a_shell(**asked)
    assert result.stderr == ""
    return result.stdout.splitlines()


def test_bash_hands_over_the_line_as_it_stands_since_it_parts_words_at_colons():
    assert completed("smdebug evaluate a --rule=vani") == ["plain,VanishingGradient"]
    assert completed("smdebug compare s3://bucket/run ot") == ["file,ot"]
    assert completed("smdebug evaluate a --set t=1 --rule vani") == ["plain,VanishingGradient"]
    assert completed("smdebug report a --compare ") == ["file,"]
    assert completed("smdebug insp") == ["plain,inspect"]
    assert completed("smdebug attach run Vani") == ["file,Vani", "plain,VanishingGradient"]
    assert completed("smdebug run --out") == ["plain,--out-dir"]
    assert completed("smdebug run --out-dir x tr") == ["file,tr"]


def test_a_run_alone_completes_folders_and_then_the_options_of_evaluate():
    assert completed("smdebug ./my") == ["dir,./my"]
    assert "plain,--all-steps" in completed("smdebug ./my-run --all")


def test_tensors_collections_and_workers_of_a_run_are_completed(failing):
    assert completed(f"smdebug tensor {failing} grad") == ["plain,gradient/fc"]
    assert completed(f"smdebug compare {failing} other --tensors lo") == ["plain,loss"]
    assert completed(f"smdebug compare {failing} other --collection los") == ["plain,losses"]
    assert completed(f"smdebug tensor {failing} loss --worker w") == ["plain,worker_0"]
    assert completed(f"smdebug tensor {failing}-not-there lo") == [""]
    assert completed("smdebug tensor s3://bucket/run lo") == [""]


def test_bash_itself_completes_what_stands_behind_an_equals_sign():
    script = (
        f"smdebug() {{ {sys.executable} -m smdebug; }}; export -f smdebug\n"
        f'eval "$({sys.executable} -m smdebug completion bash)"\n'
        "compopt() { echo compopt $*; }\n"
        "env() { export COMP_WORDS=${1#*=} _SMDEBUG_COMPLETE=bash_complete COMP_CWORD=0; smdebug; }\n"
        "try() { COMPREPLY=(); COMP_LINE=$1; COMP_POINT=${#1}; _smdebug_completion smdebug; "
        'echo "${COMPREPLY[@]}"; }\n'
        "try 'smdebug evaluate s3://b/run --rule=vani'\n"
        "try 'smdebug report a --compare=wi'\n"
        "try 'smdebug attach run Vani'\n"
        "try 'smdebug attach run ru'\n"
    )
    result = in_bash(script)
    assert result.stdout.splitlines() == [
        "VanishingGradient",
        "compopt -o default",
        "",
        "compopt -o default",
        "VanishingGradient",
        "compopt -o default",
        "",
    ]


def test_the_scripts_of_click_are_those_that_are_put_right():
    assert "${COMP_LINE:0:COMP_POINT}" in in_a_shell("completion", "bash").stdout
    zsh, fish = (in_a_shell("completion", shell).stdout for shell in ("zsh", "fish"))
    assert ("compset -P" in zsh, zsh.count('compadd -U -i "$IPREFIX"')) == (True, 1)
    assert (fish.count('"$option'), fish.count("set -l option")) == (3, 1)


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_script_for_a_shell_is_one_of_that_shell(shell, tmp_path):
    if shutil.which(shell) is None and "SMDEBUG_TEST_SHELLS" not in os.environ:
        pytest.skip(f"{shell} is not installed")
    place = tmp_path / "script"
    place.write_text(in_a_shell("completion", shell).stdout)
    result = subprocess.run([shell, "-n", place], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")


def test_a_run_in_the_current_folder_is_offered_as_the_first_word(tmp_path, monkeypatch):
    (tmp_path / "evening-run" / "collections").mkdir(parents=True)
    (tmp_path / "evidence").mkdir()
    monkeypatch.chdir(tmp_path)
    ctx = command_line.make_context("smdebug", [], resilient_parsing=True)
    assert [item.value for item in command_line.shell_complete(ctx, "ev")] == [
        "evaluate",
        "evening-run",
    ]
