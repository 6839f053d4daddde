"""The runs at and below places."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from smdebug.backtesting import finding_runs
from smdebug.backtesting.finding_runs import FoundRun, RunListing, find_runs
from smdebug.exceptions import MissingCollectionFiles
from smdebug.storage import open_storage
from smdebug.storage.folders import folders_in
from tests.backtesting.many_runs import make_run


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    for name in ("a", "team/b", "team/c"):
        make_run(tmp_path / "runs" / name, [1.0])
    return tmp_path / "runs"


def test_places_that_overlap_have_each_run_once(runs: Path):
    found = list(find_runs([str(runs / "team"), str(runs), str(runs / "a")]))
    assert [run.name for run in found] == ["b", "c", "a"]
    assert [run.location for run in found] == [str(runs / name) for name in ("team/b", "team/c", "a")]


def test_a_run_without_collections_is_found_by_its_index_files(runs: Path):
    shutil.rmtree(runs / "team/c/collections")
    shutil.rmtree(runs / "a/collections")
    (runs / "site/index").mkdir(parents=True)
    (runs / "site/index/page.html").touch()
    assert [run.name for run in find_runs([str(runs)])] == ["a", "team/b", "team/c"]
    assert [run.name for run in find_runs([str(runs / "a")])] == ["a"]


def test_a_listing_knows_the_number_of_runs_at_its_end(runs: Path):
    listing = RunListing([str(runs)], limit=2)
    assert [run.name for run in listing] == ["a", "team/b"]
    assert listing.total == 2


def test_a_listing_ends_with_the_error_of_its_place(runs: Path, tmp_path: Path):
    listing = RunListing([str(runs), str(tmp_path / "nowhere")])
    found = iter(listing)
    assert [next(found).name for _ in range(3)] == ["a", "team/b", "team/c"]
    with pytest.raises(MissingCollectionFiles, match="nowhere"):
        next(found)


def test_a_closed_listing_ends(runs: Path):
    listing = RunListing([str(runs)])
    listing.close()
    assert list(listing) == []


def test_a_folder_of_many_runs_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for number in range(30):
        (tmp_path / f"run-{number:02}" / "collections").mkdir(parents=True)
        (tmp_path / f"run-{number:02}" / "collections" / "a.json").touch()
    (tmp_path / "empty" / "below").mkdir(parents=True)
    (tmp_path / "file").touch()
    read: list[str] = []
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: read.append(str(path).rstrip("/")) or scandir(path))
    assert list(folders_in(open_storage(tmp_path))) == [f"run-{number:02}" for number in range(30)]
    assert read.count(str(tmp_path)) == 1


def test_the_number_of_runs_is_known_before_they_are_taken(runs: Path, monkeypatch: pytest.MonkeyPatch):
    listed = threading.Event()

    def many(_: object) -> Iterator[FoundRun]:
        yield from (FoundRun(f"runs/{number}", str(number), f"/runs/{number}") for number in range(20_000))
        listed.set()

    monkeypatch.setattr(finding_runs, "find_runs", many)
    listing = RunListing(["runs"])
    taken = iter(listing)
    assert next(taken).name == "0"
    assert listed.wait(60)
    assert [run.name for run in taken] == [str(number) for number in range(1, 20_000)]
    assert listing.total == 20_000


def test_a_listing_of_which_few_may_be_wanted_does_not_go_far_ahead(monkeypatch: pytest.MonkeyPatch):
    asked: list[int] = []

    def many(_: object) -> Iterator[FoundRun]:
        for number in range(1_000):
            asked.append(number)
            yield FoundRun(f"runs/{number}", str(number), f"/runs/{number}")

    monkeypatch.setattr(finding_runs, "find_runs", many)
    listing = RunListing(["runs"], ahead=5)
    taken = iter(listing)
    for number in range(100):
        assert next(taken).name == str(number)
        assert len(asked) <= number + 7
    assert len(list(taken)) == 900


def test_a_closed_listing_that_waited_for_room_ends(runs: Path):
    listing = RunListing([str(runs)], ahead=0)
    taken = iter(listing)
    assert next(taken).name == "a"
    listing.close()
    assert list(taken) == []
