"""Runs in a bucket: found with few requests, read once, and reported in words if they cannot be read."""

from __future__ import annotations

from collections import Counter

import pytest
from botocore.exceptions import ClientError

from smdebug.runs.opening import open_run
from smdebug.storage import open_storage
from smdebug.storage.s3 import S3Storage
from smdebug.trials.observations import one_step
from smdebug.ui.finding.bucket_runs import BARREN_EVERY, FEW_BARREN, BucketRuns
from smdebug.ui.following.reading import RunReader
from smdebug.ui.watching.board import Board
from smdebug.ui.watching.cache import Cache
from tests.ui.buckets import an_s3, copy_run, requests_to_s3
from tests.ui.watching.test_board import Clock, listed
from tests.ui.written_runs import WrittenRun

MARK = "collections/000000000/worker_0_collections.json"


@pytest.fixture
def s3():
    with an_s3() as client:
        yield client


def put(s3, *keys):
    for key in keys:
        s3.put_object(Bucket="runs", Key=key, Body=b"{}")


def lists(requests):
    return [prefix for operation, prefix in requests if operation.startswith("ListObjects")]


def test_runs_are_found_by_folder_and_not_by_listing_every_object(s3):
    for run in ("teams/a/one", "teams/a/two", "deep/er/still/run", "with space/ä", "one"):
        put(s3, f"{run}/{MARK}", *(f"{run}/events/{step:012}/0.tfevents" for step in range(30)))
    put(s3, "too/deep/for/any/run/" + MARK, "notes.txt", "data/part-1/x.bin", "data/part-2/x.bin")
    place = BucketRuns(open_storage("s3://runs"))
    with requests_to_s3() as requests:
        found = place.find(100)
    assert found == ["deep/er/still/run", "one", "teams/a/one", "teams/a/two", "with space/ä"]
    assert not [prefix for prefix in lists(requests) if "events" in prefix]
    with requests_to_s3() as requests:
        assert place.find(100) == found
    assert not set(lists(requests)) & {f"{run}/" for run in found}  # known runs are not asked again
    put(s3, f"teams/a/three/{MARK}")
    s3.delete_object(Bucket="runs", Key=f"one/{MARK}")
    for step in range(30):
        s3.delete_object(Bucket="runs", Key=f"one/events/{step:012}/0.tfevents")
    assert place.find(100) == [
        "deep/er/still/run",
        "teams/a/one",
        "teams/a/three",
        "teams/a/two",
        "with space/ä",
    ]


def test_thousands_of_runs_take_a_request_for_each_thousand_once_they_are_known(s3):
    keys = [f"run-{number:04}/{MARK}" for number in range(1050)]
    with requests_to_s3():
        storage = S3Storage("runs", client=s3)
    for key in keys:
        s3.put_object(Bucket="runs", Key=key)
    place = BucketRuns(storage)
    assert len(place.find(5000)) == 1050
    seen = []
    s3.meta.events.register("before-call.s3", lambda model, **_: seen.append(model.name))
    assert len(place.find(5000)) == 1050
    assert seen == ["ListObjectsV2"] * 2


def test_many_folders_without_runs_are_listed_rarely(s3):
    put(s3, *(f"data/{number}/x" for number in range(FEW_BARREN + 5)), f"a/{MARK}")
    with requests_to_s3() as requests:
        place = BucketRuns(open_storage("s3://runs"))
        counts = []
        for _ in range(BARREN_EVERY + 1):
            before = len(lists(requests))
            assert place.find(100) == ["a"]
            counts.append(len(lists(requests)) - before)
    assert counts[0] > FEW_BARREN
    assert counts[1] == 1
    assert counts[-1] == counts[0] - 1  # once more, without the run that is known


def test_nothing_is_read_twice_while_a_run_grows_and_is_listed(s3, tmp_path):
    clock = Clock()
    run = WrittenRun(tmp_path / "a").write(6)
    copy_run(s3, tmp_path / "a", "runs", "exp/a")
    with requests_to_s3() as requests:
        board = Board(["s3://runs/exp"], clock=clock, cache=Cache(None))
        assert listed(board)["a"].state == "training"
        run.write(4)
        copy_run(s3, tmp_path / "a", "runs", "exp/a")
        clock.now += 31
        assert listed(board)["a"].steps == 10
        reader = board.reader(board.rows[0].id)
        while reader.advance(10):
            pass
        assert reader.steps_read == 10
    read = Counter(key for operation, key in requests if operation == "GetObject")
    indexes = {key: count for key, count in read.items() if "/index/" in key}
    assert len(indexes) == 10
    assert set(indexes.values()) == {1}


def test_events_are_fetched_once_although_rules_read_them_too(s3, tmp_path, monkeypatch):
    monkeypatch.setattr(one_step, "KEPT_BYTES", 1)  # as of a run that no memory holds
    WrittenRun(tmp_path / "a").write(120, end=True)
    copy_run(s3, tmp_path / "a", "runs", "a")
    with requests_to_s3() as requests:
        trial = open_run("s3://runs/a")
        trial.event_files.limit(1 << 16)  # about twenty of these files
        reader = RunReader("s3://runs/a", trial=trial)
        while reader.advance(0.01):
            pass
    assert reader.steps_checked == 120
    read = Counter(key for operation, key in requests if operation == "GetObject")
    events = {key: count for key, count in read.items() if key.startswith("a/events/")}
    assert len(events) == 120
    assert set(events.values()) == {1}


def test_an_open_run_in_a_bucket_is_looked_at_at_most_every_ten_seconds(s3, tmp_path):
    clock = Clock()
    run = WrittenRun(tmp_path / "a").write(3)
    copy_run(s3, tmp_path / "a", "runs", "a")
    with requests_to_s3() as requests:
        board = Board(["s3://runs"], clock=clock, cache=Cache(None))
        listed(board)
        (row,) = board.rows
        while board.work([row.id], list_is_open=False) == 0:
            pass
        run.write(2)
        copy_run(s3, tmp_path / "a", "runs", "a")
        del requests[:]
        for _ in range(9):
            clock.now += 1
            board.work([row.id], list_is_open=False)
        assert requests == []
        clock.now += 1
        while board.work([row.id], list_is_open=False) == 0:
            pass
        assert board.reader(row.id).steps_read == 5
        del requests[:]
        for _ in range(30):  # the page was closed
            clock.now += 1
            board.work([], list_is_open=False)
        assert not [key for _, key in requests if key.startswith("a/")]


def test_a_bucket_is_listed_at_most_every_ten_seconds(s3, tmp_path):
    clock = Clock()
    WrittenRun(tmp_path / "a").write(2, end=True)
    copy_run(s3, tmp_path / "a", "runs", "a")
    with requests_to_s3() as requests:
        board = Board(["s3://runs"], clock=clock)
        listed(board)
        del requests[:]
        for _ in range(9):
            clock.now += 1
            board.work([])
        assert requests == []
        clock.now += 1
        board.work([])
        assert lists(requests) == [""]


def test_a_bucket_is_not_asked_while_no_page_is_open(s3, serve):
    with requests_to_s3() as requests:
        client = serve("s3://runs/exp", find=False)
        assert client.get("/api/runs")["looking"]
        assert requests == []


@pytest.mark.parametrize("empty", [True, False])
def test_an_empty_prefix_waits_for_a_run_and_a_missing_bucket_is_named(s3, serve, empty):
    place = "s3://runs/nothing" if empty else "s3://no-such-bucket/exp"
    answer = serve(place).get("/api/runs")
    if empty:
        assert answer["errors"] == []
        assert [run["path"] for run in answer["runs"]] == [place]
    else:
        assert answer["runs"] == []
        (error,) = answer["errors"]
        assert "s3://no-such-bucket" in error
        assert "the bucket does not exist" in error
    assert not answer["looking"]


def test_a_missing_permission_is_named_and_other_places_are_shown(s3, serve, tmp_path, monkeypatch):
    WrittenRun(tmp_path / "a").write(2, end=True)

    def denied(self, operation, request):
        response = {
            "Error": {"Code": "AccessDenied", "Message": "User: me is not authorized"},
            "ResponseMetadata": {"HTTPStatusCode": 403},
        }
        raise ClientError(response, operation)

    from botocore.client import BaseClient

    monkeypatch.setattr(BaseClient, "_make_api_call", denied)
    answer = serve("s3://runs/exp", tmp_path).get("/api/runs")
    (error,) = answer["errors"]
    assert "s3:ListBucket" in error
    assert "s3://runs/exp" in error
    assert [run["name"].split("/")[-1] for run in answer["runs"]] == ["a"]


def test_a_run_in_a_bucket_shows_what_its_requests_cost(s3, serve, tmp_path):
    WrittenRun(tmp_path / "a").write(10, end=True)
    copy_run(s3, tmp_path / "a", "runs", "exp/a")
    client = serve("s3://runs/exp", tmp_path / "a")
    board = client.server.board
    while board.work([]) == 0:
        pass
    runs = {run["path"]: run for run in client.get("/api/runs")["runs"]}
    remote, local = runs["s3://runs/exp/a"], runs[str(tmp_path / "a")]
    assert remote["cost"] == pytest.approx(20 * 5e-6)
    assert "20 PUT requests" in remote["cost_title"]
    assert local["cost"] is None
    assert "folder" in local["cost_title"]
