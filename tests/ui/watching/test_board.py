"""Which runs are found, what the list shows of them, and what is remembered."""

from __future__ import annotations

import stat
import subprocess
import sys

import pytest

import smdebug
from smdebug import modes
from smdebug.runs.watched_places import runs_in
from smdebug.storage import open_storage
from smdebug.ui.finding.local_runs import runs_below
from smdebug.ui.following.reading import RunReader
from smdebug.ui.watching import cache as cache_module
from smdebug.ui.watching.board import Board
from smdebug.ui.watching.cache import Cache
from smdebug.ui.watching.keeping import kept_of
from tests.ui.written_runs import WrittenRun


class Clock:
    """A clock that a test moves."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def listed(board):
    while board.work([]) == 0:
        pass
    return {row.name: row.glance for row in board.rows}


def test_the_same_runs_are_found_as_by_listing_keys(tmp_path):
    for name in ("b", "a", "deep/er/still/run", "too/deep/for/any/run", "with space/ä"):
        WrittenRun(tmp_path / name).write(1, end=True)
    (tmp_path / "empty").mkdir()
    (tmp_path / "a" / "inside").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    (tmp_path / "file").write_text("x")
    found = list(runs_below(str(tmp_path)))
    assert found == list(runs_in(open_storage(str(tmp_path))))
    assert found == ["a", "b", "deep/er/still/run", "with space/ä"]


def test_a_run_that_begins_later_appears(tmp_path):
    clock = Clock()
    WrittenRun(tmp_path / "a").write(2, end=True)
    board = Board([str(tmp_path)], clock=clock)
    assert set(listed(board)) == {"a"}
    WrittenRun(tmp_path / "b").write(2)
    assert set(listed(board)) == {"a"}  # not listed again at once
    clock.now += 6
    found = listed(board)
    assert {name: each.state for name, each in found.items()} == {"a": "ended", "b": "training"}


def test_steps_of_evaluations_are_no_steps_of_the_training(tmp_path):
    WrittenRun(tmp_path / "a", mode=lambda step: modes.EVAL if step >= 3 else modes.TRAIN).write(5, end=True)
    board = Board([str(tmp_path)])
    glance = listed(board)["a"]
    assert (glance.last_step, glance.training_step) == (4, 2)
    (row,) = board.rows
    while not board.reader(row.id).is_read:
        board.work([row.id])
    assert row.glance.checked
    assert (row.glance.last_step, row.glance.training_step) == (4, 2)


def test_a_list_that_no_page_shows_is_read_rarely(tmp_path):
    clock = Clock()
    WrittenRun(tmp_path / "a").write(2)
    board = Board([str(tmp_path)], clock=clock)
    listed(board)
    WrittenRun(tmp_path / "b").write(2)
    for _ in range(4):
        clock.now += 6
        board.work([], list_is_open=False)
    assert [row.name for row in board.rows] == ["a"]
    clock.now += 6
    board.work([], list_is_open=False)
    assert [row.name for row in board.rows] == ["a", "b"]


def test_what_was_glanced_at_is_remembered_until_another_run_takes_the_place(tmp_path):
    cache = Cache(tmp_path / "cache")
    WrittenRun(tmp_path / "runs" / "a").write(4, end=True)
    listed(Board([str(tmp_path / "runs")], cache=cache))
    again = Board([str(tmp_path / "runs")], cache=cache)
    again.find_runs()
    assert again.rows[0].glance.last_step == 3
    import shutil

    shutil.rmtree(tmp_path / "runs" / "a")
    WrittenRun(tmp_path / "runs" / "a").write(9, end=True)
    other = Board([str(tmp_path / "runs")], cache=cache)
    other.find_runs()
    assert other.rows[0].glance.state == "unknown"


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b'{"mark": 1}', b"\xff\xfe"])
def test_a_damaged_cache_is_not_a_cache(tmp_path, content):
    cache = Cache(tmp_path)
    cache.put("glance", "a", "1", {"x": 1})
    assert cache.get("glance", "a", "1") == {"x": 1}
    assert cache.get("glance", "a", "2") is None
    next(tmp_path.iterdir()).write_bytes(content)
    assert cache.get("glance", "a", "1") is None


def test_a_file_of_the_cache_that_somebody_made_too_large_is_not_read(tmp_path, monkeypatch):
    cache = Cache(tmp_path)
    cache.put("glance", "a", "1", "x" * 100)
    size = next(tmp_path.iterdir()).stat().st_size
    monkeypatch.setattr(cache_module, "_LONGEST_FILE", size)
    assert cache.get("glance", "a", "1") == "x" * 100
    monkeypatch.setattr(cache_module, "_LONGEST_FILE", size - 1)
    assert cache.get("glance", "a", "1") is None


def test_a_cache_is_of_its_user_alone_and_removes_no_file_of_others(tmp_path):
    folder = tmp_path / "cache"
    cache = Cache(folder, most_bytes=0)
    cache.put("verdict", "run", "mark", 1)
    assert stat.S_IMODE(folder.stat().st_mode) & 0o077 == 0
    (folder / "notes.txt").write_text("of somebody else")
    cache.trim()
    assert [file.name for file in folder.iterdir()] == ["notes.txt"]


def test_a_cache_is_bounded(tmp_path):
    cache = Cache(tmp_path, most_bytes=1000)
    for number in range(10):
        cache.put("glance", str(number), "1", "x" * 200)
    cache.trim()
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= 1000


def test_a_place_that_cannot_be_listed_is_named_and_the_others_are_shown(tmp_path):
    WrittenRun(tmp_path / "a").write(2, end=True)
    (tmp_path / "b" / "deep").mkdir(parents=True)
    board = Board([str(tmp_path / "a"), str(tmp_path / "b" / "deep")])
    (tmp_path / "b" / "deep").rmdir()
    (tmp_path / "b" / "deep").write_text("a file by now")
    found = listed(board)
    assert found["a"].state == "ended"
    assert str(tmp_path / "b" / "deep") in next(iter(board.errors.values()))


def test_ten_thousand_tensors_are_read_within_the_budget(tmp_path):
    WrittenRun(tmp_path / "a", tensors=10_000).write(3, end=True)
    board = Board([str(tmp_path)])
    board.find_runs(patience=0)
    reader = board.reader(board.rows[0].id)
    while reader.advance(10):
        pass
    assert len(reader.kinds["gradients"].names) == 10_000
    assert reader.nbytes < 200 << 20


def test_the_module_is_called_for_a_notebook(tmp_path, monkeypatch):
    monkeypatch.setenv("SMDEBUG_UI_CACHE", str(tmp_path / "cache"))
    import smdebug.ui

    WrittenRun(tmp_path / "a").write(2, end=True)
    shown = smdebug.ui(str(tmp_path), height=300)
    try:
        assert smdebug.ui(str(tmp_path)) is shown
        assert 'height="300"' in shown._repr_html_() or 'height="720"' in shown._repr_html_()
        assert "&amp;frame=1" in shown._repr_html_()
    finally:
        shown.stop()


def test_a_notebook_needs_no_other_import_than_that_of_the_package():
    script = "import smdebug; print(callable(smdebug.ui), 'ui' in dir(smdebug))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True"]


def test_the_list_shows_what_a_run_was_started_with(tmp_path):
    for name, rate in (("a", 0.1), ("b", 0.2)):
        place = str(tmp_path / name)
        options = {"config": {"lr": rate}, "tags": ["first"], "save_all": True}
        with smdebug.Hook(place, **options) as hook, hook.step():
            hook.record("loss", 1.0)
    (tmp_path / "b" / "origin.json").write_text("{")
    found = listed(Board([str(tmp_path)]))
    assert found["a"].configuration["lr"] == 0.1
    assert found["a"].configuration["tags"] == "first"
    assert found["b"].configuration == {}  # a damaged file costs no row
    assert found["b"].steps == 1


def test_charts_are_remembered_before_the_rules_have_reached_their_end(tmp_path, monkeypatch):
    cache = Cache(tmp_path / "cache")
    WrittenRun(tmp_path / "runs" / "a").write(40, end=True)
    monkeypatch.setattr(RunReader, "_check_steps", lambda reader, until: None)
    board = Board([str(tmp_path / "runs")], cache=cache)
    listed(board)
    (row,) = board.rows
    while not board.reader(row.id).is_read:
        board.work([row.id])
    kept = kept_of(cache, row.path)
    assert (kept.read_through, kept.checked, kept.is_complete) == (39, 0, False)
    monkeypatch.undo()

    clock = Clock()
    again = Board([str(tmp_path / "runs")], cache=cache, clock=clock)
    listed(again)
    reader = again.reader(row.id)
    assert reader.steps_read == 40  # at once
    assert again.work([row.id]) > 0
    assert reader.trial is None  # the page first
    clock.now += 1
    while again.work([row.id]) == 0:
        pass
    assert reader.steps_checked == 40
    assert kept_of(cache, row.path).is_complete


def test_a_remembered_run_is_opened_for_the_values_of_its_steps(tmp_path):
    cache = Cache(tmp_path / "cache")
    WrittenRun(tmp_path / "runs" / "a").write(10, end=True)
    clock = Clock()
    for _ in range(2):
        board = Board([str(tmp_path / "runs")], cache=cache, clock=clock)
        listed(board)
        (row,) = board.rows
        board.work([row.id])
        clock.now += 1
        while board.work([row.id]) == 0:
            pass
        reader = board.reader(row.id)
        assert reader.is_complete
        assert reader.trial.steps() == list(range(10))
    assert reader.following is None  # the second time, its verdict was remembered
