from __future__ import annotations

import os
import time

import pytest

from smdebug.storage import folder as folder_module
from smdebug.storage import folder_memory
from smdebug.storage.folder import FolderStorage


@pytest.fixture
def folders_read(monkeypatch):
    """How many folders were read since it was cleared."""
    read = []
    scandir = os.scandir

    def counting(path):
        read.append(path)
        return scandir(path)

    monkeypatch.setattr(folder_module.os, "scandir", counting)
    return read


def write_some(storage, numbers):
    for number in numbers:
        storage.write(f"index/0/{number:03}.json", b"{}")


def news(storage, after):
    return [key[-8:-5] for key in storage.list("index/", f"index/0/{after:03}.json")]


def test_a_folder_that_has_not_changed_is_not_read_again(tmp_path, folders_read):
    storage = FolderStorage(tmp_path)
    write_some(storage, range(10))
    assert news(storage, 8) == ["009"]
    write_some(storage, [10])
    assert news(storage, 8) == ["009", "010"]
    for _ in range(3):
        assert news(storage, 10) == []
        time.sleep(2 * folder_memory._TICKS)
    folders_read.clear()
    assert news(storage, 10) == []
    assert folders_read == []
    write_some(storage, [11])
    assert news(storage, 10) == ["011"]
    assert news(storage, 3) == [f"{number:03}" for number in range(4, 12)]


def test_what_is_new_is_listed_however_soon_it_comes(tmp_path):
    storage, writer = FolderStorage(tmp_path), FolderStorage(tmp_path)
    for number in range(1, 400):
        if number % 50 == 0:
            time.sleep(2 * folder_memory._TICKS)
            assert news(storage, number - 1) == news(storage, number - 1) == []
        write_some(writer, [number])
        assert news(storage, number - 1) == [f"{number:03}"]


class CoarseClock:
    """A file system's clock, which stands still until it ticks, and the clock of this process."""

    def __init__(self):
        self.ticks = 1
        self.seconds = 100.0

    def stamp_of(self, path):
        return folder_memory.Stamp(1, 2, self.ticks, self.ticks)


@pytest.fixture
def clock(monkeypatch):
    clock = CoarseClock()
    monkeypatch.setattr(folder_memory.time, "monotonic", lambda: clock.seconds)
    monkeypatch.setattr(folder_module, "stamp_of", clock.stamp_of)
    return clock


def test_what_comes_within_one_tick_of_the_clock_is_listed(tmp_path, clock):
    storage = FolderStorage(tmp_path)
    write_some(storage, [0])
    assert news(storage, 0) == []
    clock.ticks += 1
    write_some(storage, [1])
    assert news(storage, 0) == ["001"]  # another time, and a new file: such times are relied on

    for last in range(1, 28, 3):
        names = [f"{last + more:03}" for more in (1, 2, 3)]
        clock.ticks += 1
        write_some(storage, [last + 1])
        assert news(storage, last) == names[:1]
        write_some(storage, [last + 2])  # in the same tick
        clock.seconds += 0.01
        assert news(storage, last) == names[:2]
        write_some(storage, [last + 3])
        clock.seconds += 0.01
        assert news(storage, last) == names

        for _ in range(3):  # until the folder's time is final, and the reading is remembered
            clock.seconds += 0.1
            assert news(storage, last + 3) == []


@pytest.mark.parametrize("time_of_change", [5, 5_000_000_000])
def test_what_is_new_is_listed_where_folders_keep_no_time(tmp_path, monkeypatch, time_of_change):
    stamp = folder_memory.Stamp(1, 2, time_of_change, time_of_change)
    monkeypatch.setattr(folder_module, "stamp_of", lambda path: stamp)
    monkeypatch.setattr(folder_memory, "_TICKS", 0)
    storage = FolderStorage(tmp_path)
    for number in range(1, 50):
        write_some(storage, [number])
        assert news(storage, number - 1) == [f"{number:03}"]
        assert news(storage, number) == news(storage, number) == []


def test_a_time_that_once_did_not_tell_is_not_relied_on_again(tmp_path, monkeypatch):
    changed = iter([1, 2, *[3] * 20])
    monkeypatch.setattr(folder_module, "stamp_of", lambda path: folder_memory.Stamp(1, 2, next(changed), 0))
    monkeypatch.setattr(folder_memory, "_TICKS", 0)
    monkeypatch.setattr(folder_memory, "_READ_AFTER", 0)
    storage = FolderStorage(tmp_path)
    for number in range(1, 5):
        write_some(storage, [number])
        assert list(storage.list("index/0/")) == [f"index/0/{n:03}.json" for n in range(1, number + 1)]
        list(storage.list("index/0/"))
    monkeypatch.setattr(folder_memory, "_READ_AFTER", 100)
    write_some(storage, [5])
    assert len(list(storage.list("index/0/"))) == 5


def test_a_name_that_begins_like_another_is_not_passed_over(tmp_path):
    storage = FolderStorage(tmp_path)
    keys = ["a", "a-b/c", "a.json", "ab/x", "b/a", "b/a!/z", "b/ab"]
    for key in keys[1:]:
        storage.write(key, b"")
    everything = list(storage.list(""))
    assert everything == sorted(keys[1:])
    for after in [*everything, "a", "a-", "a-b", "a/", "b/a!", "b", "b/"]:
        assert list(storage.list("", after)) == [key for key in everything if key > after]
