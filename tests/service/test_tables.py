"""Lists that read well, whatever is in them."""

from __future__ import annotations

from datetime import UTC, datetime

from smdebug.service.tables import Rows, cell


def test_a_list_is_a_table_in_a_terminal():
    rows = Rows([{"name": "a", "step": 10}, {"name": "longer", "step": None}], ("name", "step"))
    assert repr(rows) == "name    step\na       10\nlonger"


def test_an_empty_list_names_what_is_missing():
    assert repr(Rows([], ("a",), "No <rule>.")) == "No <rule>."
    assert Rows([], ("a",), "No <rule>.")._repr_html_() == "<p>No &lt;rule&gt;.</p>"


def test_a_list_is_a_table_in_a_notebook_and_nothing_in_it_is_markup():
    rows = Rows([{"a_b": "<script>alert(1)</script>"}], ("a_b",))
    assert rows._repr_html_() == (
        "<table><thead><tr><th>a b</th></tr></thead><tbody>"
        "<tr><td>&lt;script&gt;alert(1)&lt;/script&gt;</td></tr></tbody></table>"
    )


def test_long_lists_are_cut_and_marked():
    rows = Rows([{"n": number} for number in range(1000)], ("n",))
    assert repr(rows).splitlines()[-1] == "… and 940 more"
    assert rows._repr_html_().endswith("<p>… and 500 more</p>")
    assert len(rows.to_dict()) == 1000


def test_a_cell_is_one_line_and_not_too_long():
    rows = Rows([{"text": "two\nlines " + "x" * 100}], ("text",))
    shown = repr(rows).splitlines()[1]
    assert len(shown) == 60
    assert shown.startswith("two lines x")
    assert shown.endswith("…")


def test_nothing_in_a_table_commands_a_terminal():
    assert cell("\x1b[31mred\x1b[0m\x07") == r"\x1b[31mred\x1b[0m\x07"


def test_values_are_shown_as_a_person_would_write_them():
    assert cell(True) == "yes"
    assert cell(None) == ""
    assert cell(datetime(2026, 11, 21, 6, 38, 36, 120_000, UTC)) == "2026-11-21 06:38:36"
    assert cell({"IssuesFound": 1, "Error": 2}) == "1 IssuesFound, 2 Error"
    assert cell(("worker_0", "worker_1")) == "worker_0, worker_1"
