"""What cannot be read of a run: files that a trial has in memory are not looked for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import smdebug
from smdebug.files.names import EVENTS_FOLDER, event_key
from smdebug.runs import left_out_of
from smdebug.runs.opening import open_run
from smdebug.storage.folder import FolderStorage
from smdebug.trials import Trial


class CountedListings(FolderStorage):
    """A folder that remembers which of its folders were listed."""

    def __init__(self, folder: Path):
        super().__init__(folder)
        self.listed: list[str] = []

    def list(self, prefix: str, start_after: str | None = None) -> Iterator[str]:
        self.listed.append(prefix)
        return super().list(prefix, start_after)


def opened(folder: Path) -> tuple[Trial, CountedListings]:
    with smdebug.Hook(str(folder), save_config=smdebug.SaveConfig(save_interval=1)) as hook:
        for _ in range(3):
            with hook.step():
                hook.record("loss", 1.0)
    storage = CountedListings(folder)
    return open_run(storage), storage


def read(trial: Trial, steps: list[int]) -> None:
    for step in steps:
        assert trial.tensor("loss").value(step).item() == 1.0


def test_event_files_that_were_all_read_are_not_listed(tmp_path: Path):
    trial, storage = opened(tmp_path / "run")
    read(trial, [0, 1, 2])
    assert left_out_of(trial) == ()
    assert EVENTS_FOLDER not in storage.listed


def test_a_file_that_was_not_read_is_missed_beside_others_that_were(tmp_path: Path):
    trial, storage = opened(tmp_path / "run")
    read(trial, [0, 1])
    (tmp_path / "run" / event_key(2, "worker_0")).unlink()
    assert [left.file for left in left_out_of(trial)] == [event_key(2, "worker_0")]
    assert EVENTS_FOLDER in storage.listed
