"""The command as a whole: help, errors, exit codes, completion, colour, and what it does not load."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import smdebug
from smdebug.cli import examination, outcomes
from smdebug.cli.commands import _GROUPS, COMMANDS
from smdebug.cli.commands import smdebug as command_line
from smdebug.cli.telling import Progress, table
from smdebug.exceptions import AccessDenied, SMDebugError, StorageUnavailable

PASSED_ON = {"run"}  # what it takes, the program behind it says
PATHS = [
    str(Path(__file__).parents[2] / "layers/smdebug_core/python"),
    str(Path(__file__).parents[2] / "rules"),
]


def in_a_shell(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "smdebug", *words],
        capture_output=True,
        text=True,
        check=False,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(PATHS),
            "PYTHONWARNINGS": "error",
            **environment,
        },
    )


def test_every_command_is_listed_once():
    assert sorted(name for names in _GROUPS.values() for name in names) == sorted(COMMANDS)


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - PASSED_ON))
def test_every_command_has_help_with_examples_and_answers_in_json(name):
    said = CliRunner().invoke(command_line, [name, "--help"])
    assert said.exit_code == 0
    assert "Examples:" in said.output
    assert f"smdebug {name}" in said.output.split("Examples:")[1]
    assert "--json" in said.output


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - PASSED_ON))
def test_the_examples_of_a_command_can_be_parsed(name):
    command = command_line.get_command(None, name)  # type: ignore[arg-type]
    text = (command.help or "").split("Examples:")[1]
    for line in re.findall(
        rf"^\s*(?:eval \"\$\()?smdebug {name} ?(.*?)(?:\s+[#|>&].*|\)\".*)?$", text, re.MULTILINE
    ):
        import shlex

        command.make_context(name, shlex.split(line), resilient_parsing=False)


def test_help_tells_the_exit_codes():
    said = CliRunner().invoke(command_line, ["--help"]).output
    for code in (
        outcomes.WELL,
        outcomes.FOUND,
        outcomes.ASKED_WRONGLY,
        outcomes.CANNOT_LOOK,
        outcomes.DEFECT,
    ):
        assert re.search(rf"^ +{code} +\w", said, re.MULTILINE)


def test_a_command_that_is_mistyped_is_recognized(ask):
    said = ask("inspct", "x")
    assert (said.code, "Did you mean inspect?" in said.err) == (2, True)
    assert ask("inspect").code == 2
    for name in ("export", "completion"):  # which list what there is to choose from
        assert len(ask(name).err.splitlines()) == 2
    assert ask("inspect", "x", "--nope").code == 2


def test_a_defect_is_a_sentence_and_a_trace_only_on_request(ask, ill, monkeypatch):
    import smdebug.runs.overview as overview

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("it broke")

    monkeypatch.setattr(overview, "overview_of", broken)
    said = ask("inspect", ill)
    assert said.code == 4
    assert "smdebug itself failed: RuntimeError: it broke" in said.err
    assert "Traceback" not in said.err
    assert "Traceback" in ask("inspect", ill, "--debug").err


@pytest.mark.parametrize(
    ("error", "code", "hint"),
    [
        (AccessDenied("s3://b", "no"), 3, "doctor"),
        (StorageUnavailable("s3://b", "later"), 3, "again"),
        (SMDebugError("x"), 3, ""),
        (OSError(28, "No space left on device", "/x"), 3, "disk is full"),
        (OSError(98, "Address already in use"), 3, "--port"),
        (MemoryError(), 3, "fewer tensors"),
        (KeyError("x"), 4, "defect"),
    ],
)
def test_every_kind_of_failure_has_its_code_and_its_hint(error, code, hint):
    told = outcomes.of_error(error)
    assert told.code == code
    assert hint in told.hint
    assert "\n" not in told.sentence


def test_ctrl_c_ends_with_130(ask, ill, monkeypatch):
    import smdebug.runs.overview as overview

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(overview, "overview_of", interrupted)
    said = ask("inspect", ill)
    assert (said.code, said.err.strip()) == (130, "interrupted")


def test_it_runs_as_a_module_and_tells_its_version():
    said = in_a_shell("--version")
    assert (said.returncode, said.stderr) == (0, "")
    assert re.fullmatch(r"smdebug \d+\.\d+\.\d+\n", said.stdout)


def test_in_a_shell_answers_are_on_stdout_and_errors_on_stderr(ill):
    well = in_a_shell("inspect", str(ill), "--json")
    assert (well.returncode, well.stderr) == (0, "")
    wrong = in_a_shell("inspect", str(ill / "nope"))
    assert (wrong.returncode, wrong.stdout) == (3, "")
    assert "Traceback" not in wrong.stderr


def test_a_terminal_that_knows_no_unicode_gets_none(ill):
    said = in_a_shell("inspect", str(ill), PYTHONIOENCODING="ascii")
    assert (said.returncode, said.stderr) == (0, "")
    assert said.stdout.isascii()


def test_a_terminal_that_knows_some_letters_gets_those_and_json_stays_json(tmp_path):
    """Click takes a terminal of ASCII for one of UTF-8; one of Latin-1 it takes at its word."""
    saved = [f"名_loss_{at}" for at in range(50)]
    with smdebug.Hook(str(tmp_path / "run")) as hook, hook.step():
        hook.record_all(dict.fromkeys(saved, 1.0))
    latin = {"PYTHONIOENCODING": "latin-1"}
    told = in_a_shell("inspect", str(tmp_path / "run"), "--json", **latin)
    assert (told.returncode, told.stderr) == (0, "")
    assert [one["name"] for one in json.loads(told.stdout)["tensors"]] == sorted(saved)
    told = in_a_shell("inspect", str(tmp_path / "run"), **latin)
    assert (told.returncode, "... and 10 more" in told.stdout) == (0, True)


def test_marks_can_be_told_apart_without_unicode(ill):
    rules = ("--rule", "VanishingGradient", "--rule", "ExplodingTensor")
    said = in_a_shell("evaluate", str(ill), *rules, PYTHONIOENCODING="latin-1").stdout
    marks = [line[0] for line in said.splitlines() if not line.startswith(" ")]
    assert marks == ["x", "+"]


def test_colour_is_a_matter_of_the_environment(ill):
    assert "\x1b[" not in in_a_shell("inspect", str(ill)).stdout
    assert "\x1b[" in in_a_shell("inspect", str(ill), FORCE_COLOR="1").stdout
    assert "\x1b[" not in in_a_shell("inspect", str(ill), FORCE_COLOR="1", NO_COLOR="1").stdout


def test_help_loads_neither_numpy_nor_boto3_and_the_library_no_click():
    script = (
        "import sys, smdebug.trials, smdebug.rules, smdebug.saving.hook\n"
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
    said = subprocess.run(
        [sys.executable, "-c", script],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(PATHS)},
    )
    assert said.stdout.splitlines()[-1] == "[]"


def test_the_shell_completes_commands_and_rules():
    said = in_a_shell(
        _SMDEBUG_COMPLETE="bash_complete",
        COMP_WORDS="smdebug evaluate . --rule vanish",
        COMP_CWORD="4",
    )
    assert (said.stdout.split(), said.stderr) == (["plain,VanishingGradient"], "")
    for words in ("inspect ./my", "compare one ot", "attach run ru", "evaluate r --other-run x"):
        said = in_a_shell(
            _SMDEBUG_COMPLETE="bash_complete",
            COMP_WORDS=f"smdebug {words}",
            COMP_CWORD=str(len(words.split())),
        )
        # As the shell does it: with a completion of its own a command takes that away from it.
        assert (said.stdout, said.stderr) == (f"file,{words.split()[-1]}\n", "")
    for shell in ("bash", "zsh", "fish"):
        assert "_SMDEBUG_COMPLETE" in in_a_shell("completion", shell).stdout


NAMES_PLACES = {"PATH", "FILE", "FOLDER", "PLACE", "ONE", "OTHER", "JOB", "RULES"}
IS_NO_PLACE = {("status", "run"), ("detach", "rules")}  # of a deployed debugger


def offered_by(name: str, parameter: click.Parameter, incomplete: str) -> set[tuple[str, str]]:
    command = command_line.get_command(None, name)  # type: ignore[arg-type]
    found = parameter.shell_complete(click.Context(command, info_name=name), incomplete)
    return {(one.type, one.value) for one in found}


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - PASSED_ON))
def test_whatever_takes_a_place_completes_paths_and_whatever_takes_a_rule_completes_rules(name):
    command = command_line.get_command(None, name)  # type: ignore[arg-type]
    asks_a_stack = any(one.name == "stack" for one in command.params)
    for one in command.params:
        named = one.metavar if isinstance(one, click.Option) else (one.name or "").upper()
        if named in NAMES_PLACES and (name, one.name) not in IS_NO_PLACE:
            assert {kind for kind, _ in offered_by(name, one, "x")} <= {"file", "dir"}, one.name
            assert offered_by(name, one, "x"), one.name
        if "--rule" in one.opts and not (asks_a_stack and name != "report"):
            assert ("plain", "AllZero") in offered_by(name, one, "al")
            assert ("plain", "all") in offered_by(name, one, "al")


def completed(line: str, shell: str = "bash") -> list[str]:
    asked = {"COMP_WORDS": line, "COMP_CWORD": "0", "_SMDEBUG_COMPLETE": f"{shell}_complete"}
    said = in_a_shell(**asked)
    assert said.stderr == ""
    return said.stdout.splitlines()


def test_bash_hands_over_the_line_as_it_stands_since_it_parts_words_at_colons():
    assert completed("smdebug evaluate a --rule=vani") == ["plain,VanishingGradient"]
    assert completed("smdebug compare s3://bucket/run ot") == ["file,ot"]
    assert completed("smdebug evaluate a --set t=1 --rule vani") == ["plain,VanishingGradient"]
    assert completed("smdebug report a --compare ") == ["file,"]
    assert completed("smdebug insp") == ["plain,inspect"]
    assert completed("smdebug attach run Vani") == ["file,Vani", "plain,VanishingGradient"]
    assert completed("smdebug run --out") == ["plain,--out-dir"]
    assert completed("smdebug run --out-dir x tr") == ["file,tr"]


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
    said = _in_bash(script)
    assert said.stdout.splitlines() == [
        "VanishingGradient",
        *("compopt -o default", ""),
        *("compopt -o default", "VanishingGradient"),
        *("compopt -o default", ""),
    ]


def test_the_scripts_of_click_are_those_that_are_put_right():
    assert "${COMP_LINE:0:COMP_POINT}" in in_a_shell("completion", "bash").stdout
    zsh, fish = (in_a_shell("completion", shell).stdout for shell in ("zsh", "fish"))
    assert ("compset -P" in zsh, zsh.count('compadd -U -i "$IPREFIX"')) == (True, 1)
    assert (fish.count('"$option'), fish.count("set -l option")) == (3, 1)


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_script_for_a_shell_is_one_of_that_shell(shell, tmp_path):
    place = tmp_path / "script"
    place.write_text(in_a_shell("completion", shell).stdout)
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    said = subprocess.run([shell, "-n", place], capture_output=True, text=True, check=False)
    assert (said.returncode, said.stderr) == (0, "")


def test_a_closed_pipe_is_no_error(ill):
    # `true` is gone before a word was said, whichever the command, and whatever it is about to say.
    for words in (f"inspect {ill} --json", f"inspect {ill}", "--help", f"inspect {ill} --json"):
        said = _in_bash(f"set -o pipefail; {sys.executable} -m smdebug {words} | true")
        assert (said.returncode, said.stderr) == (0, "")


def test_the_code_is_told_even_if_nothing_else_can_be(ill):
    command = f"{sys.executable} -m smdebug inspect"
    for closed in ("2>&-", "2>/dev/full"):
        assert _in_bash(f"{command} {ill} {closed}").returncode == 0
        assert _in_bash(f"{command} {ill}/nope {closed}").returncode == 3
        assert _in_bash(f"{command} {ill}/nope --json {closed}").returncode == 3
    assert _in_bash(f"{command} {ill} >/dev/full").returncode == 3


def _in_bash(script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", script],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(PATHS)},
    )


def test_what_a_run_holds_cannot_command_the_terminal(capsys):
    table(("tensor",), [("evil\x1b[2J\nname",)])
    said = capsys.readouterr().out
    assert "\x1b" not in said.splitlines()[1]
    assert len(said.splitlines()) == 2


def test_wide_letters_keep_the_columns(capsys):
    table(("a", "b"), [("重み", "x"), ("abcd", "y")])
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].index("x") + 2 == lines[2].index("y")  # each of the two takes two columns


def test_progress_is_for_terminals_and_for_those_who_wait(capsys):
    bar = Progress("looking", 10)
    bar._begun -= 60
    bar.advance(5)
    bar.clear()
    assert capsys.readouterr().err == ""
    bar._visible = True
    bar._told -= 1
    bar.advance(1)
    assert "60%, 40 s left" in capsys.readouterr().err
    bar.clear()
    assert capsys.readouterr().err == "\r\x1b[K"


def test_progress_keeps_to_its_line(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    bar = Progress("looking at what is 長い", 10)
    bar._visible = True
    bar._begun -= 60
    bar._told -= 1
    bar.advance(5)
    said = capsys.readouterr().err.removeprefix("\r\x1b[K")
    assert (said.startswith("…"), said.endswith("50%, 60 s left"), len(said)) == (True, True, 39)


def test_a_dumb_terminal_gets_neither_colour_nor_a_line_that_is_written_over(monkeypatch):
    from smdebug.cli import commands, telling

    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert telling._is_watched()
    monkeypatch.setenv("TERM", "dumb")
    assert not telling._is_watched()
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    assert commands._wants_colour() is False


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
    assert set(examination._EXTRAS) == extras
    assert told["Python"] == told["numpy"] == told["checkout"] == "well"
    assert (said.code, "AWS account" in told) == (0, False)


def test_doctor_reaches_the_account_and_misses_the_stack(ask, aws):
    told = {one["what"]: one for one in ask("doctor", "--json").json}
    assert "us-east-1" in told["AWS account"]["found"]
    assert told["deployed debugger"]["state"] == "absent"
    said = ask("doctor", "--stack", "research")
    assert (said.code, "The stack research" in said.out) == (1, True)


def test_waiting_is_told_to_terminals_alone(capsys, monkeypatch):
    from smdebug.cli import telling

    monkeypatch.setattr(telling, "_PATIENCE", 0.0)
    with telling.waiting("opening it"):
        pass
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    told = telling.threading.Event()
    echo = telling.click.echo
    monkeypatch.setattr(telling.click, "echo", lambda *a, **k: (echo(*a, **k), told.set()))
    with telling.waiting("opening it"):
        assert told.wait(10)
    said = capsys.readouterr().err
    assert "opening it, 0 s" in said
    assert said.endswith("\r\x1b[K")


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
