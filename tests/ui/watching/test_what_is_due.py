"""What is listed, summarised, read and checked when: with a clock that the tests move."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from smdebug.exceptions import SMDebugError
from smdebug.runs.requests.annotating import Annotated
from smdebug.ui.finding.glance import Glance, curve_of
from smdebug.ui.finding.places import FoundRun, Listing
from smdebug.ui.watching.board import MOST_OPEN, MOST_REMOTE_CHECKS, Board, Row, id_of
from smdebug.ui.watching.cache import Cache
from smdebug.ui.watching.checks import AGAIN, MOST_FAILURES, Checks
from tests.ui.watching.test_board import Clock
from tests.ui.written_runs import WrittenRun

TRAINING = Glance(state="training", steps=5)


class Source:
    """A place whose runs, or error, are given."""

    def __init__(self, path, *names, every=5.0, is_remote=False):
        self.path, self.every, self.is_remote = path, every, is_remote
        self.runs = [FoundRun(f"{path}/{name}", name, is_remote, stamp=1) for name in names]
        self.error = None
        self.asked = 0

    def find(self):
        self.asked += 1
        if self.error:
            raise self.error
        return self.runs


def test_a_place_is_listed_again_when_it_is_due():
    folder, bucket = Source("f", "a"), Source("b", every=30.0, is_remote=True)
    listing = Listing([folder, bucket])
    assert listing.is_looking
    assert listing.update(0.0, local_only=True)
    assert (folder.asked, bucket.asked, listing.is_looking) == (1, 0, True)
    assert listing.update(1.0)
    assert (folder.asked, bucket.asked, listing.is_looking) == (1, 1, False)
    assert not listing.update(4.9)
    assert listing.update(5.0)
    assert folder.asked == 2
    assert not listing.update(14.9, patience=2.0)
    assert listing.update(15.0, patience=2.0)
    assert (folder.asked, bucket.asked, listing.names) == (3, 1, ["f", "b"])


def test_runs_of_a_place_that_cannot_be_listed_now_stay_and_its_error_goes_with_it():
    place = Source("f", "a")
    listing = Listing([place, Source("g", "b")])
    listing.update(0.0)
    place.error = SMDebugError("no right to list\nit")
    listing.update(10.0)
    assert listing.errors == {"f": "no right to list it"}
    assert [run.path for run in listing.runs] == ["f/a", "g/b"]
    place.error = None
    listing.update(20.0)
    assert listing.errors == {}


@pytest.fixture
def board():
    made = Board([], clock=Clock())
    made._rows = {
        name: Row(name, f"/nowhere/{name}", name, is_remote=name == "bucket", glance=TRAINING)
        for name in ("folder", "bucket", "stack")
    }
    made._rows["stack"].is_deployed = True
    made.checks.is_on = True
    return made


def test_runs_of_the_stack_and_those_that_are_open_are_not_checked_in_the_background(board):
    board._rows["folder"].glance = replace(TRAINING, last_saved=9.0)
    version = board.version
    assert board.next_check().id == "folder"
    assert (board.checks.current, board.version) == ("folder", version + 1)
    assert board.check_of(board._rows["folder"]) == "checking"
    board.end_check(board._rows["folder"], replace(TRAINING, issues=2, steps=4))
    assert board.version > version + 1
    assert board.row("folder").glance.issues == 2
    assert board.row("folder").glanced_at == 0.0
    assert board.next_check().id == "bucket"
    assert board._remote_checks == 1
    board.end_check(board._rows["bucket"], SMDebugError("no\x1bread"))
    assert board.next_check() is None
    assert board.check_of(board._rows["bucket"]) == "could not be checked: no\\x1bread"
    board._rows["folder"].glance = replace(TRAINING, steps=6)
    board._clock.now = AGAIN
    assert board.next_check().id == "folder", "it has more steps than were checked"
    board._readers["folder"] = None
    assert board.next_check() is None


def test_so_many_runs_in_buckets_are_checked_and_no_more(board):
    assert MOST_REMOTE_CHECKS == 100
    del board._rows["folder"]
    board._remote_checks = 99
    assert board.next_check().id == "bucket"
    board.checks.current = ""
    assert board.next_check() is None


def test_a_verdict_of_a_run_that_is_open_or_gone_is_not_taken(board):
    found = replace(TRAINING, issues=1)
    board.take_verdict("unknown", found)
    board._rows["folder"].glance = Glance(state="gone")
    board.take_verdict("folder", found)
    assert board.row("folder").glance.state == "gone"
    board._readers["bucket"] = None
    board.take_verdict("bucket", found)
    assert board.row("bucket").glance == TRAINING


@pytest.mark.parametrize(("issues", "state"), [(None, "waiting"), (0, "done"), (3, "done")])
def test_a_run_that_a_page_shows_is_checked_there(issues, state, board):
    glance = replace(TRAINING, issues=issues)
    board.checks.is_on = False
    row = board._rows["folder"]
    row.glance = glance
    assert board.check_of(row) == ("off" if issues is None else "done")
    board._shown = frozenset(["folder"])
    assert board.check_of(row) == state
    board._rows["stack"].glance = glance
    assert board.check_of(board._rows["stack"]) == state


@pytest.mark.parametrize(
    ("row", "after", "is_due"),
    [
        ({"glanced_at": None, "state": "ended"}, 0, True),
        ({"state": "training"}, 9.9, False),
        ({"state": "training"}, 10.0, True),
        ({"state": "waiting"}, 10.0, True),
        ({"state": "training", "is_remote": True}, 29.9, False),
        ({"state": "training", "is_remote": True}, 30.0, True),
        ({"state": "ended"}, 1000, False),
        ({"state": "gone"}, 1000, False),
        ({"state": "reading"}, 0, True),
        ({"state": "reading", "is_open": True}, 1000, False),
        ({"state": "training", "is_open": True}, 1000, False),
    ],
)
def test_a_run_that_has_not_ended_is_summarised_again_after_a_pause(row, after, is_due, board):
    options = {"glanced_at": 5.0, "is_remote": False, "is_open": False, **row}
    made = Row("r", "/nowhere", "r", options["is_remote"], glance=Glance(state=options["state"]))
    made.glanced_at = options["glanced_at"]
    if options["is_open"]:
        board._readers["r"] = None
    assert board._is_due(made, 5.0 + after) is is_due


def test_three_runs_stay_open_besides_those_that_pages_show(tmp_path):
    for name in "abcdef":
        WrittenRun(tmp_path / name).write(2, end=True)
    board = Board([str(tmp_path)])
    board.find_runs()
    rows = [row.id for row in sorted(board.rows, key=lambda row: row.name)]
    readers = [board.reader(run_id) for run_id in rows[:4]]
    assert list(board._readers) == rows[1:4]
    assert MOST_OPEN == 3
    assert board.reader(rows[1]) is readers[1]
    board.reader(rows[4])
    assert list(board._readers) == [rows[3], rows[1], rows[4]], "the one that was asked for longest ago goes"
    board._shown = frozenset([rows[1], rows[3], rows[4]])
    board.reader(rows[5])
    assert set(board._readers) == {rows[1], rows[3], rows[4], rows[5]}
    assert board.reader("unknown") is None
    assert board.row("unknown") is None


def test_a_run_that_is_deleted_is_said_to_be_gone_once_and_its_charts_stay(tmp_path):
    clock = Clock()
    WrittenRun(tmp_path / "a").write(2, end=True)
    board = Board([str(tmp_path)], clock=clock)
    board.find_runs()
    (row,) = board.rows
    while board.work([row.id]) == 0:
        pass
    (tmp_path / "a").rename(tmp_path.parent / "elsewhere")
    clock.now += 5
    board.find_runs()
    assert (row.glance.state, row.glance.error) == ("gone", "The run was deleted.")
    assert "What was read of it is shown." in str(board.reader(row.id).notes)
    version = board.version
    clock.now += 5
    board.find_runs()
    assert board.version == version
    assert board.work([row.id]) > 0
    (tmp_path.parent / "elsewhere").rename(tmp_path / "a")
    clock.now += 5
    board.find_runs()
    assert row.glance.state == "unknown"
    assert row.id not in board._readers
    assert board.version > version


def test_nothing_is_new_where_nothing_has_changed(tmp_path):
    clock = Clock()
    WrittenRun(tmp_path / "a").write(2)
    board = Board([str(tmp_path)], clock=clock)
    while board.work([]) == 0:
        pass
    version = board.version
    clock.now += 60
    board.work([])
    assert board.version == version
    board.work([], list_is_open=False)
    (row,) = board.rows
    assert row.glanced_at == 60
    clock.now += 60
    board.work([], list_is_open=False)
    assert row.glanced_at == 60, "a list that no page shows costs nothing"


def test_tags_that_a_person_has_changed_are_shown_at_once(tmp_path):
    WrittenRun(tmp_path / "a").write(2, end=True)
    board = Board([str(tmp_path)])
    board.find_runs()
    (row,) = board.rows
    while board.work([row.id]) == 0:
        pass
    version = board.version
    board.take_annotations(row, Annotated(("good", "first"), "why", True, "version", "g"))
    written = {"tags": "good, first", "note": "why", "pinned": True, "group": "g"}
    assert written.items() <= row.glance.configuration.items()
    assert board.version == version + 1


def test_an_id_is_the_same_in_every_process_and_reveals_no_path():
    assert id_of("/runs/a") == "704e1951db55"
    assert len(id_of("/runs/\udcff")) == 12


@pytest.mark.parametrize(
    ("glance", "is_on", "state"),
    [
        (TRAINING, True, "waiting"),
        (TRAINING, False, "off"),
        (replace(TRAINING, issues=0), False, "done"),
        (replace(TRAINING, issues=0, checked=4), True, "waiting"),
        (replace(TRAINING, issues=0, checked=5), True, "done"),
        (replace(TRAINING, issues=0, checked=6), True, "done"),
        (replace(TRAINING, checked=5), True, "waiting"),
        (replace(TRAINING, steps=0), True, "off"),
        *((replace(TRAINING, state=state), True, "waiting") for state in ("failed", "ended", "unknown")),
        *((replace(TRAINING, state=state), True, "off") for state in ("waiting", "reading", "gone")),
    ],
)
def test_a_run_waits_for_its_verdict_if_it_has_steps_that_were_not_checked(glance, is_on, state):
    checks = Checks()
    checks.is_on = is_on
    assert checks.state_of("a", glance) == state
    assert checks.next({"a": glance}, 0.0) == ("a" if state == "waiting" else None)


def test_after_three_runs_in_a_row_that_could_not_be_checked_no_more_are_tried():
    checks = Checks()
    checks.is_on = True
    for number in range(MOST_FAILURES - 1):
        checks.end(str(number), 0.0, 5, "no")
    assert checks.next({"a": TRAINING}, 0.0) == "a"
    checks.end("good", 0.0, 5)
    for number in range(MOST_FAILURES):
        assert checks.next({"a": TRAINING}, 0.0) == "a"
        checks.end(str(number), 0.0, 5, "no")
    assert checks.next({"a": TRAINING}, 0.0) is None
    assert MOST_FAILURES == 3


def test_what_failed_is_forgotten_when_it_succeeds_grows_or_is_another_run():
    checks = Checks()
    checks.is_on = True
    checks.end("a", 0.0, 5, "no")
    assert checks.state_of("a", TRAINING) == "could not be checked: no"
    assert checks.state_of("a", replace(TRAINING, steps=6)) == "waiting"
    assert checks.next({"a": replace(TRAINING, steps=6)}, AGAIN - 0.1) is None
    assert checks.next({"a": replace(TRAINING, steps=6)}, AGAIN) == "a"
    checks.end("a", 0.0, 5)
    assert checks.state_of("a", TRAINING) == "done"
    checks.forget("a")
    assert checks.state_of("a", TRAINING) == "waiting"
    assert checks.next({"a": TRAINING}, 0.0) == "a"


@pytest.mark.parametrize(
    ("losses", "curve"),
    [
        ([], ()),
        ([1.0], (1.0,)),
        ([1.0, float("nan"), 2.0], (1.0, None, 2.0)),
        ([float(value) for value in range(48)], tuple(map(float, range(48)))),
        ([float(value) for value in range(96)], tuple(float(value) for value in range(1, 96, 2))),
    ],
)
def test_a_curve_has_the_largest_value_of_each_stretch(losses, curve):
    assert curve_of(losses) == curve


def test_a_cache_removes_what_was_used_longest_ago(tmp_path):
    cache = Cache(tmp_path, most_bytes=1 << 20)
    for age, name in enumerate("abcd"):
        cache.put("glance", name, "1", name * 100)
        os.utime(cache._file("glance", name), (1000 - age, 1000 - age))
    size = cache._file("glance", "a").stat().st_size
    assert cache.get("glance", "d", "1") == "d" * 100, "used now"
    Cache(tmp_path, most_bytes=2 * size).trim()
    assert [cache.has("glance", name) for name in "abcd"] == [True, False, False, True]


def test_a_cache_makes_room_while_it_is_written(tmp_path):
    cache = Cache(tmp_path, most_bytes=4000)
    for number in range(60):
        cache.put("glance", str(number), "1", "x" * 100)
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= 4000 + 4000 // 8 + 300
    assert not list(tmp_path.glob("*.tmp"))


def test_a_content_of_a_quarter_of_the_cache_is_kept_and_a_larger_one_is_not(tmp_path):
    cache = Cache(tmp_path, most_bytes=4096)
    assert cache.longest == 1024
    for size, is_kept in ((1024, True), (1025, False)):
        cache.put_content("charts", str(size), "m", lambda file, size=size: file.write(b"x" * size))
        assert cache.has("charts", str(size)) is is_kept
    with cache.opened("charts", "1024", "m") as content:
        assert content.read() == b"x" * 1024
    with cache.opened("charts", "1024", "other") as content:
        assert content is None
    with cache.opened("charts", "none", "m") as content:
        assert content is None
    assert not list(tmp_path.glob("*.tmp"))


def test_a_cache_that_is_off_keeps_nothing():
    cache = Cache(None)
    cache.put("glance", "a", "1", 1)
    cache.put_content("charts", "a", "1", lambda file: file.write(b""))
    cache.trim()
    assert (cache.is_on, cache.folder, cache.has("glance", "a"), cache.get("glance", "a", "1")) == (
        False,
        None,
        False,
        None,
    )
    with cache.opened("charts", "a", "1") as content:
        assert content is None


def test_the_folder_of_the_cache_is_that_of_the_environment(monkeypatch, tmp_path):
    from smdebug.ui.watching.cache import default_folder

    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SMDEBUG_UI_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert default_folder() == tmp_path / ".cache" / "smdebug" / "ui"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    assert default_folder() == tmp_path / "x" / "smdebug" / "ui"
    monkeypatch.setenv("SMDEBUG_UI_CACHE", str(tmp_path / "named"))
    assert default_folder() == tmp_path / "named"
