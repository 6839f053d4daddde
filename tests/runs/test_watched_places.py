from __future__ import annotations

import pytest

from smdebug.runs.watched_places import runs_in
from smdebug.storage import open_storage
from smdebug.storage.memory import MemoryStorage

RUNS = ["a", "b", "team/mnist/first", "team/mnist/second", "träning/1"]


def filled(storage):
    for run in RUNS:
        for key in ("collections/000000000/worker_0_collections.json", "index/000000000/0.json"):
            storage.write(f"{run}/{key}", b"{}")
        storage.write(f"{run}/attempts/0.json", b"{}")
    storage.write("notes.txt", b"")
    storage.write("team/notes.txt", b"")
    return storage


@pytest.mark.parametrize("kind", ["memory", "folder"])
def test_runs_are_found_at_every_depth_and_other_files_are_passed_over(kind, tmp_path):
    storage = filled(MemoryStorage() if kind == "memory" else open_storage(str(tmp_path)))
    assert list(runs_in(storage)) == RUNS


def test_a_run_with_many_files_takes_a_few_listings():
    storage = filled(MemoryStorage())
    for step in range(500):
        storage.write(f"a/events/{step:012}/0.tfevents", b"")
    listed = []
    whole = storage.list
    storage.list = lambda *place: (listed.append(place), whole(*place))[1]
    assert list(runs_in(storage)) == RUNS
    assert len(listed) <= 3 * len(RUNS) + 12


def test_a_place_with_nothing_has_no_runs(tmp_path):
    assert list(runs_in(open_storage(str(tmp_path / "missing")))) == []
    assert not (tmp_path / "missing").exists()
