"""What a scan says of files that are no scripts, and how much work broken ones make."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from smdebug.migrating import Verdict, scan, sources

GOOD = "import smdebug.pytorch as smd\n"


def test_what_is_no_regular_file_is_that_files_line(tmp_path):
    os.mkfifo(tmp_path / "a_pipe.py")
    (tmp_path / "b_zeros.py").symlink_to("/dev/zero")
    (tmp_path / "c_lost.py").symlink_to(tmp_path / "nowhere")
    (tmp_path / "d_folder.py").mkdir()
    (tmp_path / "e_linked.py").symlink_to(tmp_path / "f_good.py")
    (tmp_path / "f_good.py").write_text(GOOD)
    found = {finding.place.file.rpartition("/")[2]: finding for finding in scan([tmp_path]).findings}
    assert {name: finding.message for name, finding in found.items() if name < "e"} == {
        "a_pipe.py": "This is not a regular file.",
        "b_zeros.py": "This is not a regular file.",
        "c_lost.py": "No such file or directory.",
        "d_folder.py": "Is a directory.",
    }
    assert found["e_linked.py"].verdict is found["f_good.py"].verdict is Verdict.WORKS


def test_no_more_than_the_limit_is_read_whatever_size_a_file_claims(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "_LARGEST", 1000)
    (tmp_path / "long.py").write_text("#" * 1001)
    (tmp_path / "fits.py").write_text("#" * 1000)
    (finding,) = scan([tmp_path]).findings
    assert (finding.place.file, finding.verdict) == (str(tmp_path / "long.py"), Verdict.UNREADABLE)
    # Files below /proc are regular, and claim to be empty.
    assert len(sources._content(Path("/proc/kallsyms"))) == 1001


def test_more_code_than_anyone_writes_is_refused_in_scripts_and_notebooks(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "_MOST_CODE", 100)
    cells = [{"cell_type": "code", "source": "#" * 60}] * 2
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": cells, "nbformat": 4}))
    (tmp_path / "b.py").write_text("#" * 101)
    (tmp_path / "c.ipynb").write_text(json.dumps({"cells": cells[:1], "nbformat": 4, "x": "y" * 200}))
    findings = scan([tmp_path]).findings
    assert {finding.place.file for finding in findings} == {str(tmp_path / n) for n in ("a.ipynb", "b.py")}
    assert all("characters of code" in finding.message for finding in findings)


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("x = " + "-" * 20_000 + "1", id="more signs than the parser takes"),
        pytest.param("x = " + "+".join("1" * 20_000), id="a sum deeper than a tree of the parser may be"),
        pytest.param("x = " + "(" * 5_000 + ")" * 5_000, id="more brackets than the parser takes"),
        pytest.param("smdebug" + ".a" * 20_000 + "()", id="an address of 20,000 parts"),
    ],
)
def test_nested_code_is_that_files_line_and_the_others_are_scanned(tmp_path, code):
    (tmp_path / "a.py").write_text(code)
    (tmp_path / "b.py").write_text(GOOD)
    found = [(f.place.file.rpartition("/")[2], f.verdict) for f in scan([tmp_path]).findings]
    assert found == [("a.py", Verdict.UNREADABLE), ("b.py", Verdict.WORKS)]


@pytest.mark.parametrize("statement", ['print "a"', "x = (", 'x = """', "@a", "try:", "if x:", "x = [1, (2"])
@pytest.mark.parametrize("lines", [400, 3200])
def test_the_work_for_a_broken_script_grows_with_its_length(statement, lines, monkeypatch):
    parsed = 0
    original = sources._parsed

    def counting(lines, first):
        nonlocal parsed
        parsed += len(lines)
        return original(lines, first)

    monkeypatch.setattr(sources, "_parsed", counting)
    sources.parse("a.py", None, f"{statement}\n" * lines)
    assert lines <= parsed <= (sources._TRIES_A_LINE + 4) * lines


def test_a_statement_of_many_lines_at_the_margin_is_found_behind_a_broken_one(tmp_path):
    text = 'text = """\n' + "a line\n" * 1000 + '"""\n'
    (tmp_path / "a.py").write_text(f'print "a"\n{text}{GOOD}')
    found = [(f.place.line, f.verdict) for f in scan([tmp_path]).findings]
    assert found == [(1, Verdict.UNREADABLE), (1004, Verdict.WORKS)]


def test_a_file_of_another_language_is_few_lines_and_the_rest_is_scanned(tmp_path):
    (tmp_path / "a.py").write_text('print "a"\n' * 3000 + GOOD)
    found = scan([tmp_path]).findings
    assert [f.place.line for f in found] == [*range(1, 21), 3001]
    assert [f.verdict for f in found] == [Verdict.UNREADABLE] * 20 + [Verdict.WORKS]
    assert found[19].message.endswith("The rest is scanned. 2,980 more statements are not Python 3.")
    assert "more" not in found[18].message


def test_a_long_line_is_shown_in_part(tmp_path):
    (tmp_path / "a.py").write_text(f"{GOOD.strip()}  # {'a' * 5000}\nx = 1 1{' ' * 9000}2\n")
    found = scan([tmp_path]).findings
    assert [f.place.line for f in found] == [1, 2]
    assert max(len(f.code) for f in found) == 300
