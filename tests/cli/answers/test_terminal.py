"""What a terminal shows: colour, encodings, tables and progress."""

from __future__ import annotations

import json
import re
import sys

import numpy as np
import pytest

import smdebug
from smdebug.cli import commands
from smdebug.cli.answers import diagnosis_output, output, progress
from smdebug.cli.answers.output import print_table
from smdebug.cli.answers.progress import Progress
from smdebug.diagnosis import Issue
from smdebug.plain_text import escaped
from smdebug.rules.rule_sets import documentation_of
from tests.cli.processes import in_a_shell


def test_a_terminal_that_knows_no_unicode_gets_none(failing):
    result = in_a_shell("inspect", str(failing), PYTHONIOENCODING="ascii")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.isascii()


def test_a_terminal_that_knows_some_letters_gets_those_and_json_stays_json(tmp_path):
    """Click treats an ASCII terminal as UTF-8, but respects Latin-1."""
    saved = [f"名_loss_{at}" for at in range(50)]
    place = str(tmp_path / "run")
    with smdebug.Hook(place, include_collections=["losses"]) as hook, hook.step():
        hook.record_all(dict.fromkeys(saved, 1.0))
    latin = {"PYTHONIOENCODING": "latin-1"}
    result = in_a_shell("inspect", str(tmp_path / "run"), "--json", **latin)
    assert (result.returncode, result.stderr) == (0, "")
    assert [tensor["name"] for tensor in json.loads(result.stdout)["tensors"]] == sorted(saved)
    result = in_a_shell("inspect", str(tmp_path / "run"), **latin)
    assert (result.returncode, "... and 10 more" in result.stdout) == (0, True)


def test_marks_differ_without_unicode(failing):
    rules = ("--rule", "VanishingGradient", "--rule", "ExplodingTensor")
    result = in_a_shell("evaluate", str(failing), *rules, PYTHONIOENCODING="latin-1").stdout
    marks = [line[0] for line in result.splitlines() if line and line[0] != " "]
    assert marks == ["x", "x", "+"]


def test_colour_is_a_matter_of_the_environment(failing):
    assert "\x1b[" not in in_a_shell("inspect", str(failing)).stdout
    assert "\x1b[" in in_a_shell("inspect", str(failing), FORCE_COLOR="1").stdout
    assert "\x1b[" not in in_a_shell("inspect", str(failing), FORCE_COLOR="1", NO_COLOR="1").stdout


def test_what_a_run_holds_cannot_command_the_terminal(capsys):
    print_table(("tensor",), [("evil\x1b[2J\nname",)])
    output = capsys.readouterr().out
    assert "\x1b" not in output.splitlines()[1]
    assert len(output.splitlines()) == 2


def test_every_command_shows_escape_sequences_in_a_name_as_text(tmp_path):
    evil = "evil\x1b]0;title\x07\x1b[31mred\x1b[2J\u202e"
    with smdebug.Hook(str(tmp_path / "run"), save_all=True) as hook:
        for _ in range(2):
            with hook.step():
                hook.record_all({evil: np.array([np.nan]), "loss": np.array([1.0])})
    path = str(tmp_path / "run")
    for words in (
        ("inspect", path),
        ("tensor", path, evil),
        ("evaluate", path, "--rule", "ExplodingTensor"),
        ("tensor", path, evil + "?"),
        ("plot", path, "--tensor", evil + "?", "-o", str(tmp_path / "plot.png")),
    ):
        result = in_a_shell(*words, FORCE_COLOR="1")
        output = result.stdout + result.stderr
        assert "\x1b[31mred" not in output, words
        assert r"evil\x1b]0;title\x07\x1b[31mred\x1b[2J\u202e" in output, words
        rest = re.sub(r"\x1b\[(0|1|2|31|32)m", "", output)
        assert not set("\x1b\x07\u202e") & set(rest), words


EVIL = "\x1b]0;title\x07\x1b[31mred\x9b2J\u202e\r\nFAKE"
HOSTILE_RULE = f"""
from smdebug.rules import Finding, Rule

class Hostile(Rule):
    def invoke_at_step(self, step):
        self.findings = [Finding("x" + {EVIL!r}, "mean", 1.0, 2.0, message="found" + {EVIL!r})]
        return True

class Failing(Rule):
    def invoke_at_step(self, step):
        raise ValueError("failed" + {EVIL!r})
"""


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A folder with two runs whose names, configuration, tags and notes would write to a terminal."""
    place = tmp_path_factory.mktemp("hostile")
    for run, rate in (("a", 0.1), ("b", 0.2)):
        with smdebug.Hook(
            str(place / run), config={"lr" + EVIL: rate}, tags=["t" + EVIL], note="n" + EVIL
        ) as hook:
            for step in range(12):
                with hook.step():
                    hook.record("loss", 10.0**step * rate)
                    weights = np.full(3, np.nan if step > 6 else rate)
                    hook.record_all({"weight" + EVIL: weights, "gradient/weight" + EVIL: weights})
    (place / "hostile.py").write_text(HOSTILE_RULE)
    return place


@pytest.mark.parametrize(
    "words",
    [
        "{}/a --rule NonFiniteValues",
        "evaluate {}/a --all-steps --rule NonFiniteValues",
        "evaluate {}/a --rule NonFiniteValues --json",
        "evaluate {}/a --rule-file {}/hostile.py",
        "watch {}/a --once --rule-file {}/hostile.py",
        "watch {}/a --once --rule NonFiniteValues --json",
        "report {}/a -o {}/report.html --rule-file {}/hostile.py",
        "inspect {}/a --tensors",
        "runs {}",
        "compare {}/a {}/b",
        "compare {}/a {}/b --json",
        "plot {}/a --tensor loss --with {}/b -o {}/plot.svg",
        "export npz {}/a -o {}/a.npz",
        "verify {}/a",
        "zoom {}/a --tensor EVIL",
        "tensor {}/a EVIL",
        "evaluate {}/a --rule EVIL",
        "evaluate {}/a --set EVIL=1 --rule AllZero",
        "runs {} --where EVIL=1",
        "migrate EVIL",
        "EVIL",
    ],
)
def test_no_command_lets_a_run_or_a_rule_write_to_the_terminal(words, hostile, ask):
    given = [word.replace("{}", str(hostile)).replace("EVIL", EVIL) for word in words.split()]
    answer = ask(*given)
    check_harmless(answer.out + answer.err)
    assert answer.code != 4


@pytest.mark.parametrize("words", [("EVIL",), ("--EVIL", "x")])
def test_smdebug_run_does_not_either(words):
    result = in_a_shell("run", *(word.replace("EVIL", EVIL) for word in words))
    check_harmless(result.stderr)
    assert result.returncode == 2


def check_harmless(printed: str) -> None:
    assert printed
    assert not {char for char in printed if char != "\n" and escaped(char) != char}
    assert not [line for line in printed.splitlines() if line.startswith("FAKE")]


def test_wide_letters_keep_the_columns(capsys):
    print_table(("a", "b"), [("重み", "x"), ("abcd", "y")])
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].index("x") + 2 == lines[2].index("y")  # each of the two takes two columns


def test_progress_is_for_terminals_and_for_those_who_wait(capsys):
    bar = Progress("looking", 10)
    bar._started -= 60
    bar.advance(5)
    bar.clear()
    assert capsys.readouterr().err == ""
    bar._visible = True
    bar._updated -= 1
    bar.advance(1)
    assert "60%, 40 s left" in capsys.readouterr().err
    bar.clear()
    assert capsys.readouterr().err == "\r\x1b[K"


def test_progress_keeps_to_its_line(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    bar = Progress("looking at what is 長い", 10)
    bar._visible = True
    bar._started -= 60
    bar._updated -= 1
    bar.advance(5)
    output = capsys.readouterr().err.removeprefix("\r\x1b[K")
    assert (output.startswith("…"), output.endswith("50%, 60 s left"), len(output)) == (
        True,
        True,
        39,
    )


def test_a_dumb_terminal_gets_neither_colour_nor_a_line_that_is_written_over(monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert progress._can_overwrite()
    monkeypatch.setenv("TERM", "dumb")
    assert not progress._can_overwrite()
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    assert commands._use_colour() is False


def test_waiting_is_reported_to_terminals_alone(capsys, monkeypatch):
    monkeypatch.setattr(progress, "_DELAY", 0.0)
    with progress.waiting("opening it"):
        pass
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    written = progress.threading.Event()
    echo = progress.click.echo
    monkeypatch.setattr(progress.click, "echo", lambda *a, **k: (echo(*a, **k), written.set()))
    with progress.waiting("opening it"):
        assert written.wait(60)
    output = capsys.readouterr().err
    assert "opening it, 0 s" in output
    assert output.endswith("\r\x1b[K")


def test_curves_take_the_room_that_is_left(capsys, monkeypatch):
    def widths(columns):
        monkeypatch.setattr(output, "terminal_width", lambda: columns)
        output.print_curves(("loss", "last", "curve"), [(("a" * 30, 1.5), list(range(900)))])
        return [len(line) for line in capsys.readouterr().out.splitlines()]

    assert widths(60)[1] == 60
    assert widths(200)[1] == 30 + 2 + 4 + 2 + 40
    assert max(widths(40)) <= 40


@pytest.mark.parametrize(
    ("columns", "shown"), [(80, "smdebug rules NonFiniteValues"), (120, "rules.md#nonfinitevalues")]
)
def test_an_address_that_a_terminal_would_cut_becomes_a_command(columns, shown, monkeypatch):
    monkeypatch.setattr(diagnosis_output, "terminal_width", lambda: columns)
    issue = Issue(
        cause="exploding",
        what="The loss is NaN",
        since=3,
        last=3,
        where=("loss",),
        workers=(),
        why=(),
        advice=(),
        rules=("NonFiniteValues",),
        docs=documentation_of("NonFiniteValues"),
    )
    assert diagnosis_output.issue_lines(issue)[-1].endswith(shown)
