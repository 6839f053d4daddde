"""The help of every command has one form: usage, a sentence, details, examples, exit codes, options."""

from __future__ import annotations

import re

import pytest

from smdebug.cli.commands import COMMANDS
from smdebug.launching.scripts import parser
from tests.support.looking import each


def help_of(name, ask, monkeypatch, capsys, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    if name == "run":
        return parser().format_help()
    from smdebug.cli.main import main

    capsys.readouterr()
    assert main([name, "--help"]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_every_command_has_one_form(name, ask, monkeypatch, capsys, columns):
    text = help_of(name, ask, monkeypatch, capsys, columns)
    usage, sentence, *paragraphs, options = re.split(r"\n\s*\n", text.strip())
    assert usage.startswith(f"Usage: smdebug {name} [OPTIONS]")
    assert re.fullmatch(r"[A-Z].*[.]", sentence.strip(), re.DOTALL)
    examples, exits = paragraphs[-2:]
    heading, *calls = examples.splitlines()
    assert heading == "  Examples:"
    assert calls
    assert all(re.match(r"    .*\bsmdebug(?:\.run)?\b", call) for call in calls)
    assert exits.startswith("  Exits ")
    assert exits.endswith(".")
    assert options.startswith("Options:\n")
    assert options.rstrip().endswith("Show this message and exit.")
    assert [line for line in text.splitlines() if len(line) > min(columns, 100)] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_paragraphs_of_help_begin_at_one_margin(name, ask, monkeypatch, capsys):
    text = help_of(name, ask, monkeypatch, capsys, 80).partition("Options:")[0]
    for paragraph in each(re.split(r"\n\s*\n", text.strip("\n"))[1:], at_least=3):
        lines = paragraph.splitlines()
        assert re.match(r"  \S", lines[0]), paragraph
        inner = r"    \S" if lines[0] == "  Examples:" else r"  \S"
        assert all(re.match(inner, line) for line in lines[1:]), paragraph


def test_every_option_is_described_by_a_sentence(ask, monkeypatch, capsys):
    for name in each(COMMANDS, at_least=20):
        text = help_of(name, ask, monkeypatch, capsys, 100).partition("Options:\n")[2]
        for option in re.split(r"\n(?=  -)", text.rstrip()):
            described = re.sub(r"\s*\[[^\[\]]*\]$", "", " ".join(option.split()))
            assert described.endswith("."), (name, option)
