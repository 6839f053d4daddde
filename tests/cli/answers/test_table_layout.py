"""Tables fit into the terminal, and are complete everywhere else."""

from __future__ import annotations

import sys

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smdebug.cli.answers.colours import bad, faint, good, is_styled
from smdebug.cli.answers.output import Styled, print_table
from smdebug.cli.answers.table_layout import cut_styled, lay_out, width_of, wrapped
from tests.cli.conftest import failing_run
from tests.cli.deployed.test_deployed import stock
from tests.service.stocked import RUN

__all__ = ["stock"]  # a fixture of both files

SENTENCE = "Gradients so small that the layers they belong to have stopped learning."
RULES = [("VanishingGradient", SENTENCE), ("Confusion", "One class for another.")]
TENSORS = [("gradient/encoder.layers.0.self_attention.query.weight", "3×4", "1.18 KB", "1e-09")]


def lines_of(names, rows, room=None):
    laid = lay_out(names, rows, room)
    return [*([laid.head] if laid.head is not None else []), *laid.lines]


def test_without_a_terminal_nothing_is_cut():
    assert any(SENTENCE in line for line in lines_of(("rule", "what it looks for"), RULES))
    assert lines_of(("tensor",), [("x" * 300,)])[1] == "x" * 300


@pytest.mark.parametrize("room", [20, 40, 60, 80, 120])
def test_no_line_is_longer_than_the_terminal(room):
    for names, rows in (
        (("rule", "what it looks for"), RULES),
        (("tensor", "shape", "size", "min"), TENSORS),
        (("tensor",), [("重み" * 40,), ("x" * 200,)]),
        (("", "what", "found"), [(Styled(good("✓")), "Python", "3.11 at /a/long/path" * 4)]),
    ):
        assert max(map(width_of, lines_of(names, rows, room))) <= room


def test_a_long_text_at_the_end_continues_below_and_is_whole():
    head, *lines = lines_of(("rule", "what it looks for"), RULES, 60)
    assert head == "rule               what it looks for"
    assert lines[:2] == [
        "VanishingGradient  Gradients so small that the layers they",
        "                   belong to have stopped learning.",
    ]
    assert " ".join(line[19:] for line in lines[:2]) == SENTENCE


def test_a_long_name_before_numbers_is_cut():
    head, line = lines_of(("tensor", "shape", "size", "min"), TENSORS, 60)
    assert line == "gradient/encoder.layers.0.self_atten…  3×4    1.18 KB  1e-09"
    assert head.endswith("min")


def test_where_not_even_that_fits_a_row_is_folded():
    assert lines_of(("tensor", "shape", "size", "min"), TENSORS, 40) == [
        "gradient/encoder.layers.0.self_attention",
        ".query.weight",
        "  shape: 3×4  size: 1.18 KB  min: 1e-09",
    ]
    assert lines_of(("rule", "what it looks for"), RULES, 30)[-2:] == [
        "Confusion",
        "  One class for another.",
    ]
    assert lines_of(("step", "found"), [("7", "x" * 30)], 20)[0] == "step 7"


def test_words_are_parted_at_spaces_and_long_ones_anywhere():
    assert wrapped("one two three", 8) == ["one two", "three"]
    assert wrapped("abcdefgh ij", 4) == ["abcd", "efgh", "ij"]
    assert wrapped("重み重み", 4) == ["重み", "重み"]


def on_a_terminal(monkeypatch, columns):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", str(columns))


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_the_tables_of_the_commands_fit(ask, monkeypatch, stock, tmp_path, columns):
    failing_run(tmp_path / "failing")
    on_a_terminal(monkeypatch, columns)
    tables = []
    monkeypatch.setattr(
        "smdebug.cli.answers.output.lay_out",
        lambda *asked, **more: tables.append(lay_out(*asked, **more)) or tables[-1],
    )
    for words in (
        ("inspect", tmp_path / "failing"),
        ("tensor", tmp_path / "failing", "loss"),
        ("compare", tmp_path / "failing", tmp_path / "failing"),
        ("rules",),
        ("rules", "LossNotDecreasing"),
        ("runs",),
        ("status", RUN),
        ("findings", RUN),
        ("doctor", "--offline"),
    ):
        answer = ask(*words)
        assert (answer.code in (0, 1), answer.err) == (True, "")
    lines = [line for table in tables for line in (table.head or "", *table.lines)]
    assert max(width_of(click.unstyle(line)) for line in lines) <= columns


def test_a_mark_that_the_terminal_cannot_show_takes_its_room(capsys, monkeypatch):
    on_a_terminal(monkeypatch, 60)
    monkeypatch.setattr("smdebug.cli.answers.output._encoding", lambda: "ascii")
    print_table(("tensor", "shape", "size", "min"), TENSORS)
    line = capsys.readouterr().out.splitlines()[1]
    assert ("self_att..." in line, len(line) <= 60) == (True, True)


@given(st.text(max_size=60), st.integers(1, 40))
def test_styled_text_is_cut_at_its_visible_letters_and_keeps_its_styles(text, width):
    styled = f"{good('✓')} {bad(text)} {faint('end')}"
    shorter = cut_styled(styled, width)
    assert width_of(shorter) <= max(1, width)
    markers = [letter for letter in styled if is_styled(letter)]
    assert [letter for letter in shorter if is_styled(letter)] == markers
