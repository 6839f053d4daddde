from __future__ import annotations

import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from smdebug.exceptions import DamagedFile, StorageUnavailable
from smdebug.storage import ByteSpan
from smdebug.storage.folder import FolderStorage
from smdebug.trials.stored import event_files
from smdebug.trials.stored.event_files import LARGE_RECORD, SMALL_FILE, EventFiles
from tests.support.looking import each
from tests.trials.writing import CountingStorage

SMALL, MEDIUM = b"0123456789", bytes(range(256)) * (SMALL_FILE // 128)


def far_away(**files: bytes) -> CountingStorage:
    storage = CountingStorage()
    for key, data in files.items():
        storage.write(key, data)
    return storage


def test_a_small_file_comes_whole_at_the_first_touch():
    storage = far_away(a=SMALL)
    files = EventFiles(storage)
    assert [bytes(files.record("a", start, 2, 10)) for start in range(0, 10, 2)] == [
        b"01",
        b"23",
        b"45",
        b"67",
        b"89",
    ]
    assert storage.count("read") == 1


def test_a_larger_file_costs_two_requests_whatever_is_read_of_it():
    storage = far_away(a=MEDIUM)
    files = EventFiles(storage)
    for start in range(0, len(MEDIUM), 256 * 100):
        assert files.record("a", start, 256, len(MEDIUM)) == MEDIUM[:256]
    assert storage.count("read") == 2


def test_reading_one_record_of_many_files_again_and_again_fetches_only_those_records():
    keys = [f"f{number}" for number in range(8)]
    storage = far_away(**dict.fromkeys(keys, MEDIUM))
    files = EventFiles(storage, budget=3 * len(MEDIUM))
    for _ in range(3):
        for key in keys:
            files.record(key, 0, 100, len(MEDIUM))
    assert storage.count("read") == 24
    assert files._in_memory.bytes == 0


def test_no_more_than_the_budget_is_kept():
    keys = [f"f{number}" for number in range(50)]
    storage = far_away(**dict.fromkeys(keys, b"x" * 1000))
    files = EventFiles(storage, budget=10_000)
    for key in each(keys, at_least=50):
        files.record(key, 0, 100, 1000)
        assert files._in_memory.bytes <= 10_000


def test_small_files_that_do_not_fit_are_not_fetched_whole_again_and_again():
    keys = [f"f{number}" for number in range(50)]
    storage = far_away(**dict.fromkeys(keys, b"x" * 1000))
    files = EventFiles(storage, budget=10_000)
    for _ in range(2):
        for key in keys:
            files.record(key, 0, 100, 1000)
    dropped = len(files._dropped)
    assert dropped == 40
    assert files.record(keys[0], 0, 100, 1000) == b"x" * 100


def test_what_was_used_last_is_kept_longest():
    storage = far_away(a=b"a" * 400, b=b"b" * 400, c=b"c" * 400)
    files = EventFiles(storage, budget=1000)
    files.record("a", 0, 1, 400)
    files.record("b", 0, 1, 400)
    files.record("a", 0, 1, 400)
    files.record("c", 0, 1, 400)
    assert list(files._kept) == ["a", "c"]


def test_a_file_is_never_read_beyond_what_its_index_knows():
    storage = far_away(a=b"x" * 100)
    EventFiles(storage).record("a", 0, 10, 20)
    assert storage.asked == [("read", "a")]
    assert len(EventFiles(storage)._storage.read("a", ByteSpan(0, 20))) == 20


def test_a_promise_of_more_bytes_than_there_are_gives_those_that_are_there():
    storage = far_away(a=SMALL)
    assert bytes(EventFiles(storage).record("a", 8, 1 << 62, 1 << 63)) == b"89"
    assert bytes(EventFiles(storage).record("a", 8, 100, 1000)) == b"89"


def test_a_large_record_belongs_to_the_caller(tmp_path):
    data = bytes(2 * LARGE_RECORD)
    for storage in (far_away(), FolderStorage(tmp_path)):
        storage.write("a", data)
        files = EventFiles(storage)
        for _ in range(3):
            record = memoryview(files.record("a", 0, LARGE_RECORD, len(data)))
            assert record[0] == 0
            record[0] = 1


def test_forgetting_frees_the_bytes():
    files = EventFiles(far_away(a=SMALL))
    files.record("a", 0, 1, 10)
    files.forget()
    assert files._in_memory.bytes == 0


# Files that are too large for memory


@pytest.fixture
def nothing_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_files, "SMALL_FILE", 0)


def too_large(**sizes: int) -> tuple[CountingStorage, EventFiles]:
    """Files of letters, on a storage that memory has room for a hundred bytes of."""
    contents = {key: bytes(65 + at % 26 for at in range(size)) for key, size in sizes.items()}
    storage = far_away(**contents)
    files = EventFiles(storage, budget=100, spool_budget=10_000)
    return storage, files


@pytest.mark.usefixtures("nothing_is_small")
def test_one_record_of_a_file_that_memory_cannot_hold_is_fetched_alone():
    storage, files = too_large(a=1000)
    assert bytes(files.record("a", 26, 3, 1000)) == b"ABC"
    assert storage.bytes_read == 3


@pytest.mark.usefixtures("nothing_is_small")
def test_all_records_of_a_file_that_memory_cannot_hold_cost_two_requests():
    storage, files = too_large(a=1000)
    for start in range(0, 1000, 10):
        assert bytes(files.record("a", start, 1, 1000)) == bytes([65 + start % 26])
    assert storage.count("read") == 2
    assert files._in_memory.bytes == 0


@pytest.mark.usefixtures("nothing_is_small")
def test_a_disk_that_has_no_room_for_a_file_gives_its_records_one_by_one():
    storage, files = too_large(a=10_001)
    for start in range(5):
        assert bytes(files.record("a", start, 1, 10_001)) == bytes([65 + start])
    assert storage.bytes_read == 5


@pytest.mark.usefixtures("nothing_is_small")
def test_the_disk_never_holds_more_than_its_budget():
    keys = {f"f{number}": 3000 for number in range(9)}
    _, files = too_large(**keys)
    for key in keys:
        for _ in range(2):
            files.record(key, 0, 1, 3000)
        assert files._on_disk.bytes <= 10_000
    assert list(files._on_disk.files) == ["f6", "f7", "f8"]


@pytest.mark.usefixtures("nothing_is_small")
def test_the_larger_a_file_the_more_records_are_fetched_before_all_of_it(monkeypatch):
    monkeypatch.setattr(event_files, "ONE_MORE_TOUCH", 500)
    for size, alone in ((400, 1), (600, 2), (5000, 11)):
        storage, files = too_large(a=size)
        for _ in range(20):
            files.record("a", 0, 1, size)
        assert storage.bytes_read == alone + size


@pytest.mark.usefixtures("nothing_is_small")
def test_without_a_place_for_temporary_files_records_come_one_by_one(monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    storage, files = too_large(a=1000)
    files._spool_budget = None
    for _ in range(3):
        files.record("a", 0, 1, 1000)
    assert storage.bytes_read == 3


def test_threads_that_want_the_same_file_fetch_it_once():
    class Slow(CountingStorage):
        def read(self, key: str, span: ByteSpan | None = None) -> bytes:
            time.sleep(0.02)
            return super().read(key, span)

    storage = Slow()
    storage.write("a", SMALL)
    files = EventFiles(storage)
    with ThreadPoolExecutor(8) as threads:
        records = list(threads.map(lambda at: bytes(files.record("a", at, 1, 10)), range(10)))
    assert b"".join(records) == SMALL
    assert storage.count("read") == 1


def test_threads_that_wait_for_a_fetch_that_fails_each_hear_of_it():
    class Failing(CountingStorage):
        def read(self, key: str, span: ByteSpan | None = None) -> bytes:
            time.sleep(0.01)
            raise StorageUnavailable(key, "try again")

    files = EventFiles(Failing())

    def look(at: int) -> bool:
        with pytest.raises(StorageUnavailable):
            files.record("a", at, 1, 10)
        return True

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(look, range(8)))


# Limits


def test_the_limits_are_those_that_are_documented():
    assert (event_files.KEPT, event_files.SPOOLED) == (64 << 20, 16 << 30)
    assert (SMALL_FILE, event_files.ONE_MORE_TOUCH, LARGE_RECORD) == (1 << 20, 512 << 20, 32 << 10)


@pytest.mark.parametrize(
    ("size", "reads"), [(SMALL_FILE, [SMALL_FILE]), (SMALL_FILE + 1, [4, SMALL_FILE + 1])]
)
def test_a_file_is_small_up_to_a_megabyte(size, reads):
    storage = far_away(a=bytes(size))
    files = EventFiles(storage)
    for count in range(3):
        files.record("a", 0, 4, size)
        assert storage.bytes_read == sum(reads[: count + 1])


@pytest.mark.parametrize(("length", "is_kept"), [(LARGE_RECORD - 1, True), (LARGE_RECORD, False)])
def test_a_folder_gives_large_records_without_a_cache(length, is_kept, tmp_path):
    storage = FolderStorage(tmp_path)
    storage.write("a", bytes(2 * LARGE_RECORD))
    files = EventFiles(storage)
    assert len(files.record("a", 0, length, 2 * LARGE_RECORD)) == length
    assert files.has("a") is is_kept


def test_a_folder_never_reads_a_large_file_whole(tmp_path):
    storage = FolderStorage(tmp_path)
    storage.write("a", MEDIUM)
    files = EventFiles(storage)
    for _ in range(5):
        assert bytes(files.record("a", 256, 256, len(MEDIUM))) == MEDIUM[:256]
    assert not files.has("a")


def test_files_of_exactly_the_budget_stay_and_one_byte_more_does_not_fit():
    storage = far_away(a=b"a" * 400, b=b"b" * 600, c=b"c")
    files = EventFiles(storage, budget=1000)
    files.record("a", 0, 1, 400)
    files.record("b", 0, 1, 600)
    assert list(files._kept) == ["a", "b"]
    files.record("c", 0, 1, 1)
    assert list(files._kept) == ["b", "c"]
    assert files._in_memory.bytes == 601


@pytest.mark.usefixtures("nothing_is_small")
@pytest.mark.parametrize(("size", "in_memory", "on_disk"), [(100, 100, 0), (101, 0, 101)])
def test_a_file_of_the_size_of_the_memory_is_kept_there(size, in_memory, on_disk):
    _, files = too_large(a=size)
    for _ in range(3):
        files.record("a", 0, 1, size)
    assert (files._in_memory.bytes, files._on_disk.bytes) == (in_memory, on_disk)


@pytest.mark.usefixtures("nothing_is_small")
@pytest.mark.parametrize(("size", "on_disk"), [(10_000, 10_000), (10_001, 0)])
def test_a_file_of_the_size_of_the_disk_cache_is_kept_there(size, on_disk):
    _, files = too_large(a=size)
    for _ in range(4):
        files.record("a", 0, 1, size)
    assert files._on_disk.bytes == on_disk


def test_files_that_were_read_elsewhere_are_kept_as_far_as_there_is_room():
    storage = far_away()
    files = EventFiles(storage, budget=10)
    files.keep({"a": b"12345", "b": b"67890"})
    files.keep({"a": b"again"})
    assert bytes(files.record("a", 1, 2, 5)) == b"23"
    assert files._in_memory.bytes == 10
    files.keep({"c": b"x"})
    assert [files.has(key) for key in "abc"] == [True, False, True], "the one that was used goes last"
    assert files._dropped == {"b"}
    assert storage.asked == []


def test_the_last_file_stays_even_if_it_is_larger_than_the_memory():
    files = EventFiles(far_away(), budget=3)
    files.keep({"a": b"12345"})
    assert files.has("a")
    files.keep({"b": b"12345"})
    assert [files.has(key) for key in "ab"] == [False, True]


def test_a_limit_lowers_the_memory_and_never_raises_it():
    files = EventFiles(far_away(), budget=10)
    files.limit(5)
    files.limit(50)
    files.keep({"a": b"123", "b": b"456"})
    assert [files.has(key) for key in "ab"] == [False, True]


@pytest.mark.parametrize(
    ("key", "end", "is_short"), [("a", 10, False), ("a", 11, True), (None, 0, False), (None, 1, True)]
)
def test_a_file_that_is_shorter_than_its_index_says_is_damaged(key, end, is_short):
    files = EventFiles(far_away(a=SMALL))
    if not is_short:
        files.check_length(key, end)
        return
    with pytest.raises(DamagedFile, match=f"names a record that ends at byte {end}, of {10 if key else 0}"):
        files.check_length(key, end)


def test_a_large_record_of_a_kept_file_is_a_copy_of_its_own():
    storage = far_away(a=bytes(2 * LARGE_RECORD))
    files = EventFiles(storage)
    first = files.record("a", 0, LARGE_RECORD, 2 * LARGE_RECORD)
    first[0] = 9
    assert files.record("a", 0, LARGE_RECORD, 2 * LARGE_RECORD)[0] == 0
    assert files.record("a", 0, LARGE_RECORD - 1, 2 * LARGE_RECORD)[0] == 0
    assert storage.count("read") == 1


def test_what_is_forgotten_is_read_again():
    storage = far_away(a=SMALL, b=MEDIUM)
    files = EventFiles(storage)
    for _ in range(2):
        files.record("a", 0, 1, 10)
        files.record("b", 0, 1, len(MEDIUM))
        files.forget()
    assert [key for _, key in storage.asked] == ["a", "b"] * 2
    assert files._in_memory._touched_bytes == 0


@pytest.mark.parametrize(("free", "room"), [(1000, 500), (64 << 30, 16 << 30), (0, 0)])
def test_the_disk_cache_takes_half_of_what_is_free_up_to_its_limit(free, room, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda folder: SimpleNamespace(free=free))
    assert EventFiles(far_away())._spool_room() == room
