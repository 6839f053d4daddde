"""The edits that `make mutate` makes, and how it tells which of them the tests notice."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tools.mutate import __main__ as mutate
from tools.mutate.edits import distinct, edits_of
from tools.mutate.rooms import ROOMS, room_of

CODE = """
def is_in(low, value, high):
    return low <= value < high


def unused(values):
    values.sort()
    return max(values)
"""
TESTS = """
from room.code import is_in


def test_is_in():
    assert is_in(1, 1, 3)
    assert not is_in(1, 4, 3)
"""


def edited(source: str) -> set[str]:
    data = source.encode()
    return {edit.apply(data).decode() for edit in distinct(edits_of(data), data)}


@pytest.mark.parametrize(
    ("source", "edits"),
    [
        ("x = a < b", {"x = a <= b"}),
        ("x = a and b or c", {"x = a and b and c", "x = a or b or c"}),
        ("x = [v for v in y if v]", {"x = [v for v in y if True]"}),
        ("if a:\n    f()\n", {"if (True):\n    f()\n", "if (False):\n    f()\n", "if a:\n    pass\n"}),
        ("def f(a=3): return g(a)", {"def f(a=4): return g(a)", "def f(a=3): return None"}),
        ("x = 'ä' + y - 0.5", {"x = 'ä' + y + 0.5", "x = 'ä' + y - 1.0"}),
        ("'a docstring'\nlogger.warning('%d', 3)\nraise_it: int = all(x)", {
            "'a docstring'\nlogger.warning('%d', 3)\nraise_it: int = any(x)"
        }),
        ("@cache\nclass A:\n    x: int\n    def __repr__(self):\n        return 3 + self.x\n", set()),
    ],
)  # fmt: skip
def test_each_edit_changes_one_place(source, edits):
    assert edited(source) == edits


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout with one room, and with the tool in it, as its own copy would have it."""
    for name, text in {"room/code.py": CODE, "tests/room/test_code.py": TESTS}.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
    (tmp_path / "pyproject.toml").write_text('[tool.pytest.ini_options]\npythonpath = ["."]\n')
    (tmp_path / "tools").symlink_to(Path(mutate.ROOT) / "tools")
    monkeypatch.setenv("PYTHONPATH", str(mutate.ROOT))
    monkeypatch.setattr(mutate, "ROOT", tmp_path)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    return tmp_path


def test_the_edits_that_no_test_notices_are_named(checkout, capsys, monkeypatch):
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw0")  # as where this test runs beside others
    equivalent = checkout / "equivalent.txt"
    equivalent.write_text("# none\nroom/code.py | unused | max -> min | it is not used\n")
    monkeypatch.setattr(mutate, "EQUIVALENT", equivalent)
    assert mutate.main(["room", "--sample", "0", "--processes", "1"]) == 1
    printed = capsys.readouterr().out
    assert "room/code.py:3 is_in: value < high: < -> <=  (no test notices)" in printed
    assert "room/code.py:7 unused: left out: values.sort()  (no test executes it)" in printed
    assert "is_in: low <= value: <= -> <" not in printed, "the first assertion notices it"
    assert "max -> min" not in printed, "it is listed as one that changes no answer"


def test_tests_that_fail_without_an_edit_are_said_and_nothing_is_tried(checkout):
    (checkout / "tests/room/test_code.py").write_text("def test_it():\n    assert not 'it'\n")
    with pytest.raises(SystemExit, match="fail without any edit"):
        mutate.main(["room", "--processes", "1"])


def test_each_room_has_code_and_tests():
    for room in ROOMS.values():
        assert all((mutate.ROOT / folder).is_dir() for folder in (*room.code, *room.tests))
    assert room_of("migrating", mutate.ROOT) is not None
    assert room_of("nothing", mutate.ROOT) is None


def test_what_is_listed_as_changing_no_answer_is_an_edit_of_today():
    for file, where, what in mutate.equivalent_edits():
        source = (mutate.ROOT / file).read_bytes()
        assert (where, what) in {(edit.where, edit.what) for edit in edits_of(source)}, (file, where, what)
