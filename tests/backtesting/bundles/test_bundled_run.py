"""A run through its bundle reads as the run does, with fewer requests; and never as it was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import boto3
import pytest

from smdebug.backtesting.bundles import bundle_file
from smdebug.backtesting.bundles.bundle_file import LARGEST_BUNDLE, bundle_name
from smdebug.backtesting.bundles.bundled_run import WORTH_WRITING, BundledRun, bundled
from smdebug.exceptions import ObjectMissing, StorageUnavailable
from smdebug.files.names import END_MARKER, EVENTS_FOLDER, INDEX_FOLDER, event_key, index_key
from smdebug.storage import ByteSpan, Storage
from smdebug.storage.memory import MemoryStorage
from smdebug.storage.s3 import S3Storage
from tests.backtesting.many_runs import make_run
from tests.support.faulty_storage import FULL, FaultyStorage
from tests.support.mocked_aws import mocked_aws

STEPS = 20


@pytest.fixture(scope="module")
def s3() -> Iterator[Any]:
    with mocked_aws():
        client = boto3.client("s3")
        client.create_bucket(Bucket="runs")
        yield client


@pytest.fixture
def run(s3: Any, request: pytest.FixtureRequest) -> S3Storage:
    name = request.node.name
    make_run(S3Storage("runs", name, s3), [2.0 + step for step in range(STEPS)])
    return S3Storage("runs", name, s3)


@pytest.fixture
def bundles(s3: Any) -> S3Storage:
    return S3Storage("runs", "backtests/bundles", s3)


@pytest.fixture
def requests(s3: Any) -> Iterator[Counter[str]]:
    seen: Counter[str] = Counter()

    def note(model: Any, **_: Any) -> None:
        seen[model.name] += 1

    s3.meta.events.register("before-call.s3", note)
    yield seen
    s3.meta.events.unregister("before-call.s3", note)


def everything(storage: Storage) -> dict[str, bytes]:
    """Return all of a run, asked for in the ways in which trials ask."""
    files = {}
    for folder in ("collections/000000000/", INDEX_FOLDER, EVENTS_FOLDER):
        for number, key in enumerate(storage.list(folder)):
            size = storage.size(key)
            assert storage.exists(key)
            whole = storage.read(key, ByteSpan(0, size)) if number % 2 else storage.read(key)
            assert bytes(storage.view(key, ByteSpan(3, 9))) == storage.read(key, ByteSpan(3, 9)) == whole[3:9]
            files[key] = whole
    return files


def keep(run: Storage, bundles: Storage) -> None:
    through = BundledRun(run, bundles, keeps=True)
    everything(through)
    through.keep()
    assert through.problem == ""


def test_a_run_reads_the_same_with_a_bundle_and_without(run: S3Storage, bundles: S3Storage):
    keep(run, bundles)
    through = BundledRun(run, bundles, keeps=False)
    assert isinstance(through, Storage)
    assert everything(through) == everything(run)
    assert through.exists(END_MARKER)
    assert not through.exists("index/none.json")
    for start in (None, index_key(30, "worker_0"), "index", "z"):
        for prefix in (INDEX_FOLDER, EVENTS_FOLDER, "index/000000000/000000000", "", "train"):
            assert list(through.list(prefix, start)) == list(run.list(prefix, start))
    with pytest.raises(ObjectMissing):
        through.read("index/none.json")


def test_a_run_with_a_bundle_takes_a_listing_and_one_read(
    run: S3Storage, bundles: S3Storage, requests: Counter[str]
):
    keep(run, bundles)
    requests.clear()
    everything(BundledRun(run, bundles, keeps=True))
    assert requests == {"HeadObject": 1, "ListObjectsV2": 3, "GetObject": 1}


def test_what_changed_since_is_read_from_the_run(run: S3Storage, bundles: S3Storage, requests: Counter[str]):
    keep(run, bundles)
    changed = event_key(50, "worker_0")
    run.write(changed, b"x" * run.size(changed))
    run.write(index_key(10 * STEPS, "worker_0"), b"{}")
    run.delete(index_key(0, "worker_0"))
    now = everything(run)
    requests.clear()
    through = BundledRun(run, bundles, keeps=False)
    assert [through.read(key) for key in now] == list(now.values())
    assert requests["GetObject"] == 1 + 2


def test_it_shows_the_run_of_one_moment(run: S3Storage, bundles: S3Storage):
    run.delete(END_MARKER)
    through = BundledRun(run, bundles, keeps=False)
    run.write(index_key(10 * STEPS, "worker_0"), b"{}")
    run.write(END_MARKER, b"")
    assert len(list(through.list(INDEX_FOLDER))) == STEPS
    assert not through.exists(END_MARKER)


def test_a_bundle_grows_by_what_was_read_besides(run: S3Storage, bundles: S3Storage, requests: Counter[str]):
    through = BundledRun(run, bundles, keeps=True)
    for key in list(through.list(INDEX_FOLDER)):
        through.read(key)
    through.keep()
    through = BundledRun(run, bundles, keeps=True)
    for key in list(through.list(EVENTS_FOLDER)):
        through.read(key)
    through.keep()
    requests.clear()
    through = BundledRun(run, bundles, keeps=True)
    for key in run.list("index/"), run.list("events/"):
        list(map(through.read, key))
    through.keep()
    assert (requests["GetObject"], requests["PutObject"]) == (1, 0)


def test_a_full_bundle_stays_as_it_is(
    run: S3Storage, bundles: S3Storage, requests: Counter[str], monkeypatch: pytest.MonkeyPatch
):
    sizes = [version.size for version in run.versions("")]
    monkeypatch.setattr(bundle_file, "LARGEST_BUNDLE", 0xFFFF + sum(sizes) // 2 + 350 * len(sizes) // 2)
    keep(run, bundles)
    kept = bundles.read(bundle_name(run.location))
    requests.clear()
    through = BundledRun(run, bundles, keeps=True)
    assert everything(through) == everything(run)
    through.keep()
    assert requests["PutObject"] == 0
    assert bundles.read(bundle_name(run.location)) == kept


def test_a_few_files_are_not_worth_another_bundle(run: S3Storage, bundles: S3Storage):
    through = BundledRun(run, bundles, keeps=True)
    for key in list(through.list(INDEX_FOLDER))[: WORTH_WRITING - 1]:
        through.read(key)
    through.keep()
    assert not bundles.exists(bundle_name(run.location))


def test_parts_of_files_and_what_is_no_file_of_steps_are_not_bundled(run: S3Storage, bundles: S3Storage):
    through = BundledRun(run, bundles, keeps=True)
    for key in list(through.list(EVENTS_FOLDER)):
        through.read(key, ByteSpan(0, 5))
        through.read(key, ByteSpan(1, 50_000))
    for number in range(20):
        run.write(f"report/{number}", b"x")
        through.read(f"report/{number}")
    through.keep()
    assert not bundles.exists(bundle_name(run.location))


@pytest.mark.parametrize(
    ("bundle", "problem"),
    [
        (b"", "has no end"),
        (b"PK\5\6" + b"\0" * 18, "of another run"),
        (bytes(LARGEST_BUNDLE + 5), "too large"),
    ],
    ids=["empty", "foreign", "large"],
)
def test_without_a_good_bundle_the_run_is_read_and_the_bundle_replaced(
    run: S3Storage, bundles: S3Storage, bundle: bytes, problem: str
):
    bundles.write(bundle_name(run.location), bundle)
    through = BundledRun(run, bundles, keeps=True)
    assert everything(through) == everything(run)
    assert problem in through.problem
    through.keep()
    assert BundledRun(run, bundles, keeps=True).problem == ""


def test_a_damaged_file_in_it_ends_its_use(run: S3Storage, bundles: S3Storage):
    keep(run, bundles)
    whole = bytearray(bundles.read(bundle_name(run.location)))
    whole[len(whole) // 4] ^= 0xFF
    bundles.write(bundle_name(run.location), whole)
    through = BundledRun(run, bundles, keeps=True)
    assert everything(through) == everything(run)
    assert "The bundle of s3://runs/" in through.problem
    through.keep()
    through = BundledRun(run, bundles, keeps=False)
    assert everything(through) == everything(run)
    assert through.problem == ""


def test_the_bundle_of_another_run_is_not_read(run: S3Storage, bundles: S3Storage, s3: Any):
    other = S3Storage("runs", "another", s3)
    make_run(other, [1.0] * STEPS)
    keep(other, bundles)
    bundles.write(bundle_name(run.location), bundles.read(bundle_name(other.location)))
    through = BundledRun(run, bundles, keeps=False)
    assert everything(through) == everything(run)
    assert "of another run" in through.problem


def test_many_threads_may_read(run: S3Storage, bundles: S3Storage):
    through = BundledRun(run, bundles, keeps=True)
    keys = [*through.list(INDEX_FOLDER), *through.list(EVENTS_FOLDER)]
    with ThreadPoolExecutor(8) as threads:
        first = list(threads.map(through.read, keys))
    through.keep()
    again = BundledRun(run, bundles, keeps=False)
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(again.read, keys)) == first


def test_a_bundle_that_cannot_be_read_or_written_is_done_without(run: S3Storage):
    full = FaultyStorage(lambda number, call, key: failing_with_full)
    through = BundledRun(run, full, keeps=True)
    assert everything(through) == everything(run)
    through.keep()
    assert "the disk is full" in through.problem


def failing_with_full() -> None:
    raise FULL


def test_a_run_that_cannot_be_listed_says_so_itself():
    class Away(MemoryStorage):
        def exists(self, key: str) -> bool:
            raise StorageUnavailable(key, "it is away")

    away = Away()
    assert bundled(away, MemoryStorage(), keeps=True) is away
    empty = MemoryStorage()
    assert list(bundled(empty, MemoryStorage(), keeps=True).list(INDEX_FOLDER)) == []
