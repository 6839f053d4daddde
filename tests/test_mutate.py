"""The edits that `make mutate` makes, and how it tells which of them the tests notice."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tools.mutate import __main__ as mutate
from tools.mutate import running
from tools.mutate.edits import distinct, edits_of
from tools.mutate.journal import Journal, fingerprint
from tools.mutate.rooms import ROOMS, room_of
from tools.mutate.running import Copy

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
        ("x = y.reshape(-1, 2)", {"x = y.reshape(-1, 3)"}),
        ("x = zip(a, b, strict=True)", set()),
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
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # they take long to import
    monkeypatch.setattr(mutate, "ROOT", tmp_path)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    return tmp_path


def test_the_edits_that_no_test_notices_are_named(checkout, capsys, monkeypatch):
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw0")  # as where this test runs beside others
    equivalent = checkout / "equivalent.txt"
    equivalent.write_text("# none\nroom/code.py | unused | max -> min | it is not used\n")
    monkeypatch.setattr(mutate, "EQUIVALENT", equivalent)
    assert mutate.main(["room", "--count", "0", "--processes", "1"]) == 1
    printed = capsys.readouterr().out
    assert "room: 2 of 5 edits were noticed (40%; 90% wanted)" in printed
    assert "room/code.py:3 is_in: value < high: < -> <=  (no test notices)" in printed
    assert "room/code.py:7 unused: left out: values.sort()  (no test executes it)" in printed
    assert "is_in: low <= value: <= -> <" not in printed, "the first assertion notices it"
    assert "max -> min" not in printed, "it is listed as one that changes no answer"


def test_an_edit_of_what_is_computed_on_import_is_tried_in_a_fresh_process(checkout, capsys):
    (checkout / "room/code.py").write_text("LIMIT = 3\n\ndef limit():\n    return LIMIT\n")
    (checkout / "tests/room/test_code.py").write_text(
        "from room.code import limit\n\ndef test_it():\n    assert limit() == 3\n"
    )
    assert mutate.main(["room", "--processes", "1"]) == 0
    assert "room: 2 of 2 edits were noticed" in capsys.readouterr().out


def test_an_edit_of_a_function_needs_no_fresh_process_whatever_the_tests_have_frozen(
    checkout, capsys, monkeypatch
):
    (checkout / "conftest.py").write_text(
        "import gc\n\n\ndef pytest_collection_finish():\n    gc.collect()\n    gc.freeze()\n"
    )
    monkeypatch.setattr(Copy, "_ask_fresh", lambda *arguments: pytest.fail("it was imported again"))
    mutate.main(["room", "--count", "0", "--processes", "1"])
    assert "room: 2 of 6 edits were noticed" in capsys.readouterr().out


def test_a_process_that_a_test_starts_runs_the_edited_code(checkout, capsys):
    (checkout / "room/code.py").write_text("def is_low(value):\n    return value < 3\n")
    (checkout / "tests/room/test_code.py").write_text(
        "import subprocess, sys\n\nfrom room.code import is_low\n\n\ndef test_it():\n    is_low(1)\n"
        "    code = 'from room.code import is_low; assert not is_low(3) and is_low(2)'\n"
        "    subprocess.run([sys.executable, '-c', code], check=True)\n"
    )
    assert mutate.main(["room", "--processes", "1", "--count", "0"]) == 0, capsys.readouterr().out


@pytest.mark.parametrize(
    "started",
    [
        "code = f'from room.code import is_low; {check}'\n    paths = os.pathsep.join(sys.path)\n"
        "    subprocess.run([sys.executable, '-c', code], check=True, env={'PYTHONPATH': paths})",
        "from room.code import is_low\n    child = os.fork()\n    if not child:\n        try:\n"
        "            exec(check)\n            os._exit(0)\n        finally:\n            os._exit(1)\n"
        "    assert not os.waitpid(child, 0)[1]",
    ],
    ids=["started", "forked"],
)
def test_a_test_whose_processes_alone_execute_an_edit_is_known_to(started, checkout, capsys):
    (checkout / "room/code.py").write_text("def is_low(value):\n    return value < 3\n")
    (checkout / "tests/room/test_code.py").write_text(
        "import os, subprocess, sys\n\n\ndef test_it():\n"
        f"    check = 'assert not is_low(3) and is_low(2)'\n    {started}\n"
        f"\n\ndef test_again():\n    check = 'assert is_low(2)'\n    {started}\n"
    )
    assert mutate.main(["room", "--processes", "1", "--count", "0"]) == 0, capsys.readouterr().out


def test_what_a_cache_or_a_fixture_keeps_is_executed_by_each_test_that_uses_it(checkout, capsys):
    (checkout / "room/code.py").write_text(
        "from functools import cache\n\n\n@cache\ndef limit():\n    return 3\n\n\ndef low():\n    return 2\n"
    )
    (checkout / "tests/room/test_code.py").write_text(
        "import pytest\n\nfrom room import code\n\n\n@pytest.fixture(scope='module')\ndef low():\n"
        "    return code.low()\n\n\ndef test_types(low):\n    assert low < code.limit()\n\n\n"
        "def test_values(low):\n    assert (low, code.limit()) == (2, 3)\n"
    )
    assert mutate.main(["room", "--processes", "1", "--count", "0"]) == 0, capsys.readouterr().out


def test_a_module_of_a_process_that_sees_no_environment_has_the_tests_that_are_named(
    checkout, capsys, monkeypatch
):
    (checkout / "room/code.py").write_text("import sys\n\nis_low = int(sys.argv[1]) < 3\nprint(is_low)\n")
    (checkout / "tests/room/test_code.py").write_text(
        "import subprocess, sys\n\n\ndef test_it():\n    for number, low in ((2, 'True'), (3, 'False')):\n"
        "        command = [sys.executable, '-I', '-S', 'room/code.py', str(number)]\n"
        "        assert subprocess.check_output(command, text=True).strip() == low\n"
    )
    arguments = ["room", "--processes", "1", "--count", "0"]
    assert mutate.main(arguments) == 1
    assert "no test executes it" in capsys.readouterr().out
    room = room_of("room", checkout)._replace(apart={"room/code.py": "tests/room/"})
    monkeypatch.setitem(ROOMS, "apart", room)
    assert mutate.main(["apart", *arguments[1:]]) == 0, capsys.readouterr().out


def test_a_test_that_no_longer_ends_notices_the_edit(checkout, capsys, monkeypatch):
    monkeypatch.setattr(running, "LEAST_SECONDS", 0.5)
    (checkout / "room/code.py").write_text(
        "def last(values):\n    at = 0\n    while at < len(values):\n        at += 1\n    return at\n"
    )
    (checkout / "tests/room/test_code.py").write_text(
        "from room.code import last\n\ndef test_it():\n    assert last([1, 2]) == 2\n"
    )
    mutate.main(["room", "--processes", "1", "--count", "0"])
    printed = capsys.readouterr().out
    assert "0 -> 1  (no test notices)" in printed, "one that ends, too late or not"
    assert "left out: at += 1" not in printed


def test_tests_of_the_module_and_one_variant_of_each_come_first():
    seconds = {
        "tests/room/test_code.py::test_slow": 3.0,
        "tests/room/test_code.py::test_is_in[a]": 1.0,
        "tests/room/test_code.py::test_is_in[b]": 0.5,
        "tests/room/test_other.py::test_b": 0.2,
        "tests/else/test_else.py::test_c": 0.1,
        "tests/else/test_else.py::test_long": 50.0,
    }
    known = running.TestsByLine(seconds, {("room/code.py", 3): frozenset(seconds)}, frozenset())
    edit = edits_of(CODE.encode())[0]._replace(line=3)
    ordered = [
        "tests/room/test_code.py::test_is_in[b]",
        "tests/room/test_code.py::test_slow",
        "tests/room/test_other.py::test_b",
        "tests/else/test_else.py::test_c",
        "tests/room/test_code.py::test_is_in[a]",
    ]
    assert known.of("room/code.py", edit, 3, 20.0) == ordered
    assert known.of("room/code.py", edit, 3, 0.0) == ordered[:1], "one at least"


def test_a_run_that_was_stopped_goes_on_where_it_was(checkout, monkeypatch):
    tried = []
    real = Copy.is_noticed

    def is_noticed(copy, file, edit, *rest):
        tried.append(edit.what)
        if len(tried) == 4:
            raise KeyboardInterrupt
        return real(copy, file, edit, *rest)

    monkeypatch.setattr(Copy, "is_noticed", is_noticed)
    arguments = ["room", "--count", "6", "--processes", "1"]
    with pytest.raises(KeyboardInterrupt):
        mutate.main(arguments)
    mutate.main(arguments)
    assert len(tried) == 4 + 3, "three of six were known"


def test_a_changed_file_of_tests_alone_is_run_again_to_see_what_it_executes(checkout, monkeypatch):
    traced = []
    real = Copy.trace

    def trace(copy, tests):
        traced.append(sorted(tests))
        return real(copy, tests)

    monkeypatch.setattr(Copy, "trace", trace)
    other = checkout / "tests/room/test_other.py"
    other.write_text("def test_other():\n    pass\n")
    arguments = ["room", "--count", "0", "--processes", "1"]
    assert mutate.main(arguments) == 1
    other.write_text("from room.code import unused\n\ndef test_other():\n    assert unused([1, 2]) == 2\n")
    mutate.main(arguments)
    assert traced == [
        ["tests/room/test_code.py::test_is_in"],
        ["tests/room/test_other.py::test_other"],
        ["tests/room/test_other.py::test_other"],
    ]


def test_a_journal_keeps_what_was_found_and_forgets_it_with_other_sources(tmp_path):
    path = tmp_path / "build" / "room"
    journal = Journal(path, "as they were")
    journal.keep("a", None)
    journal.keep("b", {"seconds": {}})
    with path.open("a") as file:
        file.write('\n["c", tr')  # the process was killed
    again = Journal(path, "as they were")
    assert again["a"] is None
    assert again["b"] == {"seconds": {}}
    assert "c" not in again
    again.keep("c", True)
    assert "c" in Journal(path, "as they were")
    assert "a" not in Journal(path, "changed")


def test_the_digest_of_sources_changes_with_a_name_or_a_content(tmp_path):
    for name, text in (("a", "1"), ("b", "1"), ("c", "2")):
        (tmp_path / name).write_text(text)
    digests = {fingerprint(tmp_path, [tmp_path / name]) for name in "abc"}
    assert len(digests) == 3
    assert fingerprint(tmp_path, [tmp_path / "a"]) in digests


def test_a_sample_is_the_same_for_the_same_seed_and_a_share_is_of_all_edits(checkout, capsys):
    edits = list(mutate.candidates(["room"], ""))
    assert mutate.chosen_of(edits, 5, seed=1) == mutate.chosen_of(edits, 5, seed=1)
    assert mutate.chosen_of(edits, 5, seed=1) != mutate.chosen_of(edits, 5, seed=2)
    assert mutate.chosen_of(edits, 0, seed=1) == edits
    mutate.main(
        ["room", "--share", "0.34", "--processes", "1", "--tests", "tests/room/test_code.py::test_is_in"]
    )
    assert f"room: 2 of {len(edits)} edits, seed 0." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nothing"], "There is no room 'nothing'. Choose one of saving"),
        (["room", "--share", "3"], "--share is more than 0 and at most 1"),
        (["room", "--tests", "tests/other.py"], "There is no tests/other.py"),
    ],
)
def test_what_cannot_be_tried_is_said_before_anything_runs(arguments, said, checkout, capsys):
    with pytest.raises(SystemExit) as ended:
        mutate.main(arguments)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_tests_that_fail_without_an_edit_are_said_and_nothing_is_tried(checkout):
    (checkout / "tests/room/test_code.py").write_text("def test_it():\n    assert not 'it'\n")
    with pytest.raises(SystemExit, match="fail without any edit"):
        mutate.main(["room", "--processes", "1"])


def test_each_room_has_code_and_tests():
    for room in ROOMS.values():
        paths = [*room.code, *room.tests, *room.apart, *room.apart.values()]
        assert [path for path in paths if not (mutate.ROOT / path).exists()] == []
    assert room_of("migrating", mutate.ROOT) is not None
    assert room_of("nothing", mutate.ROOT) is None


def test_what_is_listed_as_changing_no_answer_is_an_edit_of_today():
    for file, where, what in mutate.equivalent_edits():
        source = (mutate.ROOT / file).read_bytes()
        assert (where, what) in {(edit.where, edit.what) for edit in edits_of(source)}, (file, where, what)
