"""Unfinished files of an attempt that was killed go when the next one begins."""

from __future__ import annotations

from pathlib import Path

import pytest

import smdebug
from smdebug.files.names import END_MARKER, collections_key, event_key, index_key
from smdebug.runs import verify
from smdebug.saving.place.leftovers import remove_leftovers
from smdebug.storage.folder import FolderStorage
from smdebug.storage.memory import MemoryStorage

WORKER = "worker_1"


def unfinished(run: Path) -> list[str]:
    return sorted(file.name for file in run.rglob("*.tmp"))


def leave(run: Path, *keys: str) -> None:
    for key in keys:
        file = run / f"{key}.tmp"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"half of it")


def train(run: Path) -> None:
    with smdebug.Hook(str(run), save_config=smdebug.SaveConfig(save_interval=1)) as hook:
        for _ in range(3):
            with hook.step():
                hook.record("loss", 1.0)


def test_unfinished_files_of_the_worker_go(tmp_path):
    storage = FolderStorage(tmp_path)
    own = [event_key(7, WORKER), index_key(7, WORKER), collections_key(WORKER)]
    leave(tmp_path, *own, f"{event_key(8, WORKER)}.123-abc")
    remove_leftovers(storage, WORKER)
    assert unfinished(tmp_path) == []


@pytest.mark.parametrize("other", ["worker_0", "worker_11", "my_worker_12"])
def test_those_of_another_worker_stay(tmp_path, other):
    leave(tmp_path, event_key(7, other), collections_key(other))
    remove_leftovers(FolderStorage(tmp_path), WORKER)
    assert len(unfinished(tmp_path)) == 2


def test_one_that_is_being_written_stays_and_is_finished(tmp_path):
    storage = FolderStorage(tmp_path)
    sink = storage.create(event_key(7, WORKER))
    sink.write([b"all of it"])
    remove_leftovers(storage, WORKER)
    sink.commit()
    assert storage.read(event_key(7, WORKER)) == b"all of it"


def test_what_is_no_file_stays(tmp_path):
    (tmp_path / "precious").write_bytes(b"precious")
    place = tmp_path / f"{event_key(7, WORKER)}.tmp"
    place.parent.mkdir(parents=True)
    place.symlink_to(tmp_path / "precious")
    remove_leftovers(FolderStorage(tmp_path), WORKER)
    assert (tmp_path / "precious").read_bytes() == b"precious"
    remove_leftovers(MemoryStorage(), WORKER)


def test_the_next_attempt_removes_them_and_the_run_is_sound(tmp_path):
    run = tmp_path / "run"
    train(run)
    (run / END_MARKER).unlink()
    leave(run, event_key(40, "worker_0"), index_key(39, "worker_0"))
    train(run)
    assert unfinished(run) == []
    assert verify(run).is_sound
