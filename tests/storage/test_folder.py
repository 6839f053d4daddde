from __future__ import annotations

import concurrent.futures
import errno
import os
import pickle
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from smdebug.exceptions import (
    AccessDenied,
    ObjectMissing,
    SMDebugValueError,
    StorageError,
    StorageUnavailable,
)
from smdebug.storage import ByteSpan, open_storage
from smdebug.storage.folder import WORTH_MAPPING, FolderStorage
from tests.support.trees import files_below

KEY = "events/000000000000/000000000000_worker_0.tfevents"


@pytest.fixture
def run(tmp_path) -> FolderStorage:
    return FolderStorage(tmp_path / "run")


def test_the_folder_is_made_by_the_first_write_and_not_by_opening_it(run, tmp_path):
    assert list(run.list("")) == []
    assert not run.exists("x")
    run.create("never/written").abort()
    assert files_below(tmp_path) == []
    run.write("x", b"")
    assert files_below(tmp_path) == ["run/x"]


def test_a_tilde_is_the_home_and_a_relative_path_is_resolved_once(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert open_storage("~/run").location == f"{tmp_path}/run"
    relative = open_storage("run/")
    assert relative.location == f"{tmp_path}/run"
    monkeypatch.chdir("/")
    relative.write("x", b"1")
    assert (tmp_path / "run/x").read_bytes() == b"1"
    assert open_storage(tmp_path / "run").read("x") == b"1"


@pytest.mark.parametrize("path", ["", "a\0b"])
def test_what_is_not_a_path_is_refused(path):
    with pytest.raises(SMDebugValueError, match="not the path of a folder"):
        FolderStorage(path)


def test_what_is_refused_when_a_file_is_closed_never_appears(run, tmp_path, monkeypatch):
    def full(descriptor):
        status = os.fstat(descriptor)
        os_close(descriptor)
        if stat.S_ISREG(status.st_mode) and status.st_size == len(b"new"):
            raise OSError(errno.ENOSPC, "No space left on device")

    run.write("index/a.json", b"earlier")
    os_close = os.close
    with monkeypatch.context() as patched:
        patched.setattr(os, "close", full)
        with pytest.raises(StorageUnavailable, match="disk is full"):
            run.write("index/a.json", b"new")
    assert run.read("index/a.json") == b"earlier"
    assert files_below(tmp_path) == ["run/index/a.json"]


def test_an_object_on_its_way_is_the_name_and_tmp(run, tmp_path):
    sink = run.create("index/000000000/a.json")
    sink.write([b"{}"])
    assert files_below(tmp_path / "run") == ["index/000000000/a.json.tmp"]
    sink.commit()
    assert files_below(tmp_path / "run") == ["index/000000000/a.json"]


def test_what_a_killed_writer_left_is_written_over(run, tmp_path):
    stale = tmp_path / "run" / (KEY + ".tmp")
    stale.parent.mkdir(parents=True)
    stale.write_bytes(b"half of a very long first version")
    run.write(KEY, b"whole")
    assert run.read(KEY) == b"whole"
    assert files_below(tmp_path / "run") == [KEY]


@pytest.mark.parametrize("kind", ["link", "folder", "pipe"])
def test_an_odd_thing_under_the_temporary_name_is_gone_round(run, tmp_path, kind):
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    odd = tmp_path / "run/index/a.json.tmp"
    odd.parent.mkdir(parents=True)
    if kind == "link":
        odd.symlink_to(victim)
    elif kind == "folder":
        odd.mkdir()
    else:
        os.mkfifo(odd)
    run.write("index/a.json", b"{}")
    assert run.read("index/a.json") == b"{}"
    assert victim.read_bytes() == b"precious"
    assert list(run.list("index/")) == ["index/a.json"]


WRITER = """
import sys
from smdebug.storage.folder import FolderStorage

folder, letter = FolderStorage(sys.argv[1]), sys.argv[2].encode()
print("ready", flush=True)
sys.stdin.readline()
for number in range(1, 301):
    sink = folder.create("key")
    sink.write([letter * number])
    sink.write([letter * 1000])
    sink.commit()
"""
"""Once it is told to begin, writes 1,001 to 1,300 times its letter under one key."""


def begin_writers(folder: Path, letters: str) -> list[subprocess.Popen[bytes]]:
    """Start a process for each letter, and tell all to begin when all are ready."""
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(folder), letter],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        for letter in letters
    ]
    for writer in writers:
        assert writer.stdout.readline() == b"ready\n"
    for writer in writers:
        writer.stdin.write(b"begin\n")
        writer.stdin.flush()
    return writers


def test_two_processes_can_write_one_key_at_the_same_time(run, tmp_path):
    contents_read = set()
    writers = begin_writers(tmp_path / "run", "xy")
    while any(writer.poll() is None for writer in writers):
        if run.exists("key"):
            contents_read.add(run.read("key"))
    for writer in writers:
        writer.communicate()
        assert writer.returncode == 0
    contents_read.add(run.read("key"))

    contents_written = {letter * size for letter in (b"x", b"y") for size in range(1001, 1301)}
    assert contents_read <= contents_written
    assert files_below(tmp_path / "run") == ["key"]


# Views


def test_a_view_of_a_file_that_grew_shorter_ends_where_the_file_does(run, tmp_path):
    run.write(KEY, b"x" * 10 * WORTH_MAPPING)
    os.truncate(tmp_path / "run" / KEY, 3 * WORTH_MAPPING)
    span = ByteSpan(WORTH_MAPPING + 7, 10 * WORTH_MAPPING)
    assert run.view(KEY, span).nbytes == 2 * WORTH_MAPPING - 7
    assert run.view(KEY).nbytes == 3 * WORTH_MAPPING
    os.truncate(tmp_path / "run" / KEY, 0)
    assert run.view(KEY, span).nbytes == 0


def test_a_view_stays_as_it_was_when_the_object_is_replaced(run):
    run.write(KEY, b"1" * 2 * WORTH_MAPPING)
    view = run.view(KEY)
    run.write(KEY, b"2" * 2 * WORTH_MAPPING)
    assert bytes(view) == b"1" * 2 * WORTH_MAPPING


# Listing


def test_listing_enters_only_folders_that_can_hold_what_is_asked_for(run, tmp_path, monkeypatch):
    for step in range(0, 5000, 100):
        run.write(f"index/{step // 1000:09}/{step:012}_worker_0.json", b"{}")
    entered = []
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: entered.append(str(path)) or scandir(path))
    asked = []
    stat = os.stat
    monkeypatch.setattr(os, "stat", lambda path, **how: asked.append(str(path)) or stat(path, **how))
    monkeypatch.setattr(os, "lstat", asked.append)
    start = "index/000000003/000000003100_worker_0.json"
    assert len(list(run.list("index/", start_after=start))) == 18
    assert [Path(path).name for path in entered] == ["index", "000000003", "000000004"]
    assert asked == entered  # the folders, and none of what is in them
    entered.clear()
    assert len(list(run.list("index/000000002/"))) == 10
    assert [Path(path).name for path in entered] == ["000000002"]


def test_listing_is_lazy(run, monkeypatch):
    for step in range(0, 5000, 100):
        run.write(f"index/{step // 1000:09}/{step:012}_worker_0.json", b"{}")
    entered = []
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: entered.append(path) or scandir(path))
    assert next(run.list("index/")) == "index/000000000/000000000000_worker_0.json"
    assert len(entered) == 2


def test_names_that_are_not_unicode_are_not_listed(run, tmp_path):
    run.write("index/a.json", b"{}")
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/run/index/\xff.json")).touch()
    assert list(run.list("")) == ["index/a.json"]


# What the system says


def test_a_file_where_the_run_should_be_is_reported(tmp_path):
    (tmp_path / "run").write_bytes(b"a file")
    run = FolderStorage(tmp_path / "run")
    with pytest.raises(StorageError, match="a file instead of a folder"):
        run.write("events/x", b"")
    with pytest.raises(StorageError, match="a file instead of a folder"):
        list(run.list("index/"))
    with pytest.raises(ObjectMissing):
        run.read("events/x")


def test_a_file_where_a_folder_of_the_run_should_be_is_reported(run):
    run.write("events", b"a file")
    for key in ("events/x", "events/x/y"):
        with pytest.raises(StorageError, match=f"{key}: part of the path is a file"):
            run.write(key, b"")
        with pytest.raises(StorageError, match=f"{key}: part of the path is a file"):
            run.claim(key)
    run.delete("events/x")


def test_a_folder_where_the_object_should_be_is_reported(run, tmp_path):
    run.write("events/a/b", b"")
    with pytest.raises(StorageError, match="a folder has this name"):
        run.write("events/a", b"")
    run.delete("events/a")
    assert files_below(tmp_path / "run") == ["events/a/b"]


def test_a_name_that_is_too_long_is_reported(run):
    with pytest.raises(StorageError, match="too long"):
        run.write("x" * 300, b"")
    with pytest.raises(StorageError, match="too long"):
        run.read("x" * 300)


@pytest.mark.parametrize(
    ("number", "kind", "advice"),
    [
        (errno.ENOSPC, StorageUnavailable, "the disk is full; free some space"),
        (errno.EDQUOT, StorageUnavailable, "quota"),
        (errno.EROFS, AccessDenied, "read-only"),
        (errno.EACCES, AccessDenied, "permissions"),
        (errno.EPERM, AccessDenied, "does not allow this"),
        (errno.EIO, StorageUnavailable, "I/O error"),
        (errno.EMFILE, StorageUnavailable, "ulimit"),
        (errno.ENXIO, StorageError, "refuses"),
    ],
)
@pytest.mark.parametrize("call", ["open", "writev", "rename", "makedirs"])
def test_what_the_system_refuses_is_typed_and_leaves_no_trace(
    run, tmp_path, monkeypatch, number, kind, advice, call
):
    def refuse(*_arguments, **_named):
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patched:
        patched.setattr(os, call, refuse)
        with pytest.raises(kind, match=advice) as raised:
            run.write(KEY, b"x")
    assert raised.value.place == str(tmp_path / "run" / KEY)
    assert files_below(tmp_path) == []
    run.write(KEY, b"x")
    assert run.read(KEY) == b"x"


def test_a_file_that_may_not_be_read_is_reported(run, monkeypatch):
    def refuse(*_arguments, **_named):
        raise PermissionError(errno.EACCES, "Permission denied")

    run.write(KEY, b"x")
    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(AccessDenied, match="permissions"):
        run.read(KEY)
    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(AccessDenied, match="permissions"):
        list(run.list("events/"))


def test_a_write_that_the_system_cuts_short_is_continued(run, monkeypatch):
    writev = os.writev

    def one_byte_less_each(descriptor, pieces):
        whole = b"".join(pieces)
        return writev(descriptor, [whole[: max(1, len(whole) - 1000)]])

    monkeypatch.setattr(os, "writev", one_byte_less_each)
    pieces = [b"", os.urandom(1500), b"", memoryview(bytearray(800)).cast("d"), b"end", b""]
    sink = run.create(KEY)
    sink.write(pieces)
    sink.commit()
    assert run.read(KEY) == b"".join(bytes(piece) for piece in pieces)


def test_a_run_that_vanishes_while_it_is_written_is_reported(run, tmp_path):
    import shutil

    sink = run.create(KEY)
    sink.write([b"x"])
    shutil.rmtree(tmp_path / "run")
    with pytest.raises(StorageUnavailable, match="no longer exists"):
        sink.commit()
    run.write(KEY, b"x")
    assert run.read(KEY) == b"x"


def test_no_descriptor_is_left_open(run):
    before = len(list(Path("/proc/self/fd").iterdir()))
    for number in range(20):
        run.write(KEY, b"x" * WORTH_MAPPING)
        run.read(KEY)
        run.size(KEY)
        view = run.view(KEY)
        del view
        sink = run.create(KEY)
        sink.abort()
        run.claim(f"claim{number}")
        with pytest.raises(ObjectMissing):
            run.read("events")
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_copy_sent_to_another_process_is_the_same_place(run):
    run.write(KEY, b"x")
    assert pickle.loads(pickle.dumps(run)).read(KEY) == b"x"


def test_only_one_of_two_that_replace_the_same_content_is_first(tmp_path):
    others = []
    with ThreadPoolExecutor() as pool:

        class Interrupted(FolderStorage):
            def write(self, key, data):
                others.append(pool.submit(FolderStorage(tmp_path).replace, key, b"first", b"theirs"))
                concurrent.futures.wait(others, timeout=0.3)  # it cannot end before this one has
                super().write(key, data)

        FolderStorage(tmp_path).write("annotations.json", b"first")
        assert Interrupted(tmp_path).replace("annotations.json", b"first", b"mine")
        assert [other.result() for other in others] == [False]
    assert FolderStorage(tmp_path).read("annotations.json") == b"mine"
